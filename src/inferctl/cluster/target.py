"""A cluster as a release sees it, whichever backend it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lightkube import Client, KubeConfig

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Target:
    """How to reach a cluster and its registry.

    Attributes:
        backend: ``embedded``, ``kind`` or ``existing``.
        kubeconfig: the file to reach it with.
        context: the context in that file.
        push: the registry as this machine reaches it, ``host:port`` with an optional path.
        pull: the same registry as the nodes reach it.
        plain_http: whether the registry is pushed to without TLS.
    """

    backend: str
    kubeconfig: Path
    context: str
    push: str
    pull: str
    plain_http: bool = True

    def client(self, namespace: str = "default") -> Client:
        """A client of the cluster's API."""
        config = KubeConfig.from_file(self.kubeconfig).get(context_name=self.context)
        return Client(config, namespace=namespace, field_manager="inferctl")

    @property
    def kubectl_options(self) -> tuple[str, ...]:
        """The options by which kubectl reaches it."""
        return (f"--kubeconfig={self.kubeconfig}", f"--context={self.context}")

    @property
    def helm_options(self) -> tuple[str, ...]:
        """The options by which helm reaches it."""
        return (f"--kubeconfig={self.kubeconfig}", f"--kube-context={self.context}")
