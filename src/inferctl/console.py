"""What a person sees while something takes long: one line per step, with the time it took.

On a terminal the step in hand is shown with a running clock; elsewhere every line is plain text.
Progress goes to standard error, so that standard output holds only results.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

_stderr = Console(stderr=True, highlight=False, soft_wrap=True)


class Progress:
    """Prints steps with the seconds since the start of the whole."""

    def __init__(self, console: Console = _stderr) -> None:
        """Start the clock; ``console`` is where the lines go."""
        self._console = console
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def say(self, text: str) -> None:
        """Print one line with the elapsed time before it."""
        self._console.print(f"{self.elapsed:6.1f}s  {text}", markup=False)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show ``text`` while the block runs, and its duration after."""
        began = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(text):
                yield
        else:
            self.say(f"{text} ...")
            yield
        self.say(f"{text}: {time.monotonic() - began:.1f} s")
