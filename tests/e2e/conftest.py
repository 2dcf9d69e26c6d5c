"""Real clusters for the tests, under names of their own, so that none touches the one a person works with.

The tests run inferctl as a person would, each command a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.paths import RUNS, tool
from inferctl.process.command import run as run_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

NAME = "e2e"
#: Longer than any single command of these tests takes on two busy cores.
_SECONDS = 1500


def pytest_configure() -> None:
    """Say at once what these tests cannot do without."""
    if os.geteuid() != 0:
        pytest.exit("the tests with a cluster need root: sudo ./just e2e", returncode=2)


@pytest.fixture
def kubeconfig_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig in the user's place that does not exist yet."""
    path = tmp_path / "home" / ".kube" / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.fixture(scope="session")
def kubeconfig_of_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig in the user's place, so that the tests do not touch the real one."""
    return tmp_path_factory.mktemp("home") / ".kube" / "config"


@pytest.fixture(scope="session")
def inferctl(kubeconfig_of_session: Path) -> Callable[..., str]:
    """Runs inferctl, shows what it prints, and gives its standard output; another exit code than 0 fails the test."""

    def run(*words: str) -> str:
        print("$ inferctl", *words, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "inferctl", *words],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_SECONDS,
            env={**os.environ, "KUBECONFIG": str(kubeconfig_of_session)},
        )
        print(done.stdout, flush=True)
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-4000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def running_cluster(inferctl: Callable[..., str]) -> Callable[..., AbstractContextManager[str]]:
    """Brings an embedded cluster up for as long as a block runs, by its name and further options of ``cluster up``.

    What its parts said is kept beside the reports of runs: it is gone with the cluster, and a failure may only be
    explained there.
    """

    @contextmanager
    def running(name: str, *options: str) -> Iterator[str]:
        try:
            inferctl("cluster", "up", "--name", name, *options)
            try:
                yield name
            finally:
                said = RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-cluster-{name}"
                inferctl("cluster", "export", str(said), "--name", name)
        finally:
            inferctl("cluster", "down", "--name", name)

    return running


@pytest.fixture(scope="session")
def kubectl(cluster: str) -> Callable[..., str]:
    """Runs kubectl on the cluster of the session and gives its output."""
    program: list[str | Path] = [tool("kubectl"), f"--kubeconfig={ClusterSpec(cluster).kubeconfig}"]
    return lambda *words, stdin=None: run_program([*program, *words], stdin=stdin)


@pytest.fixture(scope="session")
def cluster(running_cluster: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    """The name of an embedded cluster for the whole session, gone at its end."""
    with running_cluster(NAME) as name:
        yield name
