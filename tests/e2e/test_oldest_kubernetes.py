"""The oldest Kubernetes that the chart promises: it installs there, and a rollout under load cuts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

VERSION = "1.30"
NAME = "e2e-oldest"
SECONDS = "40"


@pytest.fixture(scope="module")
def oldest(running_cluster: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    """The name of a cluster of the oldest version, gone after the module."""
    with running_cluster(NAME, "--kubernetes", VERSION) as name:
        yield name


def test_chart_installs_and_rolls_out_on_the_oldest_version(inferctl: Callable[..., str], oldest: str) -> None:
    """On Kubernetes 1.30 every pod is replaced under load, and every request ends ok."""
    column = "jsonpath={.items[*].status.nodeInfo.kubeletVersion}"
    kubeconfig = f"--kubeconfig={ClusterSpec(oldest).kubeconfig}"
    versions = run([tool("kubectl"), kubeconfig, "get", "nodes", "-o", column]).split()
    assert [version.startswith(f"v{VERSION}.") for version in versions] == [True] * 3
    inferctl("deploy", "--startup-delay", "1", "--name", oldest)
    said = inferctl("rollout-test", "--seconds", SECONDS, "--name", oldest).splitlines()
    assert said[-1].startswith("verdict: proven: 0 of ")
