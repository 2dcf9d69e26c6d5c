"""A cluster that inferctl did not make: tests run there in a namespace of their own, and nodes only by permission."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.spec import REGISTRY_NAME, ClusterSpec
from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_REFUSED = 2
#: What a test on somebody's cluster could change outside its namespace.
_KINDS = "deployments,replicasets,services,configmaps,secrets,serviceaccounts,poddisruptionbudgets"


@pytest.fixture
def existing(cluster: str, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """The embedded cluster, as a person would name it who only has a kubeconfig and a registry."""
    spec = ClusterSpec.load(cluster)
    assert spec
    monkeypatch.setenv("INFERCTL_BACKEND", "existing")
    monkeypatch.setenv("INFERCTL_CLUSTER_NAME", spec.context)
    monkeypatch.setenv("INFERCTL_REGISTRY", spec.registry_address)
    monkeypatch.setenv("INFERCTL_REGISTRY_PULL", REGISTRY_NAME)
    monkeypatch.setenv("INFERCTL_REGISTRY_PLAIN_HTTP", "1")
    return spec


def test_rollout_is_proven_and_nothing_else_is_touched(inferctl: Callable[..., str], existing: ClusterSpec) -> None:
    """A rollout on any cluster comes to its verdict, and what others have in the cluster is as it was."""
    before = _others(existing)
    said = inferctl("test", "rollout").splitlines()
    assert said[-1].startswith("verdict: proven: 0 of ")
    assert _others(existing) == before


def test_nodes_are_not_touched_without_their_clusters_name(
    existing: ClusterSpec, kubeconfig_of_session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain is refused until the context is named again, and one that reaches into machines is refused at all."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_of_session))
    drain = _inferctl("test", "drain")
    assert drain.returncode == _REFUSED
    assert f"--allow-nodes {existing.context}" in drain.stderr
    killed = _inferctl("test", "node-killed", "--allow-nodes", existing.context)
    assert killed.returncode == _REFUSED
    assert "use --backend embedded" in killed.stderr


def _inferctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "inferctl", *words], capture_output=True, text=True, check=False)


def _others(spec: ClusterSpec) -> set[tuple[str, ...]]:
    """Objects outside the tests' namespace, and whether nodes are cordoned."""
    kubectl: list[str | Path] = [tool("kubectl"), f"--kubeconfig={spec.kubeconfig}", "get", "-o", "json"]
    objects = json.loads(run([*kubectl, "--all-namespaces", _KINDS]))["items"]
    nodes = json.loads(run([*kubectl, "nodes"]))["items"]
    return {
        (item["kind"], item["metadata"]["namespace"], item["metadata"]["name"], _spec(item))
        for item in objects
        if item["metadata"]["namespace"] != "inferctl-test"
    } | {("Node", node["metadata"]["name"], str(node["spec"].get("unschedulable", False))) for node in nodes}


def _spec(item: dict[str, Any]) -> str:
    return json.dumps({key: item.get(key) for key in ("spec", "data")}, sort_keys=True)
