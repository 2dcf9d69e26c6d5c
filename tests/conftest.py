"""What holds for all tests of this folder."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let programs be interrupted: what a script runs in the background inherits that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
