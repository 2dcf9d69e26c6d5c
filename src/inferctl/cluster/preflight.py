"""What a machine must have for an embedded cluster. Every lack is found before anything is changed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.cluster import kubeconfig, network
from inferctl.cluster.node import cgroup
from inferctl.cluster.spec import NODE_NETWORKS, ClusterSpec
from inferctl.errors import EnvironmentProblem
from inferctl.paths import state_root

if TYPE_CHECKING:
    from collections.abc import Callable

# Measured: a cluster with the mock image and three nodes' copies of it takes 0.6 GiB; programs to build, 5 GiB more.
_STATE_BYTES = 2 * 1024**3
# Measured: three kubelets, containerds and kube-proxies and the API server hold 32 instances together when nothing
# runs, and a kubelet one more for each log that is followed; a test follows up to ten.
_INOTIFY_INSTANCES = 48
_INOTIFY_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
_V1_NEEDED = {"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer"}
_V2_NEEDED = {"cpu", "cpuset", "memory", "pids"}
_SYSTEM_PROGRAMS = {
    "nft": "nftables",
    "unshare": "util-linux",
    "mount": "mount",
    "mmdebstrap": "mmdebstrap",
    "tar": "tar",
    "gzip": "gzip",
}

# kube-proxy of older versions writes its rules by them.
_OLDER_PROGRAMS = {"iptables": "iptables", "conntrack": "conntrack"}


@dataclass(frozen=True)
class Problem:
    """One thing that is lacking, and what to do about it."""

    what: str
    fix: str

    def __str__(self) -> str:
        """Both, in one line."""
        return f"{self.what}; {self.fix}"


def require(spec: ClusterSpec) -> None:
    """Check everything.

    Raises:
        EnvironmentProblem: something is lacking; the message lists all of it, each with its fix.
    """
    problems = check(spec)
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise EnvironmentProblem(f"this machine cannot run an embedded cluster yet:\n{listed}\nNothing was changed.")


def check(spec: ClusterSpec) -> list[Problem]:
    """Everything that is lacking; without root, only what can be seen without it."""
    if sys.platform != "linux":
        return [Problem(f"the system is {sys.platform}", "the embedded cluster needs Linux; use --backend kind")]
    if platform.machine() != "x86_64":
        return [Problem(f"the processor is {platform.machine()}", "the images are for x86_64; use --backend kind")]
    checks: list[Callable[[], list[Problem]]] = [
        _root,
        _kubeconfig,
        lambda: _programs(spec),
        _cgroups,
        _inotify,
        _space,
    ]
    checks += [_namespaces, _overlay, _firewall] if os.geteuid() == 0 else []
    return [problem for one in checks for problem in one()] + _addresses(spec)


def free_index(spec: ClusterSpec) -> int:
    """The index of the first node network that neither another cluster nor a route of the host uses.

    Raises:
        EnvironmentProblem: none is free; the message names what is in the way.
    """
    taken = {other.index for other in others(spec)}
    in_the_way = []
    for index, candidate in enumerate(NODE_NETWORKS.subnets(new_prefix=24)):
        if index in taken:
            continue
        routes = network.overlaps(candidate, own_link=spec.host_link)
        if not routes:
            return index
        in_the_way += routes
    raise EnvironmentProblem(
        f"no /24 of {NODE_NETWORKS} is free for the node network: the host has routes to "
        f"{', '.join(sorted(set(in_the_way)))}; remove one of them with: ip route del ROUTE"
    )


def others(spec: ClusterSpec) -> list[ClusterSpec]:
    """The other embedded clusters of this machine that have a folder."""
    names = [entry.name for entry in state_root().glob("*") if (entry / "cluster.json").exists()]
    return [other for name in names if name != spec.name and (other := ClusterSpec.load(name))]


def _root() -> list[Problem]:
    if os.geteuid() == 0:
        return []
    return [Problem(f"user id {os.geteuid()} is not root", "run it with: sudo ./just cluster-up")]


def _kubeconfig() -> list[Problem]:
    problem = kubeconfig.unreadable(kubeconfig.user_file())
    return [Problem(problem, "mend it, or let KUBECONFIG name another file")] if problem else []


def _programs(spec: ClusterSpec) -> list[Problem]:
    needed = {**_SYSTEM_PROGRAMS, **(_OLDER_PROGRAMS if spec.kubernetes else {})}
    lacking = {program: package for program, package in needed.items() if not shutil.which(program)}
    if not lacking:
        return []
    packages = " ".join(sorted(set(lacking.values())))
    return [Problem(f"not installed: {', '.join(lacking)}", f"install with: apt-get install -y {packages}")]


def _cgroups() -> list[Problem]:
    if cgroup.unified():
        offered = set(Path("/sys/fs/cgroup/cgroup.controllers").read_text().split())
        lacking = _V2_NEEDED - offered
    else:
        table = [line.split() for line in Path("/proc/cgroups").read_text().splitlines()[1:]]
        mounted = {name for root in cgroup.hierarchies() for name in root.name.split(",")}
        lacking = _V1_NEEDED - {fields[0] for fields in table if fields[3] == "1"} & mounted
    if not lacking:
        return []
    names = ", ".join(sorted(lacking))
    return [Problem(f"control group controllers not available: {names}", "enable them in the kernel's command line")]


def _overlay() -> list[Problem]:
    # Tried, not looked up: the kernel loads what it needs when it is asked to mount.
    refused = _refused(["unshare", "--mount", "mount", "-t", "overlay", "-o", "lowerdir=/etc:/usr", "none", "/tmp"])  # noqa: S108 - a mount point that always exists
    if not refused:
        return []
    return [Problem(f"the kernel refuses overlay mounts ({refused})", "load the module with: modprobe overlay")]


def _inotify() -> list[Problem]:
    # Where none is left nothing fails at once: logs stop being followed, and a test would hear nothing.
    limit, used = int(_INOTIFY_LIMIT.read_text()), _inotify_in_use()
    if limit - used >= _INOTIFY_INSTANCES:
        return []
    fix = f"raise it with: sysctl fs.inotify.max_user_instances={used + 8 * _INOTIFY_INSTANCES}"
    what = (
        f"fs.inotify.max_user_instances is {limit} and {used} are in use, "
        f"where a cluster needs {_INOTIFY_INSTANCES} more"
    )
    return [Problem(what, fix)]


def _inotify_in_use(processes: Path = Path("/proc")) -> int:
    """How many of this user's inotify instances are open."""
    count = 0
    for process in processes.iterdir():
        with suppress(OSError):
            if process.name.isdigit() and process.stat().st_uid == os.geteuid():
                links = (entry.readlink() for entry in (process / "fd").iterdir())
                count += sum(str(link) == "anon_inode:inotify" for link in links)
    return count


