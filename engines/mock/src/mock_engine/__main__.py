"""The engine's entry point: `python3 -m mock_engine [flags]`."""

import os
import signal
import sys


def run() -> None:
    """Runs the engine until a signal stops it, and exits the process with its exit code."""
    # As PID 1 the kernel drops signals that have no handler; until the server has its own, leave at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    from mock_engine.cli import main  # noqa: PLC0415  # the handlers must stand before the slow imports

    sys.exit(main(sys.argv[1:], os.environ))


if __name__ == "__main__":
    run()
