"""Programs that are run to their end."""

from __future__ import annotations

import pytest

from inferctl.errors import CommandFailed
from inferctl.process.command import run


def test_output_is_returned() -> None:
    """What a program prints on standard output is returned."""
    assert run(["cat"], stdin="text") == "text"


def test_failure_names_command_code_and_reason() -> None:
    """A failed program's message has its command line, exit code and the end of what it said."""
    with pytest.raises(CommandFailed, match=r"(?s)sh -c 'echo why.*exit code 3.*why"):
        run(["sh", "-c", "echo why >&2; exit 3"])


def test_missing_program_is_named_with_the_fix() -> None:
    """A program that is not there is named, with the command that builds it."""
    with pytest.raises(CommandFailed, match=r"no-such-program is not installed; run \./just tools"):
        run(["no-such-program"])


def test_program_past_its_deadline_is_ended() -> None:
    """A program that does not end in time is ended, and the message says after how long."""
    with pytest.raises(CommandFailed, match="not done after 0 s"):
        run(["sleep", "60"], deadline=0.1)
