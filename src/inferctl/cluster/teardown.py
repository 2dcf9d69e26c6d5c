"""Takes an embedded cluster down, whatever state it is in, as often as asked.

Everything that a cluster has outside its folder can be found from its name alone: processes by the marker in
their environment, the host's link and the control groups by name. So nothing depends on how far its start
came or on what was written down. Namespaces and mounts end with the processes.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.cluster import kubeconfig, network
from inferctl.cluster.node import cgroup
from inferctl.cluster.spec import SPEC_FILE
from inferctl.errors import EnvironmentProblem
from inferctl.process.identity import marked

if TYPE_CHECKING:
    from inferctl.cluster.spec import ClusterSpec

_PROCESS_SECONDS = 10.0
_CGROUP_SECONDS = 10.0


def remove(spec: ClusterSpec) -> None:
    """Remove every trace of the cluster; the caller holds its lock.

    Raises:
        EnvironmentProblem: something could not be removed; the message lists what and how to look into it.
    """
    problems = [*_end_processes(spec), *_remove_cgroups(spec)]
    network.remove_host_link(spec.host_link)
    if spec.folder.exists():
        problems += _remove_files(spec)
    if problems:
        raise EnvironmentProblem(f"cluster {spec.name!r} is not quite gone:\n" + "\n".join(f"- {p}" for p in problems))


def _remove_files(spec: ClusterSpec) -> list[str]:
    if not spec.folder.is_dir():
        return [f"{spec.folder} is no folder; remove it yourself, or choose another --name"]
    if not spec.is_saved and any(spec.folder.iterdir()):
        return [f"{spec.folder} holds files that are no cluster's; remove it yourself, or choose another --name"]
    if mounts := mounted_below(spec.folder):
        return [f"{mount} is still mounted; unmount it with: umount {mount}" for mount in mounts]
    problems = kubeconfig.remove_context(spec)
    # What tells the folder from a stranger's goes last, so that an interrupted removal can be taken up again.
    for entry in sorted(spec.folder.iterdir(), key=lambda entry: entry.name == SPEC_FILE):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    spec.folder.rmdir()
    return problems


def mounted_below(folder: Path) -> list[str]:
    """What this process sees mounted in a folder; removing files through a live mount would reach other things."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return sorted((point for point in points if Path(point).is_relative_to(folder)), reverse=True)


def _end_processes(spec: ClusterSpec) -> list[str]:
    deadline = time.monotonic() + _PROCESS_SECONDS
    # One that was about to start another may have done so meanwhile: look until none is found.
    while processes := list(marked(spec.marker)):
        for process in processes:
            process.kill()
        stuck = [process for process in processes if not process.wait_gone(deadline)]
        if stuck:
            return [f"process {p.pid} does not end; look at it with: cat /proc/{p.pid}/stack" for p in stuck]
    return []


def _remove_cgroups(spec: ClusterSpec) -> list[str]:
    left = cgroup.remove(spec.cgroup, deadline=time.monotonic() + _CGROUP_SECONDS)
    return [f"control group {group} is still in use; see {group}/cgroup.procs" for group in left]
