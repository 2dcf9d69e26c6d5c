"""Waiting for a state that somebody else brings about."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inferctl.errors import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

ASK_SECONDS = 0.25


def wait_until(missing: Callable[[], str], seconds: float, *, every: float = ASK_SECONDS) -> None:
    """Ask until nothing is missing.

    Args:
        missing: says what still is; empty when the state has come.
        seconds: how long to ask.
        every: seconds between two questions.

    Raises:
        DeadlineExceeded: something still was; the message says what.
    """
    deadline = time.monotonic() + seconds
    while why := missing():
        if time.monotonic() > deadline:
            raise DeadlineExceeded(f"not after {seconds:.0f} s: {why}")
        time.sleep(every)
