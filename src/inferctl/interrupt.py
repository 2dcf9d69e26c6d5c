"""What Ctrl-C and a polite kill do: end at once while nothing has begun, and raise an exception afterwards."""

from __future__ import annotations

import contextlib
import os
import signal

from inferctl.errors import INTERRUPTED

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def leave_from_now() -> None:
    """End at once: there is nothing to clean up, and an exception would be reported by whatever is being imported."""
    for one in _SIGNALS:
        signal.signal(one, _leave)


def raise_from_now() -> None:
    """Raise `KeyboardInterrupt`, so that what was begun is cleaned up; nothing happens without `leave_from_now`."""
    for one in _SIGNALS:
        if signal.getsignal(one) is _leave:
            signal.signal(one, signal.default_int_handler)


def _leave(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
