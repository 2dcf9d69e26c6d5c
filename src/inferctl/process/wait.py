"""Waiting for a state that somebody else brings about."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inferctl.errors import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

ASK_SECONDS = 0.25
#: What passes sooner is no news to a person who waits.
_LASTING_SECONDS = 2.0


def wait_until(
    missing: Callable[[], str],
    seconds: float,
    *,
    every: float = ASK_SECONDS,
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Ask until nothing is missing.

    Args:
        missing: says what still is; empty when the state has come.
        seconds: how long to ask.
        every: seconds between two questions.
        tell: is given what is missing when that has stayed the same for two seconds, once until it is something else.

    Raises:
        DeadlineExceeded: something still was; the message says what.
    """
    deadline = time.monotonic() + seconds
    seen, since, told = "", 0.0, ""
    while why := missing():
        now = time.monotonic()
        if why != seen:
            seen, since = why, now
        elif why != told and now - since >= _LASTING_SECONDS:
            told = why
            tell(why)
        if now > deadline:
            raise DeadlineExceeded(f"not after {seconds:.0f} s: {why}")
        time.sleep(every)
