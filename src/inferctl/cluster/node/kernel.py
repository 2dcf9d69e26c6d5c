"""The kernel's settings for a node's own network namespace."""

from __future__ import annotations

from pathlib import Path

#: How long the kernel remembers, for a connection that nothing has answered, which pod it was sent to. By default
#: 120 s: a client that uses the port of such an attempt again is sent to the same dead pod, long after the Service
#: has dropped it. Repeated SYNs are at most 4 s apart in the 5 s for which a client usually waits.
UNANSWERED_SECONDS = 5

_ROOT = Path("/proc/sys/net")
_FORWARD = "ipv4/ip_forward"
_UNANSWERED = "netfilter/nf_conntrack_tcp_timeout_syn_sent"


def configure(root: Path = _ROOT) -> None:
    """Forward packets, and forget unanswered connections soon; called inside the node's namespace."""
    (root / _FORWARD).write_text("1")
    unanswered = root / _UNANSWERED
    # A kernel that tracks no connections until kube-proxy asks for it keeps its default for this node.
    if unanswered.exists():
        unanswered.write_text(str(UNANSWERED_SECONDS))
