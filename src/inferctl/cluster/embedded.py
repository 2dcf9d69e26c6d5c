"""The embedded cluster: real Kubernetes whose nodes are namespaces of this machine."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inferctl.cluster import init_client, kubeconfig, launch, network, plans, preflight, system, teardown
from inferctl.cluster.lock import choosing_network, locked
from inferctl.cluster.node.supervisor import FAILED, READY
from inferctl.cluster.pki import CertificateAuthority
from inferctl.cluster.spec import ClusterSpec, NodeSpec
from inferctl.errors import ComponentFailed, DeadlineExceeded
from inferctl.images.seed import Seed
from inferctl.process.command import tail

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from inferctl.console import Progress

_CONTROL_PLANE_SECONDS = 120
_USABLE_SECONDS = 120
_POLL_SECONDS = 0.05
#: Written when a cluster has become usable once; without it, a start was cut short.
_USABLE = "usable"
_REPAIR_SECONDS = 60


@dataclass(frozen=True)
class NodeStatus:
    """One node as its init sees it; ``components`` is empty when the init is gone."""

    name: str
    running: bool
    components: dict[str, dict[str, object]]


def up(spec: ClusterSpec, progress: Progress, *, retain: bool = False) -> ClusterSpec:
    """Bring a cluster up and return when pods of it can be served.

    A cluster that answers is left as it is; a node of it that was killed is booted again. What a crash or a
    reboot left behind is removed first.

    Args:
        spec: what to bring up; where the cluster exists, its own spec counts; a new one gets a network that is free.
        progress: told of each step.
        retain: keep what is there when it fails, for a look at its logs.

    Raises:
        ComponentFailed: a component exited or was not ready in time; the message has the end of its log.
        DeadlineExceeded: all components run, but the cluster did not become usable.
        EnvironmentProblem: another inferctl is changing this cluster.
    """
    with locked(spec):
        existing = ClusterSpec.load(spec.name)
        if existing and _was_started(existing):
            _repair(existing, progress)
            progress.say(f"cluster {spec.name!r} is up")
            return existing
        if existing or spec.folder.exists():
            with progress.step(f"removing what is left of cluster {spec.name!r}"):
                teardown.remove(spec)
        with _removed_on_failure(spec, retain=retain):
            spec, switch = _connect(spec)
            _start(spec, switch, progress)
        return spec


def _was_started(spec: ClusterSpec) -> bool:
    """Whether the cluster was usable once and its network is still there."""
    switch = launch.identity(spec.folder)
    return (spec.folder / _USABLE).exists() and switch is not None and switch.alive()


def _repair(spec: ClusterSpec, progress: Progress) -> None:
    for node, state in zip(spec.nodes, status(spec), strict=True):
        if not state.running:
            with progress.step(f"booting node {node.name}, which was down"):
                start_node(spec, node)
    try:
        _wait_ready(spec, list(spec.nodes), None, _REPAIR_SECONDS)
    except DeadlineExceeded as error:
        raise ComponentFailed(
            f"{error}; a stopped component is started by whoever stopped it; else: ./just cluster-down"
        ) from error


def down(spec: ClusterSpec) -> None:
    """Take a cluster down from whatever state it is in; nothing happens if there is none."""
    with locked(spec):
        teardown.remove(spec)


def healthy(spec: ClusterSpec) -> bool:
    """Whether all nodes' components are ready; one that is stopped or restarting makes it False."""
    return all(
        node.running and node.components and all(c["state"] == READY for c in node.components.values())
        for node in status(spec)
    )


def status(spec: ClusterSpec) -> list[NodeStatus]:
    """The state of each node and its components."""
    found = []
    for node in spec.nodes:
        folder = spec.node_folder(node)
        identity = launch.identity(folder)
        running = identity is not None and identity.alive()
        found.append(NodeStatus(node.name, running, init_client.status(folder) if running else {}))
    return found


def kill_node(spec: ClusterSpec, node: NodeSpec) -> None:
    """End everything on a node at once, as a power cut would."""
    identity = launch.identity(spec.node_folder(node))
    if identity:
        identity.kill()
        identity.wait_gone(time.monotonic() + 10)


def start_node(spec: ClusterSpec, node: NodeSpec) -> None:
    """Boot a node that was killed; its disk is as it was."""
    switch = launch.identity(spec.folder)
    if switch is None or not switch.alive():
        raise ComponentFailed(f"cluster {spec.name!r}: its network is gone; run cluster-up to build it anew")
    folder = spec.node_folder(node)
    for leftover in ("init.sock", "status.json"):
        (folder / leftover).unlink(missing_ok=True)
    process = launch.node(spec, node)
    try:
        _join(spec, node, process, switch.pid)
    except BaseException:
        # Half a node would never begin, and the next start would wait for it in vain.
        kill_node(spec, node)
        raise


