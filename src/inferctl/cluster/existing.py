"""A cluster that the user has: reached through a context of their kubeconfig, never made, changed or removed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from inferctl.cluster import kubeconfig
from inferctl.cluster.target import Target
from inferctl.errors import CommandFailed, EnvironmentProblem, UsageError
from inferctl.paths import tool
from inferctl.process.command import run
from inferctl.tools.build import ensure
from inferctl.tools.programs import Purpose

if TYPE_CHECKING:
    from inferctl.console import Progress

_REGISTRY = "INFERCTL_REGISTRY"
_PULL = "INFERCTL_REGISTRY_PULL"
_PLAIN_HTTP = "INFERCTL_REGISTRY_PLAIN_HTTP"
_OLDEST = (1, 30)  # Chart.yaml's kubeVersion: the native sleep of preStop
#: How kubectl ends that finds neither a certificate nor a token, and asks for a user name that nobody types.
_ASKED = "\nerror: EOF"
_ADDRESS = re.compile(r"[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._/-][a-z0-9]+)*)?")


class ExistingBackend:
    """Any cluster with a kubeconfig, and any registry that both this machine and the cluster reach."""

    name = "existing"

    def __init__(self, context: str) -> None:
        """Work on the cluster of this context; it must be named, since the current one may be anything.

        Raises:
            UsageError: no context is named, or the kubeconfig has none of this name.
        """
        self.kubeconfig = _kubeconfig()
        self.context = context
        known = _contexts(self.kubeconfig)
        listed = f"{self.kubeconfig} has: {', '.join(known) or 'none'}"
        if not context:
            raise UsageError(f"--backend existing needs the context to work with: --name CONTEXT; {listed}")
        if context not in known:
            raise UsageError(f"context {context!r}: there is none of this name; {listed}")

    def up(self, progress: Progress, *, retain: bool = False) -> Target:  # noqa: ARG002 - nothing is started here
        """Check that the cluster answers and is new enough; it is left as it is.

        Raises:
            EnvironmentProblem: it does not answer or is too old, or no registry is named.
        """
        target = self.target()
        ensure({Purpose.RELEASE}, progress)
        with progress.step(f"asking the cluster of context {self.context!r}"):
            _, problem = self._version()
        if problem:
            raise EnvironmentProblem(f"the cluster of context {self.context!r} cannot be used: {problem}\n{self._hint}")
        return target

    def down(self, progress: Progress) -> None:
        """Leave the cluster alone: it was not made here."""
        progress.say(f"the cluster of context {self.context!r} was not made by inferctl and is left as it is")

    def target(self) -> Target:
        """How to reach the cluster and the user's registry.

        Raises:
            EnvironmentProblem: no registry is named, or its address is none.
        """
        push = _registry_address(_REGISTRY)
        if not push:
            raise EnvironmentProblem(
                f"no registry is named that the cluster pulls from; set {_REGISTRY}=HOST[:PORT][/PATH], "
                f"and {_PULL} too if the cluster knows it by another address"
            )
        return Target(
            backend=self.name,
            kubeconfig=self.kubeconfig,
            context=self.context,
            push=push,
            pull=_registry_address(_PULL) or push,
            plain_http=os.environ.get(_PLAIN_HTTP, "") not in {"", "0", "false"},
        )

    def describe(self) -> dict[str, object]:
        """Whether a release can be put there, and why not."""
        version, problem = self._version()
        return {
            "backend": self.name,
            "name": self.context,
            "up": not problem,
            "problem": f"{problem}; {self._hint}" if problem else "",
            "kubernetes": version,
            "registry": os.environ.get(_REGISTRY, ""),
            "kubeconfig": str(self.kubeconfig),
            "context": self.context,
            "nodes": [] if problem else self._nodes(),
        }

    @property
    def _hint(self) -> str:
        return f"see what this says: kubectl --kubeconfig {self.kubeconfig} --context {self.context} version"

    def _version(self) -> tuple[str, str]:
        """The version of the cluster, and why no release can be put there; empty what does not apply."""
        try:
            # Every account may ask for the version; a team's often may not look at nodes.
            answer = json.loads(self._kubectl("get", "--raw", "/version"))
            version, minor = str(answer["gitVersion"]), int(re.sub(r"\D.*", "", answer["minor"]))
            new_enough = (int(answer["major"]), minor) >= _OLDEST
        except CommandFailed as error:
            if str(error).endswith(_ASKED):
                return "", "kubectl asks for a user name: the kubeconfig has no credentials for the context's user"
            return "", str(error).splitlines()[-1]
        except (ValueError, LookupError, TypeError) as error:
            return "", f"what answers is no Kubernetes ({error})"
        if new_enough:
            return version, ""
        return version, f"it is Kubernetes {version}, and the chart needs {'.'.join(map(str, _OLDEST))} or later"

    def _nodes(self) -> list[dict[str, object]]:
        """The nodes, as far as this account may look at them."""
        try:
            listed = json.loads(self._kubectl("get", "nodes", "-o", "json"))["items"]
        except (CommandFailed, ValueError, LookupError):
            return []
        return [
            {
                "name": node["metadata"]["name"],
                "running": any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"]),
                "components": {},
                "version": node["status"]["nodeInfo"]["kubeletVersion"],
            }
            for node in listed
        ]

    def _kubectl(self, *words: str) -> str:
        options = [f"--kubeconfig={self.kubeconfig}", f"--context={self.context}", "--request-timeout=10s"]
        return run([tool("kubectl"), *options, *words], deadline=60)


def _kubeconfig() -> Path:
    files = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if len(files) > 1:
        raise UsageError(
            f"KUBECONFIG names {len(files)} files, and one is needed here; "
            "make one of them with: kubectl config view --flatten > FILE"
        )
    path = Path(files[0]) if files else Path.home() / ".kube" / "config"
    if not path.is_file():
        raise EnvironmentProblem(f"{path} is no file; set KUBECONFIG to the kubeconfig of the cluster")
    return path


def _contexts(path: Path) -> list[str]:
    if problem := kubeconfig.unreadable(path):
        raise EnvironmentProblem(f"{problem}; set KUBECONFIG to the kubeconfig of the cluster")
    content = yaml.safe_load(path.read_text()) or {}
    return sorted(str(entry["name"]) for entry in content.get("contexts") or ())


def _registry_address(variable: str) -> str:
    address = os.environ.get(variable, "").strip("/")
    if address and not _ADDRESS.fullmatch(address):
        raise UsageError(f"{variable}={address!r}: write HOST[:PORT][/PATH] without a scheme, tag or digest")
    return address
