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
    from collections.abc import Callable, Iterable, Iterator, Sequence
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
    here = [check for check in checks if in_nix_shell() or not check.nix_only]
    programs = locate(here)
    results = [Result(check, State.NIX_ONLY) for check in checks if check not in here]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for result in _in_order_of_ending(pool, here, paths, programs, root):
            done(result)
            results.append(result)
    return sorted(results, key=lambda result: checks.index(result.check))


def _in_order_of_ending(
    pool: ThreadPoolExecutor, checks: Iterable[Check], paths: Sequence[str], programs: dict[str, str], root: Path
) -> Iterator[Result]:
    futures = [pool.submit(_run, check, check.select(paths), programs[check.command[0]], root) for check in checks]
    for future in as_completed(futures):
        yield future.result()


def _run(check: Check, files: list[str], program: str, root: Path) -> Result:
    if check.files and not files:
        return Result(check, State.NO_FILES)
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
