"""The supervisor of a node: what starts when, what counts as failed, what is started again."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.node.plan import Component, NodePlan, Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What a node's init does, without the namespaces, which need root.
DRIVER = """
import signal, sys
from pathlib import Path
from inferctl.cluster.node.plan import NodePlan
from inferctl.cluster.node.supervisor import Supervisor
plan = NodePlan.read(Path(sys.argv[1]).read_text())
supervisor = Supervisor(plan.components, Path(plan.folder), "/usr/bin:/bin")
signal.signal(signal.SIGCHLD, lambda *_: supervisor.submit(supervisor.reap))
signal.signal(signal.SIGUSR1, lambda *_: supervisor.submit(lambda: supervisor.stop("a")))
signal.signal(signal.SIGUSR2, lambda *_: supervisor.submit(lambda: supervisor.start("a")))
supervisor.run()
"""
SECONDS = 20


class Node:
    """A supervisor that runs, and what it says of its components."""

    def __init__(self, folder: Path, components: tuple[Component, ...]) -> None:
        """Start it."""
        plan = NodePlan("n", str(folder), str(folder), "", {}, "", components)
        plan.write(folder / "plan.json")
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, "-c", DRIVER, str(folder / "plan.json")])

    def status(self) -> dict[str, dict[str, Any]]:
        """The status file, empty before there is one."""
        try:
            found: dict[str, dict[str, Any]] = json.loads((self.folder / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def wait(self, component: str, **wanted: object) -> dict[str, Any]:
        """Wait until a component's status has these values."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = self.status().get(component, {})
            if all(found.get(key) == value for key, value in wanted.items()):
                return found
            time.sleep(0.01)
        raise AssertionError(f"{component} is {self.status().get(component)}, not {wanted}")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Start a node with some components; it ends with the test."""
    nodes: list[Node] = []

    def run(*components: Component) -> Node:
        nodes.append(Node(tmp_path, components))
        return nodes[-1]

    yield run
    for node in nodes:
        for component in node.status().values():
            if component["pid"]:
                subprocess.run(["kill", "-9", str(component["pid"])], check=False, stderr=subprocess.DEVNULL)
        node.process.kill()
        node.process.wait()


def test_component_waits_for_what_it_needs(start: Callable[..., Node], tmp_path: Path) -> None:
    """A component starts only when what it needs is ready."""
    gate = str(tmp_path / "gate")
    node = start(
        Component("a", ("sleep", "60"), ready=Ready(f"unix:{gate}")),
        Component("b", ("sleep", "60"), needs=("a",)),
    )
    node.wait("a", state="starting")
    assert node.status()["b"]["state"] == "waiting"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(gate)
        server.listen()
        node.wait("b", state="ready")


def test_early_exit_is_reported_as_an_exit(start: Callable[..., Node], tmp_path: Path) -> None:
    """What exits before it is ready has failed, with its exit code, long before its time is out."""
    node = start(Component("a", ("sh", "-c", "echo broken; exit 7"), ready=Ready(f"unix:{tmp_path}/none", seconds=600)))
    assert "exit code 7" in node.wait("a", state="failed")["detail"]
    assert (tmp_path / "logs" / "a.log").read_text() == "broken\n"


def test_never_ready_is_reported_as_timed_out(start: Callable[..., Node], tmp_path: Path) -> None:
    """What runs but never gets ready has failed when its time is out, with the last answer."""
    node = start(Component("a", ("sleep", "60"), ready=Ready(f"unix:{tmp_path}/none", seconds=0.2)))
    assert "none" in node.wait("a", state="failed")["detail"]


def test_missing_program_is_named(start: Callable[..., Node]) -> None:
    """A program that is not there fails its component with its name, and leaves the others alone."""
    node = start(Component("a", ("no-such-program",)), Component("b", ("sleep", "60")))
    assert "no-such-program" in node.wait("a", state="failed")["detail"]
    node.wait("b", state="ready")


def test_dead_component_is_started_again(start: Callable[..., Node]) -> None:
    """A component that dies after it was ready is started again and counted."""
    node = start(Component("a", ("sleep", "60")))
    pid = node.wait("a", state="ready")["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True)
    assert node.wait("a", state="ready", restarts=1)["pid"] != pid


def test_stopped_component_stays_down_until_started(start: Callable[..., Node]) -> None:
    """A component that was stopped on request stays down, and starts when asked to."""
    node = start(Component("a", ("sleep", "60")))
    node.wait("a", state="ready")
    subprocess.run(["kill", "-USR1", str(node.process.pid)], check=True)
    node.wait("a", state="stopped", pid=None)
    subprocess.run(["kill", "-USR2", str(node.process.pid)], check=True)
    node.wait("a", state="ready")


def test_orphans_are_reaped(start: Callable[..., Node]) -> None:
    """A child that nobody waits for does not stay behind as a zombie."""
    node = start(Component("a", ("sleep", "60")))
    pid = node.wait("a", state="ready")["pid"]
    subprocess.run(["kill", "-9", str(pid)], check=True)
    node.wait("a", state="ready", restarts=1)
    assert not Path(f"/proc/{pid}").exists()


def test_plan_survives_the_way_through_a_file(tmp_path: Path) -> None:
    """A plan that is written and read again is the same plan."""
    ready = Ready("http://127.0.0.1:1/x", seconds=3)
    plan = NodePlan("n", "/f", "/s", "/t", {"a": "b"}, "g", (Component("a", ("x", "y"), ("b",), ready), Component("b")))
    plan.write(tmp_path / "plan")
    assert NodePlan.read((tmp_path / "plan").read_text()) == plan
