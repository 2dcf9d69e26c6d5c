"""Processes known by more than a number.

A process id alone may have passed to a stranger. Here a process is known by its id *and* its start time,
what belongs to a cluster is found by a marker in its environment, and signals go through a pidfd, which
can never reach another process than the one that was looked at.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "INFERCTL_CLUSTER"
_START_TIME_FIELD = 19  # field 22 of /proc/PID/stat, counted from after the command's name


@dataclass(frozen=True)
class ProcessIdentity:
    """One process: its id and the clock tick at which it started."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Look up a running process; None if there is none with this id."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat.rpartition(")")[2].split()
        if fields[0] in "ZX":
            return None
        return cls(pid, int(fields[_START_TIME_FIELD]))

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessIdentity.of(self.pid) == self

    def kill(self) -> None:
        """Send SIGKILL to this process and to no other; nothing happens if it has ended."""
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            finally:
                os.close(pidfd)

    def wait_gone(self, deadline: float) -> bool:
        """Wait until the process has ended; False if it still runs at ``deadline`` (monotonic seconds)."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            while self.alive():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                select.select([pidfd], [], [], min(left, 0.5))
        finally:
            os.close(pidfd)
        return True


def marked(value: str) -> Iterator[ProcessIdentity]:
    """Every process of this machine whose environment has the marker with this value."""
    wanted = f"{MARKER}={value}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            identity = ProcessIdentity.of(int(entry.name))
            if identity is not None:
                yield identity
