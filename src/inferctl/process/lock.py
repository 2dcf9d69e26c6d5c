"""One inferctl at a time for each thing that is changed.

The lock is the kernel's, so it ends with its holders however they end. A program that is given the lock's file holds
it too: what an inferctl that was killed left running keeps others out until it has ended.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 5.0
_ASK_SECONDS = 0.05
_SHOWN_CHARACTERS = 120


class Lock:
    """A lock that may be taken again by who has it.

    Attributes:
        path: its file, which stays when nobody holds it.
        cut_short: the holder before this one was killed, or ended with an error.
    """

    def __init__(self, path: Path, what: str, fix: str = "") -> None:
        """Name what is locked; nothing is opened yet.

        Args:
            path: the lock's file; its folder is made.
            what: what is locked, as an error names it: ``cluster 'trial'``.
            fix: what helps where the file cannot be written.
        """
        self.path = path
        self.cut_short = False
        self._what, self._fix = what, fix
        self._file = -1
        self._depth = 0

    @property
    def files(self) -> tuple[int, ...]:
        """What a program must inherit to hold the lock too; nothing while it is not held."""
        return () if self._file < 0 else (self._file,)

    @contextmanager
    def held(
        self, patience: float | None = None, *, waiting: Callable[[str], object] = lambda _: None
    ) -> Iterator[None]:
        """Hold the lock during the block.

        Args:
            patience: seconds to wait for another holder; by default `PATIENCE_SECONDS`.
            waiting: is told once who holds it, if another does.

        Raises:
            EnvironmentProblem: another process holds it; the message names each such process.
        """
        if not self._depth:
            self._file = self._take(PATIENCE_SECONDS if patience is None else patience, waiting)
        self._depth += 1
        try:
            yield
            if self._depth == 1:
                _write(self._file, "")
        finally:
            self._depth -= 1
            if not self._depth:
                file, self._file = self._file, -1
                os.close(file)

    def _take(self, patience: float, waiting: Callable[[str], object]) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise EnvironmentProblem(f"{self.path.parent} cannot be written ({error.strerror}); {self._fix}") from error
        try:
            if not _flock(file):
                waiting(self._taken(file))
                self._wait(file, patience)
            self.cut_short = bool(_read(file))
            _write(file, str(os.getpid()))
        except BaseException:
            os.close(file)
            raise
        return file

    def _wait(self, file: int, patience: float) -> None:
        deadline = time.monotonic() + patience
        while not _flock(file):
            if time.monotonic() > deadline:
                raise EnvironmentProblem(self._taken(file))
            time.sleep(_ASK_SECONDS)

    def _taken(self, file: int) -> str:
        found = {pid: command for pid, command in _holders(self.path).items() if pid != os.getpid()}
        if not found:
            holder = _read(file) or "unknown"
            return f"{self._what} is being changed by process {holder}; wait for it, or end it with: kill {holder}"
        told = ", ".join(f"process {pid} ({command})" for pid, command in found.items())
        return f"{self._what} is being changed by {told}; wait for it, or end it with: kill {' '.join(map(str, found))}"


def _flock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> str:
    return os.pread(file, 100, 0).decode(errors="replace").strip()


def _write(file: int, text: str) -> None:
    # On a full disk the lock holds without a name in it.
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode(), 0)


def _holders(path: Path) -> dict[int, str]:
    """Processes that hold a file's lock, and their command lines; only those that this user may look into."""
    found = {}
    wanted = str(path.resolve())
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(_holds(process, entry, wanted) for entry in (process / "fd").iterdir()):
                found[int(process.name)] = _shown((process / "cmdline").read_bytes().decode(errors="replace"))
    return found


def _shown(command_line: str) -> str:
    """A command line without its options, which are long and say little."""
    program, *words = command_line.replace("\0", " ").split() or ["?"]
    kept = [Path(program).name, *(word for word in words if not word.startswith("-"))]
    return " ".join(kept)[:_SHOWN_CHARACTERS]


def _holds(process: Path, entry: Path, wanted: str) -> bool:
    """Whether an open file is this one and has the lock: who waits for it has it open, too."""
    try:
        return str(entry.readlink()) == wanted and "FLOCK" in (process / "fdinfo" / entry.name).read_text()
    except OSError:
        return False
