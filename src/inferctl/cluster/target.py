"""A cluster as a release sees it, whichever backend it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ConfigError

from inferctl.errors import EnvironmentProblem

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
        """A client of the cluster's API.

        Raises:
            EnvironmentProblem: the kubeconfig does not say how to reach it.
        """
        try:
            config = KubeConfig.from_file(self.kubeconfig).get(context_name=self.context)
            return Client(config, namespace=namespace, field_manager="inferctl")
        # What a file may hold in the place of what is looked for, down to a certificate that is none.
        except (ConfigError, yaml.YAMLError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            said = str(error).splitlines() or ["it holds no kubeconfig"]
            raise EnvironmentProblem(
                f"context {self.context!r} of the kubeconfig {self.kubeconfig} cannot be used ({said[0]}); "
                f"see what this says: kubectl --kubeconfig {self.kubeconfig} --context {self.context} version"
            ) from error

    @property
    def kubectl_options(self) -> tuple[str, ...]:
        """The options by which kubectl reaches it."""
        return (f"--kubeconfig={self.kubeconfig}", f"--context={self.context}")

    @property
    def helm_options(self) -> tuple[str, ...]:
        """The options by which helm reaches it."""
        return (f"--kubeconfig={self.kubeconfig}", f"--kube-context={self.context}")
