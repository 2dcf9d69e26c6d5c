"""A name that is empty by mistake does not mean the default."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("words", [["--name="], ["--name", ""]])
def test_empty_name_is_refused(words: list[str]) -> None:
    """An unset variable after --name removes no cluster; the message says what to write."""
    done = subprocess.run(
        [sys.executable, "-m", "inferctl", "cluster", "status", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--name is empty" in done.stderr
