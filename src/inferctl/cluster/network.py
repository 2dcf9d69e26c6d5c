"""The node network: one bridge in a namespace of its own, a link to each node and one to the host.

The bridge is not on the host's own stack, where a container engine's firewall would drop what crosses it.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.cluster.spec import SERVICE_NETWORK
from inferctl.errors import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyroute2 import IPRoute

    from inferctl.cluster.spec import ClusterSpec, NodeSpec

_BRIDGE = "bridge"
_NODE_LINK = "eth0"
_NAMESPACE_SECONDS = 10
_PREFIX = 24


def wait_namespace(pid: int) -> None:
    """Wait until a process has entered a network namespace of its own.

    Raises:
        DeadlineExceeded: it has not, or it has ended.
    """
    own = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + _NAMESPACE_SECONDS
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/ns/net").readlink() != own:
                return
        except OSError as error:
            raise DeadlineExceeded(f"process {pid} ended before it had a network namespace") from error
        time.sleep(0.005)
    raise DeadlineExceeded(f"process {pid} has no network namespace of its own after {_NAMESPACE_SECONDS} s")


def make_bridge(spec: ClusterSpec, switch: int) -> None:
    """Make the bridge in the namespace of process ``switch``, and give the host its address on it."""
    with _inside(switch) as stack:
        stack.link("add", ifname=_BRIDGE, kind="bridge")
        _up(stack, _BRIDGE)
    with _stack() as host:
        host.link("add", ifname=spec.host_link, kind="veth", peer={"ifname": "host", "net_ns_pid": switch})
        index = _up(host, spec.host_link)
        host.addr("add", index=index, address=str(spec.host_address), prefixlen=_PREFIX)
    _enslave(switch, "host")


def attach(spec: ClusterSpec, node: NodeSpec, process: int, switch: int) -> None:
    """Link the namespace of ``process`` to the bridge, with the node's address and routes to the others' pods."""
    port = port_name(spec, node)
    with _inside(switch) as stack:
        # The kernel may still be clearing away the link of a node that was killed a moment ago.
        for leftover in stack.link_lookup(ifname=port):
            stack.link("del", index=leftover)
        stack.link("add", ifname=port, kind="veth", peer={"ifname": _NODE_LINK, "net_ns_pid": process})
    _enslave(switch, port)
    with _inside(process) as stack:
        _up(stack, "lo")
        index = _up(stack, _NODE_LINK)
        stack.addr("add", index=index, address=str(node.address), prefixlen=_PREFIX)
        # What a node's own programs send to a service must have a route before kube-proxy redirects it.
        # There is no default route: nothing leaves the cluster.
        stack.route("add", dst=str(SERVICE_NETWORK), oif=index)
        for other in spec.nodes:
            if other != node:
                stack.route("add", dst=str(other.pods), gateway=str(other.address))


def set_port(spec: ClusterSpec, node: NodeSpec, switch: int, *, up: bool) -> None:
    """Cut a node off the network, or connect it again."""
    with _inside(switch) as stack:
        index = stack.link_lookup(ifname=port_name(spec, node))[0]
        stack.link("set", index=index, state="up" if up else "down")


def port_name(spec: ClusterSpec, node: NodeSpec) -> str:
    """The bridge's end of a node's link."""
    return f"node{spec.nodes.index(node)}"


def remove_host_link(name: str) -> None:
    """Remove the host's link; nothing happens if it went with its namespace already."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415 - see _stack

    with _stack() as host:
        for index in host.link_lookup(ifname=name):
            try:
                host.link("del", index=index)
            except NetlinkError:
                if host.link_lookup(ifname=name):
                    raise


def overlaps(network: IPv4Network, *, own_link: str = "") -> list[str]:
    """The host's routes and addresses that overlap ``network``, described; the default route does not count."""
    found = []
    with _stack() as host:
        names = {link["index"]: link.get("ifname") for link in host.get_links()}
        for route in host.get_routes(family=2):
            length, destination = route["dst_len"], route.get("dst")
            device = names.get(route.get("oif"), "?")
            if destination and length and device != own_link and network.overlaps(IPv4Network((destination, length))):
                found.append(f"{destination}/{length} on {device}")
    return sorted(set(found))


@contextmanager
def _inside(process: int) -> Iterator[IPRoute]:
    """The network stack of another process's namespace.

    Only this thread enters it, for as long as it takes to open a socket there. pyroute2's own way forks this whole
    program, whose signal handlers and clean-up must not run twice.
    """
    from pyroute2 import netns  # noqa: PLC0415 - see _stack

    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        netns.setns(f"/proc/{process}/ns/net")
        try:
            stack = _stack()
        finally:
            netns.setns(here)
    finally:
        os.close(here)
    with stack:
        yield stack


def _stack() -> IPRoute:
    """The network stack of the namespace that this thread is in."""
    from pyroute2 import IPRoute  # noqa: PLC0415 - a third of the time in which inferctl starts

    return IPRoute()


def _enslave(switch: int, port: str) -> None:
    with _inside(switch) as stack:
        bridge = stack.link_lookup(ifname=_BRIDGE)[0]
        index = stack.link_lookup(ifname=port)[0]
        stack.link("set", index=index, master=bridge, state="up")


def _up(stack: IPRoute, name: str) -> int:
    index: int = stack.link_lookup(ifname=name)[0]
    stack.link("set", index=index, state="up")
    return index
