"""Starts a node's components in the order of their needs, restarts those that die, and says how they are.

A component's start is a race of three: ready, exited, timed out. What exited before it was ever ready has
failed and stays down; what dies later is started again, as a service manager would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from inferctl.cluster.node.readiness import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inferctl.cluster.node.plan import Component

_RESTART_SECONDS = 1.0
_ASK_SECONDS = 0.05

WAITING, STARTING, READY, STOPPED, FAILED = "waiting", "starting", "ready", "stopped", "failed"


class _Unit:
    """A component and what is known of it."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.state = WAITING
        self.detail = ""
        self.restarts = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.was_ready = False

    def status(self) -> dict[str, Any]:
        pid = self.process.pid if self.process else None
        return {"state": self.state, "detail": self.detail, "restarts": self.restarts, "pid": pid}


class Supervisor:
    """Runs the components of one node. All methods are called from one thread."""

    def __init__(self, components: tuple[Component, ...], folder: Path, path: str) -> None:
        """Take the components; logs and the status file go to ``folder``; programs are found on ``path``."""
        self._units = {component.name: _Unit(component) for component in components}
        self._logs = folder / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._status = folder / "status.json"
        self._environment = {**os.environ, "PATH": path}
        #: What other threads ask this one to do.
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._due: list[tuple[float, Callable[[], None]]] = []

    def run(self) -> None:
        """Supervise until the process is killed."""
        self._advance()
        while True:
            wait = max(0.0, min((at for at, _ in self._due), default=time.monotonic() + 60) - time.monotonic())
            try:
                self._tasks.get(timeout=wait)()
            except Empty:
                now = time.monotonic()
                ripe = [task for at, task in self._due if at <= now]
                self._due = [(at, task) for at, task in self._due if at > now]
                for task in ripe:
                    task()
            self._advance()

    def submit(self, task: Callable[[], None]) -> None:
        """Have a task run by the supervising thread; may be called from any thread or signal handler."""
        self._tasks.put(task)

    def reap(self) -> None:
        """Collect every child that has ended: components and the orphans that an init inherits."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            unit = next((u for u in self._units.values() if u.process and u.process.pid == ended.si_pid), None)
            if unit is None:
                os.waitpid(ended.si_pid, 0)
            else:
                self._ended(unit)

    def stop(self, name: str) -> None:
        """Kill a component and keep it down."""
        unit = self._units[name]
        unit.state, unit.detail = STOPPED, "stopped on request"
        if unit.process:
            unit.process.kill()

    def start(self, name: str) -> None:
        """Start a component that was stopped."""
        unit = self._units[name]
        if unit.state == STOPPED:
            unit.state, unit.detail = WAITING, ""

    def kill(self, name: str) -> None:
        """Kill a component's process; it is started again."""
        process = self._units[name].process
        if process:
            process.kill()

    def status(self) -> dict[str, dict[str, Any]]:
        """The state of each component by name."""
        return {name: unit.status() for name, unit in self._units.items()}

    def _advance(self) -> None:
        for unit in self._units.values():
            if unit.state == WAITING and unit.process is None and self._needs_met(unit):
                self._launch(unit)
        part = self._status.with_suffix(".part")
        part.write_text(json.dumps(self.status()))
        part.rename(self._status)

    def _needs_met(self, unit: _Unit) -> bool:
        # A component that was ready once does not wait again: its needs may be what is broken on purpose.
        return unit.was_ready or all(self._units[need].state == READY for need in unit.component.needs)

    def _launch(self, unit: _Unit) -> None:
        component = unit.component
        unit.state, unit.detail = STARTING, ""
        if component.argv:
            with (self._logs / f"{component.name}.log").open("ab") as log:
                try:
                    unit.process = subprocess.Popen(
                        component.argv,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env=self._environment,
                        start_new_session=True,
                    )
                except OSError as error:
                    unit.state, unit.detail = FAILED, f"cannot be run: {error}"
                    return
        if component.ready is None:
            self._is_ready(unit, unit.process)
        else:
            threading.Thread(target=self._watch, args=(unit, unit.process), daemon=True).start()

    def _watch(self, unit: _Unit, process: subprocess.Popen[bytes] | None) -> None:
        """Ask until ready or out of time; runs in a thread of its own and decides nothing itself."""
        ready = unit.component.ready
        if ready is None:
            return
        deadline = time.monotonic() + ready.seconds
        while why := ask(ready):
            if unit.process is not process or unit.state != STARTING:
                return
            # After a restart the wait has no end: what a component needs may be down on purpose.
            if time.monotonic() > deadline and not unit.was_ready:
                self.submit(lambda: self._timed_out(unit, process, why))
                return
            time.sleep(_ASK_SECONDS)
        self.submit(lambda: self._is_ready(unit, process))

    def _is_ready(self, unit: _Unit, process: subprocess.Popen[bytes] | None) -> None:
        if unit.state == STARTING and unit.process is process:
            unit.state, unit.was_ready = READY, True

    def _timed_out(self, unit: _Unit, process: subprocess.Popen[bytes] | None, why: str) -> None:
        if unit.state == STARTING and unit.process is process:
            seconds = unit.component.ready.seconds if unit.component.ready else 0
            unit.state, unit.detail = FAILED, f"not ready after {seconds:.0f} s; last answer: {why}"

    def _ended(self, unit: _Unit) -> None:
        process, unit.process = unit.process, None
        code = process.wait() if process else 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if unit.state == STOPPED:
            return
        if not unit.was_ready:
            unit.state, unit.detail = FAILED, f"exited before it was ready: {how}"
            return
        unit.restarts += 1
        unit.state, unit.detail = STARTING, f"ended ({how}), will be started again"
        self._due.append((time.monotonic() + _RESTART_SECONDS, lambda: self._again(unit)))

    def _again(self, unit: _Unit) -> None:
        if unit.state == STARTING and unit.process is None:
            unit.state = WAITING
