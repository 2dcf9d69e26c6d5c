"""A node's own view of the file system: private copies of the folders that node programs share by name.

Kubelets of one host would delete each other's pod logs, containerds would race for sockets below /run, and CNI
would leave its namespaces behind. Everything here happens in the node's mount namespace and ends with it; not
one folder is made on the host outside the node's own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferctl.cluster.node.plan import NodePlan

#: Folders of the host that a node replaces with its own.
_PRIVATE = ("/var/lib", "/var/log")
_RUN_SIZE = "size=256m"


def build(plan: NodePlan) -> None:
    """Make the node's view; called once, by the node's init, in a mount namespace of its own.

    Raises:
        subprocess.CalledProcessError: a mount was refused; its message is on standard error.
    """
    _mount("--make-rslave", "/")
    # The new /run is filled before it hides the old one, since the programs may be anywhere.
    staging = _folder(plan.folder, "run")
    _mount("-t", "tmpfs", "-o", _RUN_SIZE, "tmpfs", staging)
    _mount("--bind", plan.tools, _folder(staging, "inferctl", "tools"))
    # Links, not mounts of single files: runc runs a copy of itself from an overlay, in which such a mount is not seen.
    for name, program in plan.programs.items():
        Path(_folder(staging, "inferctl", "bin"), name).symlink_to(f"../tools/{program}")
    for hidden in _PRIVATE:
        own = _folder(plan.folder, hidden.strip("/").replace("/", "-"))
        if Path(plan.state_root).is_relative_to(hidden):
            kept = _folder(own, str(Path(plan.state_root).relative_to(hidden)))
            _mount("--rbind", plan.state_root, kept)
        _mount("--rbind", own, hidden)
    _mount("--rbind", staging, "/run")
    # Volumes that the kubelet mounts must reach the containers' own mount namespaces.
    _mount("--make-rshared", "/")


def _folder(*parts: str) -> str:
    path = Path(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
