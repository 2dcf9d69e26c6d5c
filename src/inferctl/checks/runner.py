"""Runs checks, a few at a time, and keeps what each printed until it is known whether anybody needs it."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from inferctl.checks.programs import environment, in_nix_shell, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inferctl.checks.catalog import Check

_SECONDS = 900


class State(Enum):
    """How a check ended."""

    OK = "ok"
    FAILED = "FAILED"
    NO_FILES = "no such files"
    NIX_ONLY = "in the Nix shell only"


@dataclass(frozen=True)
class Result:
    """What came of one check.

    Attributes:
        check: the check.
        state: how it ended.
        seconds: how long it took.
        output: everything that it printed.
    """

    check: Check
    state: State
    seconds: float = 0.0
    output: str = ""

    @property
    def closing_line(self) -> str:
        """The last line it printed; empty if it printed none."""
        return (self.output.strip().splitlines() or [""])[-1]


def run_all(
    checks: Sequence[Check], paths: Sequence[str], *, root: Path, jobs: int, done: Callable[[Result], None]
) -> list[Result]:
    """Run every check and wait for all of them, whatever fails.

    Args:
        checks: what to run.
        paths: the files, relative to ``root``, that the checks choose from.
        root: where they run.
        jobs: how many run at once.
        done: told of each result as it comes, from one thread at a time.

    Returns:
        The results, in the order of ``checks``.

    Raises:
        EnvironmentProblem: a program is missing; nothing has run then.
    """
    results = []
    runs = []
    for check in checks:
        files = check.select(paths)
        if check.nix_only and not in_nix_shell():
            results.append(Result(check, State.NIX_ONLY))
        elif check.files and not files:
            results.append(Result(check, State.NO_FILES))
        else:
            runs.append((check, files))
    programs = locate(check for check, _ in runs)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(_run, check, files, programs[check.command[0]], root) for check, files in runs]
        for future in as_completed(futures):
            done(future.result())
            results.append(future.result())
    return sorted(results, key=lambda result: checks.index(result.check))


def _run(check: Check, files: list[str], program: str, root: Path) -> Result:
    began = time.monotonic()
    try:
        ended = subprocess.run(
            # A name that begins with a dash would be taken for an option.
            [program, *check.command[1:], *(f"./{name}" if name.startswith("-") else name for name in files)],
            cwd=root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return Result(check, State.FAILED, _SECONDS, f"{output}\nnot done after {_SECONDS} s, ended")
    output = ended.stdout.decode(errors="replace")
    failed = ended.returncode != 0 or (check.silent and bool(output.strip()))
    return Result(check, State.FAILED if failed else State.OK, time.monotonic() - began, output)