def _connect(spec: ClusterSpec) -> tuple[ClusterSpec, int]:
    """Choose a network and take it; the host's route to it is there before another cluster chooses."""
    with choosing_network():
        spec = replace(spec, index=preflight.free_index(spec))
        spec.save()
        switch = launch.switch(spec).pid
        network.wait_namespace(switch)
        network.make_bridge(spec, switch)
    return spec, switch


def _start(spec: ClusterSpec, switch: int, progress: Progress) -> None:
    seed = Seed.read()
    with progress.step("certificates and configuration"):
        authority = CertificateAuthority(spec.folder / "pki")
        plans.write(spec, authority, seed)
        seed.copy_into(spec.folder / "registry")
    with progress.step(f"starting {len(spec.nodes)} nodes"):
        processes = [launch.node(spec, node) for node in spec.nodes]
        for node, process in zip(spec.nodes, processes, strict=True):
            _join(spec, node, process, switch)
    with progress.step("control plane"):
        # Half a second of kubectl, for which nobody waits here.
        kubeconfig.add_context(spec)
        _wait_ready(spec, [spec.control_plane], {"kube-apiserver", "registry"}, _CONTROL_PLANE_SECONDS)
    with progress.step("nodes Ready, DNS answering"):
        api = system.client(spec)
        system.install(api, coredns=seed.coredns, pause=seed.pause, seconds=_USABLE_SECONDS)
        try:
            system.wait_usable(api, spec, seconds=_USABLE_SECONDS)
        except DeadlineExceeded:
            _raise_failed(spec, list(spec.nodes))
            raise
        _wait_ready(spec, list(spec.nodes), None, _USABLE_SECONDS)
    (spec.folder / _USABLE).touch()


def _join(spec: ClusterSpec, node: NodeSpec, process: subprocess.Popen[bytes], switch: int) -> None:
    """Connect a node to the network and have its init begin."""
    network.wait_namespace(process.pid)
    network.attach(spec, node, process.pid, switch)
    folder = spec.node_folder(node)
    deadline = time.monotonic() + _CONTROL_PLANE_SECONDS
    while not (folder / "init.sock").exists():
        if process.poll() is not None:
            log = folder / "init.log"
            raise ComponentFailed(
                f"node {node.name}: its init exited with code {process.returncode}\n{tail(log.read_text())}\nlog: {log}"
            )
        if time.monotonic() > deadline:
            raise ComponentFailed(f"node {node.name}: its init is not there after {_CONTROL_PLANE_SECONDS} s")
        time.sleep(_POLL_SECONDS)
    init_client.ask(folder, "begin")


def _wait_ready(spec: ClusterSpec, nodes: list[NodeSpec], wanted: set[str] | None, seconds: float) -> None:
    """Wait until components are ready: the wanted ones, or all."""
    deadline = time.monotonic() + seconds
    while True:
        _raise_failed(spec, nodes)
        late = []
        for node in nodes:
            known = init_client.status(spec.node_folder(node))
            names = wanted or set(known) or {"init"}
            late += [f"{node.name}/{name}" for name in names if known.get(name, {}).get("state") != READY]
        if not late:
            return
        if time.monotonic() > deadline:
            raise DeadlineExceeded(f"not ready after {seconds:.0f} s: {', '.join(sorted(late))}")
        time.sleep(_POLL_SECONDS)


def _raise_failed(spec: ClusterSpec, nodes: list[NodeSpec]) -> None:
    for node in nodes:
        folder = spec.node_folder(node)
        for name, component in init_client.status(folder).items():
            if component["state"] == FAILED:
                log = folder / "logs" / f"{name}.log"
                said = tail(log.read_text(errors="replace")) if log.exists() else ""
                raise ComponentFailed(f"{node.name}: {name} {component['detail']}\n{said}\nlog: {log}")


@contextmanager
def _removed_on_failure(spec: ClusterSpec, *, retain: bool) -> Iterator[None]:
    """Remove a cluster whose start failed or was interrupted, but keep its logs where the message points to."""
    try:
        yield
    except BaseException as error:
        if retain:
            error.add_note(f"kept for inspection: {spec.folder}; remove it with: ./just cluster-down")
            raise
        kept = spec.folder.parent / f"{spec.name}.failed-logs"
        shutil.rmtree(kept, ignore_errors=True)
        for node in spec.nodes:
            logs = spec.node_folder(node) / "logs"
            if logs.exists():
                shutil.copytree(logs, kept / node.name)
        teardown.remove(spec)
        raise
