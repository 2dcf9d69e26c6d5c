"""Runs checks, a few at a time, and keeps what each printed until it is known whether anybody needs it."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from inferctl.checks.programs import environment, in_nix_shell, locate, tied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from inferctl.checks.catalog import Check

_SECONDS = 900


#: A person who sees nothing for longer wonders.
_QUIET_SECONDS = 10.0


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
    checks: Sequence[Check],
    paths: Sequence[str],
    *,
    root: Path,
    jobs: int,
    done: Callable[[Result], None],
    say: Callable[[str], object] = lambda _: None,
) -> list[Result]:
    """Run every check and wait for all of them, whatever fails.

    Args:
        checks: what to run.
        paths: the files, relative to ``root``, that the checks choose from.
        root: where they run.
        jobs: how many run at once.
        done: told of each result as it comes, from one thread at a time.
        say: told how many run, and which ones whenever none has ended for ten seconds.

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
    children = _Children()
    say(f"{len(runs)} checks, {min(jobs, len(runs))} at once")
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {
            pool.submit(_run, check, files, programs[check.command[0]], root, children): check.name
            for check, files in runs
        }
        try:
            for future in _as_they_end(futures, say):
                done(future.result())
                results.append(future.result())
        except BaseException:
            # Interrupted: what has not begun does not begin.
            children.end()
            raise
    return sorted(results, key=lambda result: checks.index(result.check))


def _as_they_end(futures: Mapping[Future[Result], str], say: Callable[[str], object]) -> Iterator[Future[Result]]:
    """Give each future when it has ended; while none ends, say the names of those that run."""
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, _QUIET_SECONDS, FIRST_COMPLETED)
        if not ended:
            say(f"running: {', '.join(name for future, name in futures.items() if future.running())}")
        yield from ended


class _Children:
    """The programs that run, so that all can be ended at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def start(self, command: Sequence[str], root: Path) -> subprocess.Popen[bytes] | None:
        """Start a program in ``root``; None once all were ended."""
        with self._lock:
            if self._ended:
                return None
            child = subprocess.Popen(
                tied(command),
                cwd=root,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self._started.append(child)
            return child

    def end(self) -> None:
        """Interrupt every program, so that tests take down what they brought up, and start no other."""
        with self._lock:
            self._ended = True
            for child in self._started:
                child.send_signal(signal.SIGINT)


def _run(check: Check, files: list[str], program: str, root: Path, children: _Children) -> Result:
    began = time.monotonic()
    # A name that begins with a dash would be taken for an option.
    names = [f"./{name}" if name.startswith("-") else name for name in files]
    child = children.start([program, *check.command[1:], *names], root)
    if child is None:
        return Result(check, State.FAILED, output="interrupted")
    with child:
        try:
            printed, _ = child.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            child.kill()
            output = (error.output or b"").decode(errors="replace")
            return Result(check, State.FAILED, _SECONDS, f"{output}\nnot done after {_SECONDS} s, ended")
    output = printed.decode(errors="replace")
    failed = child.returncode != 0 or (check.silent and bool(output.strip()))
    return Result(check, State.FAILED if failed else State.OK, time.monotonic() - began, output)
