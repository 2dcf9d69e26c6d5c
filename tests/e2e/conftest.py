"""Real clusters for the tests, under names of their own, so that none touches the one a person works with."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from inferctl.cluster import inspection
from inferctl.cluster.embedded_backend import EmbeddedBackend
from inferctl.console import Progress
from inferctl.images import engine
from inferctl.paths import RUNS
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inferctl.cluster.target import Target

NAME = "e2e"


def pytest_configure() -> None:
    """Say at once what these tests cannot do without."""
    if os.geteuid() != 0:
        pytest.exit("the tests with a cluster need root: sudo ./just e2e", returncode=2)


@pytest.fixture(scope="session")
def kubeconfig_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig in the user's place, so that the tests do not touch the real one."""
    path = tmp_path_factory.mktemp("home") / ".kube" / "config"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(path))
        yield path


@pytest.fixture
def kubeconfig_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig in the user's place that does not exist yet."""
    path = tmp_path / "home" / ".kube" / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.fixture(scope="session")
def target(kubeconfig_of_session: Path) -> Iterator[Target]:
    """An embedded cluster for the whole session, gone at its end."""
    assert not kubeconfig_of_session.exists()
    backend = EmbeddedBackend(NAME)
    progress = Progress()
    try:
        yield backend.up(progress)
    finally:
        # What the cluster's parts said is gone with it; a failure may only be explained there.
        if backend.describe()["up"]:
            inspection.export(backend.spec, RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-cluster-{NAME}")
        backend.down(progress)


@pytest.fixture(scope="session")
def digest(target: Target) -> str:
    """The digest of the mock engine's image in the cluster's registry."""
    return engine.publish(target.push, Progress())


@pytest.fixture
def release(target: Target, digest: str, request: pytest.FixtureRequest) -> Iterator[Release]:
    """A release of the mock whose pod loads in a moment, gone after the test."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:30].rstrip("-")
    subject = Release(target, name)
    subject.upgrade(
        {
            "image": {"repository": f"{target.pull}/{engine.NAME}", "digest": digest},
            "engine": {"env": {"STARTUP_DELAY_SECONDS": 1}},
        },
        wait=180,
    )
    yield subject
    subject.uninstall()
