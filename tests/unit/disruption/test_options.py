"""Mistakes on the command lines of tests and load are refused before anything is done."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.errors import UsageError


@pytest.mark.parametrize("command", ["load", "rollout-test"])
@pytest.mark.parametrize(
    ("value", "said"),
    [("nan", "'nan' is no number of seconds"), ("inf", "not in the range"), ("1e300", "not in the range")],
)
def test_endless_time_is_refused(command: str, value: str, said: str) -> None:
    """What is no length of time is named with its option; exit code 2."""
    done = CliRunner().invoke(application.app, [command, "--seconds", value])
    assert done.exit_code == 2
    assert "Invalid value for '--seconds'" in done.stderr
    assert said in done.stderr


def test_empty_name_is_no_scenario() -> None:
    """A script whose variable is unset is told so; only without any name are the scenarios listed."""
    assert CliRunner().invoke(application.app, ["test"]).exit_code == 0
    refused = CliRunner().invoke(application.app, ["test", ""])
    assert isinstance(refused.exception, UsageError)
    assert "scenario '': there is none of this name" in str(refused.exception)
