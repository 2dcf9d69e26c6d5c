"""Real clusters for the tests, under names of their own, so that none touches the one a person works with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True, scope="session")
def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.exit("the tests with a cluster need root: sudo ./just e2e", returncode=2)


@pytest.fixture
def kubeconfig_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig in the user's place that does not exist yet."""
    path = tmp_path / "home" / ".kube" / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path
