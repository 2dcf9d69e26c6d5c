"""The control group of a node, on a host with version 1, version 2 or a mix of both.

The node's own programs live in its ``system`` child, since version 2 allows processes only in leaves; pods go
to ``kubepods`` beside it, where the kubelet puts them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_V2_CONTROLLERS = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids")
_CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")


def unified() -> bool:
    """Whether the host uses version 2 alone."""
    return (_MOUNT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    """The root of each hierarchy in which groups are made."""
    if unified():
        return [_MOUNT]
    return [
        Path(fields[1])
        for fields in map(str.split, Path("/proc/mounts").read_text().splitlines())
        if fields[2] in ("cgroup", "cgroup2") and Path(fields[1]).is_relative_to(_MOUNT)
    ]


def enter(name: str) -> None:
    """Make the group ``name`` with all controllers, and move this process into its ``system`` child."""
    for root in hierarchies():
        group = root
        for part in (*Path(name).parts, "system"):
            _delegate(group)
            group /= part
            group.mkdir(exist_ok=True)
            _inherit_cpuset(group)
        (group / "cgroup.procs").write_text("0")


def remove(name: str, *, deadline: float) -> list[Path]:
    """Remove the group and all below it; returns what could not be removed by ``deadline`` (monotonic seconds)."""
    while True:
        left = [group for root in hierarchies() for group in _remove_tree(root / name)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)  # a group stays busy until the kernel has reaped its last process


def _remove_tree(group: Path) -> list[Path]:
    if not group.exists():
        return []
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return [group] if group.exists() else []


def _delegate(group: Path) -> None:
    control = group / "cgroup.subtree_control"
    if not unified() or not control.exists():
        return
    offered = (group / "cgroup.controllers").read_text().split()
    for controller in _V2_CONTROLLERS:
        if controller in offered:
            control.write_text(f"+{controller}")


def _inherit_cpuset(group: Path) -> None:
    """In version 1 a new cpuset is empty, and no process may enter it until it names processors and memory."""
    if unified():
        return
    for name in _CPUSET_FILES:
        file = group / name
        if file.exists() and not file.read_text().strip():
            file.write_text((group.parent / name).read_text())
