"""One inferctl at a time per cluster, and one at a time that chooses a network for a new one.

A child that was forked but has not yet become another program still holds the lock, which is what makes
"no marked process is left" a safe thing to conclude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.process.lock import Lock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from inferctl.cluster.spec import ClusterSpec


def locked(spec: ClusterSpec) -> AbstractContextManager[None]:
    """Hold the cluster's lock during the block.

    Raises:
        EnvironmentProblem: another process holds it; the message names the process.
    """
    path = spec.folder.parent / ".locks" / spec.name
    return Lock(path, f"cluster {spec.name!r}", "run as root, or let INFERCTL_STATE name another folder").held()