def _space() -> list[Problem]:
    existing = next(folder for folder in (state_root(), *state_root().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free >= _STATE_BYTES:
        return []
    return [
        Problem(
            f"{existing} has {free / 1024**3:.1f} GiB free, and {_STATE_BYTES / 1024**3:.0f} are needed",
            "free some, or set INFERCTL_STATE to a short path on a larger disk",
        )
    ]


def _namespaces() -> list[Problem]:
    refused = _refused(["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"])
    if not refused:
        return []
    return [Problem(f"new namespaces are refused ({refused})", "run it outside of a container, or in a privileged one")]


def _firewall() -> list[Problem]:
    if not shutil.which("nft"):
        return []
    rules = "add table ip t; add chain ip t c { type nat hook output priority -100; }; add rule ip t c counter redirect"
    refused = _refused(["unshare", "--net", "nft", rules])
    if not refused:
        return []
    return [Problem(f"the kernel refuses address translation ({refused})", "load it with: modprobe nft_nat nft_redir")]


def _refused(command: list[str]) -> str:
    """Why a trial command failed, in its own first line; empty if it worked."""
    try:
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""  # told by _programs
    return (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[0] if tried.returncode else ""


def _addresses(spec: ClusterSpec) -> list[Problem]:
    try:
        free_index(spec)
    except EnvironmentProblem as error:
        return [Problem(*str(error).split("; ", 1))]
    return []
