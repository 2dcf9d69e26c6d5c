"""Striking at nodes and their programs: what only the owner of a cluster's machines can do."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.cluster import embedded, init_client, launch, network
from inferctl.cluster.node.supervisor import READY
from inferctl.cluster.spec import ClusterSpec
from inferctl.errors import ComponentFailed, UsageError
from inferctl.paths import state_root
from inferctl.process.identity import ProcessIdentity
from inferctl.process.wait import wait_until

if TYPE_CHECKING:
    from inferctl.cluster.spec import NodeSpec
    from inferctl.cluster.target import Target

_ASK_SECONDS = 0.1


class Nodes:
    """The nodes of an embedded cluster."""

    def __init__(self, spec: ClusterSpec) -> None:
        """Take the cluster's spec."""
        self._spec = spec

    @classmethod
    def of(cls, target: Target) -> Nodes | None:
        """The nodes of a cluster, or None where this program does not own them."""
        if target.backend != "embedded":
            return None
        spec = next((s for s in _clusters() if s.context == target.context), None)
        return cls(spec) if spec else None

    @property
    def control_plane(self) -> str:
        """The name of the node with the API server and the registry."""
        return self._spec.control_plane.name

    def stop(self, node: str, component: str) -> None:
        """Kill a program and keep it down."""
        init_client.ask(self._folder(node), "stop", component)

    def start(self, node: str, component: str, *, seconds: float = 60) -> None:
        """Start a program that was stopped, and wait until it is ready."""
        init_client.ask(self._folder(node), "start", component)
        self._wait(node, component, 0, seconds)

    def restart(self, node: str, component: str, *, seconds: float = 60) -> None:
        """Kill a program and wait until the node's init has started it again and it is ready."""
        folder = self._folder(node)
        before = int(init_client.status(folder).get(component, {}).get("restarts", 0))
        init_client.ask(folder, "kill", component)
        self._wait(node, component, before + 1, seconds)

    def kill(self, node: str) -> None:
        """End everything on a node at once, as a power cut would."""
        embedded.kill_node(self._spec, self._node(node))

    def boot(self, node: str) -> None:
        """Start a node that was killed; nothing happens if it runs."""
        running = {status.name: status.running for status in embedded.status(self._spec)}
        if not running[node]:
            embedded.start_node(self._spec, self._node(node))

    def connect(self, node: str, *, connected: bool) -> None:
        """Cut a node off the network, or connect it again."""
        switch = launch.identity(self._spec.folder)
        if switch is None:
            raise ComponentFailed(f"cluster {self._spec.name!r}: its network is gone; run cluster-up to build it anew")
        network.set_port(self._spec, self._node(node), switch.pid, up=connected)

    def kill_engine(self, pod_uid: str) -> None:
        """Send SIGKILL to every process in a pod but its sandbox's.

        Raises:
            UsageError: there is none on this machine.
        """
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                inside = f"pod{pod_uid}" in (entry / "cgroup").read_text()
                if inside and (entry / "comm").read_text().strip() != "pause":
                    found.append(int(entry.name))
        if not found:
            raise UsageError(f"no process of pod {pod_uid} runs on this machine")
        for pid in found:
            with suppress(ProcessLookupError):
                identity = ProcessIdentity.of(pid)
                if identity and identity.alive():
                    os.kill(pid, signal.SIGKILL)

    def _wait(self, node: str, component: str, restarts: int, seconds: float) -> None:
        def missing() -> str:
            # An init that has just begun has not written its state yet.
            unit = init_client.status(self._folder(node)).get(component, {})
            ready = unit.get("state") == READY and int(unit["restarts"]) >= restarts
            return "" if ready else f"{node}: {component} is not ready: {unit or 'nothing is known of it'}"

        wait_until(missing, seconds, every=_ASK_SECONDS)

    def _node(self, name: str) -> NodeSpec:
        return next(node for node in self._spec.nodes if node.name == name)

    def _folder(self, node: str) -> Path:
        return self._spec.node_folder(self._node(node))


def _clusters() -> list[ClusterSpec]:
    specs = [ClusterSpec.load(folder.name) for folder in state_root().glob("*") if (folder / "cluster.json").exists()]
    return [spec for spec in specs if spec]
