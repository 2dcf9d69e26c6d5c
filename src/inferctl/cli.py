"""The entry point, quiet from its first moment: Ctrl-C may come while everything else is still being imported."""

from __future__ import annotations

from inferctl import interrupt, stderr


def main() -> None:
    """Run the command line."""
    interrupt.leave_from_now()
    stderr.tolerate_loss()
    from inferctl.application import run  # noqa: PLC0415 - takes long enough for Ctrl-C to come meanwhile

    run()
