"""Where a cluster comes from: which backends there are, and which one a user gets who names none."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Protocol

from inferctl.cluster.spec import DEFAULT_CLUSTER
from inferctl.errors import CommandFailed, EnvironmentProblem, UsageError
from inferctl.process.command import run

if TYPE_CHECKING:
    from inferctl.cluster.target import Target
    from inferctl.console import Progress


class Backend(Protocol):
    """A source of clusters."""

    name: str

    def up(self, progress: Progress, *, retain: bool = False) -> Target:
        """Bring the cluster up if it is not, and say how to reach it."""

    def down(self, progress: Progress) -> None:
        """Remove the cluster; nothing happens if there is none."""

    def target(self) -> Target:
        """How to reach the cluster that is up; an `EnvironmentProblem` if none is."""

    def describe(self) -> dict[str, object]:
        """The state of the cluster: ``up`` (bool), ``backend``, ``name`` and more that the backend knows."""


def choose(name: str = "", cluster: str = "", kubernetes: str = "") -> Backend:
    """The backend of this name, or the one that fits this machine.

    Args:
        name: ``embedded``, ``kind``, ``existing``, or empty: ``INFERCTL_BACKEND``, else embedded on Linux as root,
            else kind where a Docker engine answers. ``existing`` is never chosen unasked.
        cluster: the cluster's name; ``INFERCTL_CLUSTER_NAME`` or the default if empty. An existing cluster's name is
            its context, which has no default.
        kubernetes: the version for a new embedded cluster; the newest if empty.

    Raises:
        UsageError: there is no backend of this name.
        EnvironmentProblem: none fits this machine.
    """
    named = cluster or os.environ.get("INFERCTL_CLUSTER_NAME", "")
    backend = name or os.environ.get("INFERCTL_BACKEND", "") or _fitting()
    if kubernetes and backend in {"kind", "existing"}:
        raise UsageError(f"--kubernetes {kubernetes}: only the embedded cluster has other versions, not {backend}")
    # Imported when it is chosen: the cluster's client and cryptography take longer to load than a mistake to tell.
    match backend:
        case "embedded":
            from inferctl.cluster.embedded_backend import EmbeddedBackend  # noqa: PLC0415 - see above

            return EmbeddedBackend(named or DEFAULT_CLUSTER, kubernetes)
        case "kind":
            from inferctl.cluster.kind import KindBackend  # noqa: PLC0415 - see above

            return KindBackend(named or DEFAULT_CLUSTER)
        case "existing":
            from inferctl.cluster.existing import ExistingBackend  # noqa: PLC0415 - see above

            return ExistingBackend(named)
        case unknown:
            raise UsageError(f"backend {unknown!r}: write embedded, kind or existing")


def _fitting() -> str:
    if sys.platform == "linux" and os.geteuid() == 0:
        return "embedded"
    if shutil.which("docker") and _docker_answers():
        return "kind"
    raise EnvironmentProblem(
        "no cluster can be made here. There are two ways:\n"
        "- embedded (Linux, no Docker): run as root, for example with sudo\n"
        "- kind: start a Docker engine, so that 'docker info' answers\n"
        "or use a cluster that you have: --backend existing --name CONTEXT"
    )


def _docker_answers() -> bool:
    try:
        run(["docker", "info"], deadline=20)
    except CommandFailed:
        return False
    return True
