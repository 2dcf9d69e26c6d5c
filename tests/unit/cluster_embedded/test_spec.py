"""A cluster's names and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


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


def test_what_is_saved_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster's spec comes back as it was saved."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    spec = ClusterSpec("x", index=3, kubernetes="1.30", workers=1)
    spec.save()
    assert ClusterSpec.load("x") == spec


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("relative/path", "it is no absolute path"),
        ("/" + "long" * 20, "it is too long"),
        ("/" + "ä" * 40, "it is too long"),
        ("/var/lib/../lib/x", "it has characters"),
        ("/with space", "it has characters"),
        ("/a:b", "it has characters"),
        ("/a\nb", "it has characters"),
        ("/half\udc80", "it has characters"),
        ("/proc/version", "it is no folder"),
    ],
)
def test_state_folder_that_cannot_work_is_refused(state: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An INFERCTL_STATE that cannot hold a cluster is refused with its value and why, before anything is made."""
    monkeypatch.setenv("INFERCTL_STATE", state)
    with pytest.raises(UsageError, match=f"{why}.*; write an absolute path") as refused:
        ClusterSpec("trial")
    assert f"INFERCTL_STATE={state}: " in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"name": "x", "ind', b'{"name": "other"}',
        b'{"name": "x", "index": 9999}', b'{"name": "x", "index": -1}', b'{"name": "x", "index": "1"}',
        b'{"name": "x", "index": true}', b'{"name": "x", "workers": 1e9}', b'{"name": "x", "workers": 0}',
        b'{"name": "x", "kubernetes": 1.30}', b'{"name": "x", "colour": "red"}', b'{"name": 7}',
    ],
)  # fmt: skip
def test_damaged_spec_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """A spec's file is read whole or counts as none; another cluster's is never taken for this one's."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    spec = ClusterSpec("x")
    spec.save()
    assert not spec.damaged
    (spec.folder / "cluster.json").write_bytes(content)
    assert ClusterSpec.load("x") is None
    assert f"{spec.folder}/cluster.json is damaged" in spec.damaged
