"""The kernel's settings of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.node.kernel import UNANSWERED_SECONDS, configure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("tracks", [True, False])
def test_node_forwards_and_forgets_unanswered_connections(tmp_path: Path, tracks: bool) -> None:  # noqa: FBT001 - a parameter
    """Packets are forwarded; an unanswered connection is soon forgotten where the kernel tracks connections at all."""
    (tmp_path / "ipv4").mkdir()
    unanswered = tmp_path / "netfilter" / "nf_conntrack_tcp_timeout_syn_sent"
    if tracks:
        unanswered.parent.mkdir()
        unanswered.write_text("120")
    configure(tmp_path)
    assert (tmp_path / "ipv4" / "ip_forward").read_text() == "1"
    assert unanswered.exists() is tracks
    if tracks:
        assert unanswered.read_text() == str(UNANSWERED_SECONDS)
