"""A node's init: process 1 of the node's namespaces. Killing it ends everything on the node.

Run as ``python -m inferctl.cluster.node PLAN`` inside new mount, PID, network, UTS and IPC namespaces.
Its socket takes one JSON request per line: ``{"do": "stop", "component": "kubelet"}``; ``do`` is one of
begin, status, stop, start, kill. Nothing starts before ``begin``, which is sent when the network is there.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from inferctl.cluster.node import cgroup, filesystem, kernel
from inferctl.cluster.node.plan import PROGRAMS, NodePlan
from inferctl.cluster.node.supervisor import Supervisor

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def main() -> None:
    """Make the node and supervise it until killed."""
    plan = NodePlan.read(Path(sys.argv[1]).read_text())
    folder = Path(plan.folder)
    socket.sethostname(plan.name)
    cgroup.enter(plan.cgroup)
    filesystem.build(plan)
    kernel.configure()
    supervisor = Supervisor(plan.components, folder, f"{PROGRAMS}:{_SYSTEM_PATH}")
    signal.signal(signal.SIGCHLD, lambda *_: supervisor.submit(supervisor.reap))
    begun = threading.Event()
    threading.Thread(target=_serve, args=(folder / "init.sock", supervisor, begun), daemon=True).start()
    begun.wait()
    supervisor.run()


def _serve(path: Path, supervisor: Supervisor, begun: threading.Event) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        # It gets its name when it can be connected to: who waits for the name must not be refused.
        unnamed = path.with_name("new.sock")
        unnamed.unlink(missing_ok=True)
        server.bind(str(unnamed))
        unnamed.chmod(0o600)
        server.listen()
        unnamed.rename(path)
        while True:
            client, _ = server.accept()
            with client, client.makefile("rwb") as stream:
                for line in stream:
                    answer = _answer(json.loads(line), supervisor, begun)
                    stream.write(json.dumps(answer).encode() + b"\n")
                    stream.flush()


def _answer(request: dict[str, str], supervisor: Supervisor, begun: threading.Event) -> Any:  # noqa: ANN401 - JSON
    if request["do"] == "begin":
        begun.set()
        return "begun"
    answers: SimpleQueue[Any] = SimpleQueue()

    def act() -> None:
        try:
            match request["do"]:
                case "status":
                    answers.put(supervisor.status())
                case "stop" | "start" | "kill" as verb:
                    answers.put(getattr(supervisor, verb)(request["component"]))
                case unknown:
                    answers.put({"error": f"unknown request {unknown!r}"})
        except KeyError as missing:
            answers.put({"error": f"no component {missing}"})

    supervisor.submit(act)
    return answers.get()


if __name__ == "__main__":
    main()
