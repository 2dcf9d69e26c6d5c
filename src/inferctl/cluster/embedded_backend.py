"""The embedded cluster as a backend: checks the machine first, builds its programs, then brings it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.cluster import embedded, preflight
from inferctl.cluster.inspection import running_version
from inferctl.cluster.spec import REGISTRY_NAME, ClusterSpec
from inferctl.cluster.target import Target
from inferctl.errors import EnvironmentProblem, UsageError
from inferctl.tools.build import ensure
from inferctl.tools.programs import Purpose

if TYPE_CHECKING:
    from inferctl.console import Progress

#: The versions that can be had, and what must be built for each beside the newest.
_VERSIONS: dict[str, set[Purpose]] = {"": set(), "1.30": {Purpose.OLDEST}}


class EmbeddedBackend:
    """Clusters made of namespaces of this machine."""

    name = "embedded"

    def __init__(self, cluster: str, kubernetes: str = "") -> None:
        """Work on the cluster of this name; a new one gets this version of Kubernetes.

        Raises:
            UsageError: the name cannot name a cluster, or there is no such version here.
        """
        if kubernetes not in _VERSIONS:
            known = ", ".join(filter(None, _VERSIONS))
            raise UsageError(f"Kubernetes {kubernetes!r}: write {known}, or nothing for the newest")
        self.spec = ClusterSpec.load(cluster) or ClusterSpec(cluster, kubernetes=kubernetes)
        if kubernetes and self.spec.kubernetes != kubernetes:
            raise UsageError(
                f"cluster {cluster!r} runs Kubernetes {self.spec.kubernetes or 'of the newest version'}, "
                f"not {kubernetes}; give another --name, or remove it first: inferctl cluster down --name {cluster}"
            )

    def up(self, progress: Progress, *, retain: bool = False) -> Target:
        """See `inferctl.cluster.embedded.up`."""
        if self.spec.damaged or not (self.spec.folder.exists() and embedded.healthy(self.spec)):
            preflight.require(self.spec)
            ensure({Purpose.CLUSTER, Purpose.RELEASE, *_VERSIONS[self.spec.kubernetes]}, progress)
        self.spec = embedded.up(self.spec, progress, retain=retain)
        return self.target()

    def down(self, progress: Progress) -> None:
        """Remove the cluster, whatever state it is in."""
        with progress.step(f"removing cluster {self.spec.name!r}"):
            embedded.down(self.spec)

    def target(self) -> Target:
        """How to reach the cluster.

        Raises:
            EnvironmentProblem: it is not up, or only half.
        """
        if damaged := self.spec.damaged:
            raise EnvironmentProblem(f"{damaged}; bring it up anew with: ./just cluster-up")
        if not embedded.healthy(self.spec):
            raise EnvironmentProblem(f"cluster {self.spec.name!r} is not up; bring it up with: ./just cluster-up")
        return Target(
            backend=self.name,
            kubeconfig=self.spec.kubeconfig,
            context=self.spec.context,
            push=self.spec.registry_address,
            pull=REGISTRY_NAME,
        )

    def describe(self) -> dict[str, object]:
        """The state of every node's components."""
        damaged = self.spec.damaged
        nodes = embedded.status(self.spec) if self.spec.folder.exists() and not damaged else []
        up = bool(nodes) and embedded.healthy(self.spec)
        return {
            "backend": self.name,
            "name": self.spec.name,
            "up": up,
            "problem": f"{damaged}; bring it up anew, or remove it with: ./just cluster-down" if damaged else "",
            "api": "" if damaged else self.spec.api_url,
            "registry": "" if damaged else self.spec.registry_address,
            "kubernetes": running_version(f"--kubeconfig={self.spec.kubeconfig}") if up else self.spec.kubernetes,
            "kubeconfig": str(self.spec.kubeconfig),
            "context": self.spec.context,
            "folder": str(self.spec.folder),
            "nodes": [{"name": node.name, "running": node.running, "components": node.components} for node in nodes],
        }
