"""Starts the processes that hold a cluster's namespaces, and knows them again later."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from inferctl.errors import ComponentFailed
from inferctl.paths import ROOT
from inferctl.process.command import tail
from inferctl.process.identity import MARKER, ProcessIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.cluster.spec import ClusterSpec, NodeSpec

_PYTHON = ROOT / ".venv" / "bin" / "python"
_FILE = "init.pid"


def switch(spec: ClusterSpec) -> subprocess.Popen[bytes]:
    """Start the process whose network namespace holds the bridge; `identity` of the cluster's folder finds it."""
    return _spawn(spec, spec.folder, ["unshare", "--net", "sleep", "infinity"])


def node(spec: ClusterSpec, node: NodeSpec) -> subprocess.Popen[bytes]:
    """Start a node's init in namespaces of its own; `identity` of the node's folder finds it."""
    folder = spec.node_folder(node)
    namespaces = [
        "unshare",
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    init = [str(_PYTHON), "-m", "inferctl.cluster.node", str(folder / "plan.json")]
    return _spawn(spec, folder, [*namespaces, *init])


def identity(folder: Path) -> ProcessIdentity | None:
    """The process that was started last with this folder; it may have ended since."""
    try:
        pid, started = map(int, (folder / _FILE).read_text().split())
    except (OSError, ValueError):
        return None
    return ProcessIdentity(pid, started)


def _spawn(spec: ClusterSpec, folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, marked as the cluster's, and write down which it is."""
    with (folder / "init.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", MARKER: spec.marker},
        )
    started = ProcessIdentity.of(process.pid)
    if started is None:
        raise ComponentFailed(f"{command[0]} exited at once\n{tail((folder / 'init.log').read_text())}")
    (folder / _FILE).write_text(f"{started.pid} {started.started}")
    return process
