"""Which cluster is meant: by option, by the environment, by default; never by mistake."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("words", [["--name="], ["--name", ""]])
def test_empty_name_is_refused(words: list[str]) -> None:
    """An unset variable after --name removes no cluster; the message says what to write."""
    done = subprocess.run(
        [sys.executable, "-m", "inferctl", "cluster", "status", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--name is empty" in done.stderr


def test_environment_names_the_cluster_whose_logs_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As everywhere else: the option first, then INFERCTL_CLUSTER_NAME, then the default."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setenv("INFERCTL_CLUSTER_NAME", "trial")
    for words, name in ((["--name", "other"], "other"), ([], "trial")):
        failed = CliRunner().invoke(application.app, ["cluster", "logs", *words]).exception
        assert isinstance(failed, UsageError)
        assert f"cluster '{name}' has no logs" in str(failed)
