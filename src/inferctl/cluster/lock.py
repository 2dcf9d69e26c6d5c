"""One inferctl at a time per cluster, and one at a time that chooses a network for a new one.

A child that was forked but has not yet become another program still holds the lock, which is what makes
"no marked process is left" a safe thing to conclude.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.process.lock import Lock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from inferctl.cluster.spec import ClusterSpec


#: Of the whole machine, whatever INFERCTL_STATE is: what it guards are the host's routes.
_NETWORKS = Path("/run/lock/inferctl-networks")
#: Another cluster's choice ends when its bridge is there, after certificates and a few processes.
_CHOICE_SECONDS = 120.0


def choosing_network() -> AbstractContextManager[None]:
    """Hold the lock of all clusters of this machine from the look at the host's routes until there is a new one.

    Raises:
        EnvironmentProblem: another process holds it for too long; the message names the process.
    """
    return Lock(_NETWORKS, "the choice of a cluster's network", "run as root").held(_CHOICE_SECONDS)


def locked(spec: ClusterSpec) -> AbstractContextManager[None]:
    """Hold the cluster's lock during the block.

    Raises:
        EnvironmentProblem: another process holds it; the message names the process.
    """
    path = spec.folder.parent / ".locks" / spec.name
    return Lock(path, f"cluster {spec.name!r}", "run as root, or let INFERCTL_STATE name another folder").held()
