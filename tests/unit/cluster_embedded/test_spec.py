"""A cluster's names and addresses."""

from __future__ import annotations

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.errors import UsageError


def test_nodes_are_named_as_kind_names_them() -> None:
    """Nodes are called control-plane, worker and worker2 after the cluster."""
    names = [node.name for node in ClusterSpec("inference").nodes]
    assert names == ["inference-control-plane", "inference-worker", "inference-worker2"]


def test_two_clusters_share_nothing_that_the_host_sees() -> None:
    """Two clusters differ in network, host link, control group, context and folder."""
    one, other = ClusterSpec("one", index=0), ClusterSpec("other", index=1)
    assert not one.network.overlaps(other.network)
    for attribute in ("host_link", "cgroup", "context", "folder", "marker"):
        assert getattr(one, attribute) != getattr(other, attribute)


def test_link_name_fits_into_the_kernel() -> None:
    """A link's name has at most 15 characters, whatever the cluster's name."""
    assert len(ClusterSpec("a" * 30).host_link) <= 15


@pytest.mark.parametrize("name", ["", "A", "1st", "with space", "ends-", "a/b", "..", "a" * 31, "ümlaut"])
def test_bad_name_is_refused_with_what_to_write(name: str) -> None:
    """A name that cannot begin a node's name is refused, with an example of one that can."""
    with pytest.raises(UsageError, match="for example 'inference'"):
        ClusterSpec(name)


def test_longest_socket_path_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The init's socket of the longest cluster name has a path of at most 107 bytes."""
    monkeypatch.delenv("INFERCTL_STATE", raising=False)
    spec = ClusterSpec("a" * 30)
    assert max(len(str(spec.node_folder(node) / "init.sock")) for node in spec.nodes) <= 107


def test_spec_cut_short_by_a_crash_counts_as_none(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec file that a crash cut short is no cluster, and no error."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    spec = ClusterSpec("x", index=3)
    spec.save()
    assert ClusterSpec.load("x") == spec
    (spec.folder / "cluster.json").write_text('{"name": "x", "ind')
    assert ClusterSpec.load("x") is None


@pytest.mark.parametrize("state", ["relative/path", "/" + "long" * 20])
def test_state_folder_that_cannot_work_is_refused(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative or too long INFERCTL_STATE is refused with its value and the reason, before anything is made."""
    monkeypatch.setenv("INFERCTL_STATE", state)
    with pytest.raises(UsageError, match=f"INFERCTL_STATE={state}: write an absolute path"):
        ClusterSpec("trial")
