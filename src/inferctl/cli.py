"""The entry point, quiet from its first moment: Ctrl-C may come while everything else is still being imported."""

from __future__ import annotations

from inferctl import interrupt


def main() -> None:
    """Run the command line."""
    interrupt.leave_from_now()
    from inferctl.application import run  # noqa: PLC0415 - takes long enough for Ctrl-C to come meanwhile

    run()
