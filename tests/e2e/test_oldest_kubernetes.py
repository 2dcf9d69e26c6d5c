"""The oldest Kubernetes that the chart promises: it installs there, and a rollout under load cuts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.core_v1 import Node

from inferctl.cluster.backend import choose
from inferctl.console import Progress
from inferctl.disruption.rollout_test import rollout_test
from inferctl.disruption.verdict import Outcome
from inferctl.images import engine
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inferctl.cluster.target import Target

VERSION = "1.30"
SECONDS = 60


@pytest.fixture(scope="module")
def oldest(kubeconfig_of_session: Path) -> Iterator[Target]:
    """A cluster of the oldest version, gone after the module."""
    assert str(kubeconfig_of_session) == os.environ["KUBECONFIG"]
    backend = choose("embedded", "e2e-oldest", VERSION)
    progress = Progress()
    try:
        yield backend.up(progress)
    finally:
        backend.down(progress)


def test_chart_installs_and_rolls_out_on_the_oldest_version(oldest: Target) -> None:
    """On Kubernetes 1.30 every pod is replaced under load, and every request ends ok."""
    versions = {
        node.status.nodeInfo.kubeletVersion
        for node in oldest.client().list(Node)
        if node.status and node.status.nodeInfo
    }
    assert [version.startswith(f"v{VERSION}.") for version in versions] == [True], versions
    release = Release(oldest, "mock")
    digest = engine.publish(oldest.push, Progress())
    release.upgrade(
        {"image": {"repository": f"{oldest.pull}/{engine.NAME}", "digest": digest}, "replicaCount": 2}, wait=180
    )
    verdict = rollout_test(oldest, seconds=SECONDS, progress=Progress())
    assert verdict.outcome is Outcome.PROVEN, verdict.line
