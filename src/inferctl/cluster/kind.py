"""Clusters made by kind, for machines with a Docker engine.

The nodes' image, by digest, and the number of nodes are in local/kind-config.yml. Beside the cluster runs one
registry, a container that all kind clusters of this machine share; nodes know it as ``localhost:5001``.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from inferctl.cluster.inspection import running_version
from inferctl.cluster.kubeconfig import user_file
from inferctl.cluster.spec import REGISTRY_NAME
from inferctl.cluster.target import Target
from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.paths import ROOT, tool
from inferctl.process.command import run
from inferctl.tools.build import ensure
from inferctl.tools.programs import Purpose

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.console import Progress

CONFIG = ROOT / "local" / "kind-config.yml"
#: The registry of the distribution project, version 3, for every platform that Docker Desktop runs on.
REGISTRY_IMAGE = "registry@sha256:1be55279f18a2fe1a74edf2664cac61c1bea305b7b4642dab412e7affdcb3e33"
REGISTRY_CONTAINER = "inferctl-registry"
_NETWORK = "kind"  # kind's own; it cannot be given another
_HOSTS_FOLDER = f"/etc/containerd/certs.d/{REGISTRY_NAME}"
_HOSTS = f'[host."http://{REGISTRY_CONTAINER}:5000"]\n'
# The node image is about 400 MB, which a first start pulls.
_CREATE_SECONDS = 900
_READY = "180s"


class KindBackend:
    """Clusters whose nodes are containers."""

    name = "kind"

    def __init__(self, cluster: str) -> None:
        """Work on the cluster of this name."""
        self.cluster = cluster

    @property
    def context(self) -> str:
        """The context that kind adds to the user's kubeconfig."""
        return f"kind-{self.cluster}"

    def up(self, progress: Progress, *, retain: bool = False) -> Target:
        """Make the cluster and the registry, whichever is not there.

        Raises:
            EnvironmentProblem: no Docker engine answers.
            CommandFailed: kind or Docker failed; a cluster that was not finished is gone, unless it was to be kept.
        """
        _require_docker()
        ensure({Purpose.KIND, Purpose.RELEASE}, progress)
        if self.cluster not in _clusters():
            with progress.step(f"kind create cluster {self.cluster!r} (a first start pulls the node image)"):
                self._create(retain=retain)
        with progress.step(f"registry {REGISTRY_NAME}"):
            _run_registry()
            for node in self._nodes():
                _tell_of_registry(node["name"])
        with progress.step("waiting for nodes"):
            self._kubectl("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={_READY}")
        return self.target()

    def down(self, progress: Progress) -> None:
        """Remove the cluster, and the registry with the last of them; nothing happens if there is none."""
        _require_docker()
        ensure({Purpose.KIND}, progress)
        with progress.step(f"removing cluster {self.cluster!r}"):
            run([tool("kind"), "delete", "cluster", "--name", self.cluster])
            if not _clusters() and _registry_state():
                run(["docker", "rm", "--force", "--volumes", REGISTRY_CONTAINER])

    def target(self) -> Target:
        """How to reach the cluster.

        Raises:
            EnvironmentProblem: there is none of this name.
        """
        if not (tool("kind").exists() and shutil.which("docker")) or self.cluster not in _clusters():
            raise EnvironmentProblem(
                f"kind has no cluster {self.cluster!r}; bring it up with: ./just cluster-up --backend kind"
            )
        return Target(
            backend=self.name,
            kubeconfig=user_file(),
            context=self.context,
            push=REGISTRY_NAME,
            pull=REGISTRY_NAME,
        )

    def describe(self) -> dict[str, object]:
        """The nodes' containers, and whether all of them and the registry run."""
        _require_docker()
        nodes = self._nodes()
        up = bool(nodes) and all(node["running"] for node in nodes) and _registry_state() == "running"
        options = (f"--kubeconfig={user_file()}", f"--context={self.context}")
        return {
            "backend": self.name,
            "name": self.cluster,
            "up": up,
            "kubernetes": running_version(*options) if up else "",
            "registry": REGISTRY_NAME,
            "kubeconfig": str(user_file()),
            "context": self.context,
            "nodes": nodes,
        }

    def _create(self, *, retain: bool) -> None:
        # kind makes its context the current one; what a user works with stays as it was.
        before = _current_context()
        options: list[str | Path] = ["--name", self.cluster, "--config", CONFIG, "--wait", _READY]
        options += ["--retain"] if retain else []
        run([tool("kind"), "create", "cluster", *options], deadline=_CREATE_SECONDS)
        if before:
            run([tool("kubectl"), "config", "use-context", before])

    def _nodes(self) -> list[dict[str, object]]:
        label = f"label=io.x-k8s.kind.cluster={self.cluster}"
        listed = run(["docker", "ps", "--all", "--filter", label, "--format", "{{json .}}"])
        rows = [json.loads(line) for line in listed.splitlines()]
        found = [{"name": row["Names"], "running": row["State"] == "running", "components": {}} for row in rows]
        return sorted(found, key=lambda node: str(node["name"]))

    def _kubectl(self, *arguments: str) -> None:
        run([tool("kubectl"), f"--kubeconfig={user_file()}", f"--context={self.context}", *arguments])


def _require_docker() -> None:
    if not shutil.which("docker"):
        raise EnvironmentProblem("docker is not installed, and --backend kind needs it; install a Docker engine")
    try:
        run(["docker", "info"], deadline=20)
    except CommandFailed as error:
        raise EnvironmentProblem(
            f"no Docker engine answers, and --backend kind needs one; start it, so that 'docker info' answers ({error})"
        ) from error


def _clusters() -> list[str]:
    # Where there is none, kind says so on standard error and prints nothing.
    return run([tool("kind"), "get", "clusters"]).split()


def _current_context() -> str:
    try:
        return run([tool("kubectl"), "config", "current-context"]).strip()
    except CommandFailed:
        return ""


def _registry_state() -> str:
    """What Docker calls the state of the registry's container; empty if there is none."""
    listed = run(["docker", "ps", "--all", "--filter", f"name=^{REGISTRY_CONTAINER}$", "--format", "{{.State}}"])
    return listed.strip()


def _run_registry() -> None:
    state = _registry_state()
    if not state:
        port = REGISTRY_NAME.rpartition(":")[2]
        # Only this machine reaches it: it asks for no password.
        options = ["--detach", "--restart=always", f"--publish=127.0.0.1:{port}:5000", f"--name={REGISTRY_CONTAINER}"]
        run(["docker", "run", *options, REGISTRY_IMAGE])
    elif state != "running":
        run(["docker", "start", REGISTRY_CONTAINER])
    networks = json.loads(run(["docker", "inspect", "--format={{json .NetworkSettings.Networks}}", REGISTRY_CONTAINER]))
    if _NETWORK not in networks:
        run(["docker", "network", "connect", _NETWORK, REGISTRY_CONTAINER])


def _tell_of_registry(node: object) -> None:
    run(["docker", "exec", str(node), "mkdir", "-p", _HOSTS_FOLDER])
    run(["docker", "exec", "-i", str(node), "cp", "/dev/stdin", f"{_HOSTS_FOLDER}/hosts.toml"], stdin=_HOSTS)
