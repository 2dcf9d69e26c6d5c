"""Where every observer of a run reports: the record is written, the state updated, and waiters are woken."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from inferctl.errors import DeadlineExceeded
from inferctl.report.state import State
from inferctl.report.timeline import Timeline, entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_T = TypeVar("_T")
#: A waiter looks again after this long even if nothing was recorded, so that a deadline is kept.
_LOOK_SECONDS = 0.5


class Recorder:
    """Takes records from any thread."""

    def __init__(self, path: Path) -> None:
        """Begin a timeline at ``path``."""
        self.state = State()
        self._timeline = Timeline(path)
        self._changed = threading.Condition()
        self._closed = False
        self._deadline: float | None = None

    @property
    def path(self) -> Path:
        """The timeline's file."""
        return self._timeline.path

    def record(self, kind: str, at: float | None = None, **fields: object) -> None:
        """Record something that happened at Unix time ``at``, or now; ignored after `close`."""
        with self._changed:
            if self._closed:
                return
            record = entry(kind, at, **fields)
            self._timeline.append(record)
            self.state.apply(record)
            self._changed.notify_all()

    def look(self, read: Callable[[State], _T]) -> _T:
        """Read from the state while nothing changes it."""
        with self._changed:
            return read(self.state)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Say that what is done now takes at most so long."""
        before, self._deadline = self._deadline, time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = before

    @property
    def left(self) -> float | None:
        """Seconds until what is done now must have ended; None if nobody said."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def wait(self, missing: Callable[[State], str], seconds: float, *, failed: Callable[[], str] = str) -> None:
        """Wait for a state.

        Args:
            missing: says what is still missing; empty when the state has come.
            seconds: how long to wait.
            failed: says why it cannot come any more; empty while it can.

        Raises:
            DeadlineExceeded: it did not come; the message is what was missing last.
        """
        deadline = time.monotonic() + seconds
        with self.within(seconds), self._changed:
            while why := missing(self.state):
                if reason := failed():
                    raise DeadlineExceeded(f"{why}: {reason}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise DeadlineExceeded(f"not after {seconds:.0f} s: {why}")
                self._changed.wait(min(left, _LOOK_SECONDS))

    def close(self) -> None:
        """End the timeline; observers that are still running may go on reporting in vain."""
        with self._changed:
            self._closed = True
            self._timeline.close()
