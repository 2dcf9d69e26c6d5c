"""Deaths that nobody announces: what was on the struck pod is cut, and service comes back in a stated time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from inferctl.disruption.scenario import LONG_NEW, SHORT_KEPT, SHORT_NEW, OneNode, Scenario
from inferctl.disruption.verdict import Promise

if TYPE_CHECKING:
    from inferctl.disruption.run import Run
    from inferctl.report.state import State

#: The kubelet sees a dead container within a second or two; until then new connections to it are refused.
_ENGINE_SECONDS = 15.0
#: The controller manager waits 50 s for a silent node's lease before the Service drops its pods.
_NODE_SECONDS = 75.0


class _Crash(Scenario):
    """Strikes one pod."""

    promise = Promise.B
    loads: ClassVar = (SHORT_NEW, SHORT_KEPT, LONG_NEW)
    restored_within = _ENGINE_SECONDS
    enough = 3

    def struck(self, run: Run) -> list[str]:
        """The first pod."""
        return run.serving()[:1]

    def settled(self, run: Run) -> None:
        """Both pods serve again, and requests end well."""
        run.wait_requests(100)
        run.wait_at_rest()


class EngineKilled(_Crash):
    """SIGKILL to one engine."""

    name = "engine-killed"
    summary = "SIGKILL to one engine"
    own_nodes = True

    def disrupt(self, run: Run) -> None:
        """Kill it, and see it restarted."""
        pod = run.aimed_at[0]
        run.kill_engine(pod)
        run.wait(lambda state: "" if state.pods[pod].restarts else f"{pod} is not restarted", 60)


class OutOfMemory(_Crash):
    """One engine grows beyond its memory limit."""

    name = "out-of-memory"
    summary = "one engine exceeds its memory limit and is killed by the kernel"
    values: ClassVar = {
        "engine": {"env": {"FAULT_CONTROL": 1}},
        "resources": {"limits": {"memory": "256Mi"}},
    }

    def disrupt(self, run: Run) -> None:
        """Have it keep memory for each request until the kernel ends it."""
        pod = run.aimed_at[0]
        run.set_faults(pod, "memory=40")
        run.wait(lambda state: "" if state.pods[pod].restarts else f"{pod} is not restarted", 60)

    def expect(self, state: State, found: object) -> list[str]:
        """Kubernetes knows that it was memory."""
        del found
        reasons = [pod.reason for pod in state.pods.values() if pod.restarts]
        return [] if "OOMKilled" in reasons else [f"no pod was ended for its memory: {reasons}"]


class NodeKilled(OneNode, _Crash):
    """A node loses power."""

    name = "node-killed"
    summary = "one pod's node loses power; the Service drops its pod when its lease has run out"
    own_nodes = True
    restored_within = _NODE_SECONDS

    def disrupt(self, run: Run) -> None:
        """Cut the power, and wait until the Service has dropped its pods."""
        self.strike(run)
        run.wait(
            lambda state: "still in the Service" if set(run.aimed_at) & set(state.ready) else "",
            _NODE_SECONDS + 30,
        )
        run.wait_requests(100)

    def strike(self, run: Run) -> None:
        """Do it."""
        run.act(f"{self.node} loses power")
        run.nodes.kill(self.node)

    def settled(self, run: Run) -> None:
        """Boot it again."""
        self.mend(run)
        super().settled(run)

    def mend(self, run: Run) -> None:
        """Undo it."""
        run.act(f"{self.node} boots")
        run.nodes.boot(self.node)

    def restore(self, run: Run) -> None:
        """Mend it, if an error came between."""
        if self.node:
            run.quietly(lambda: self.mend(run))


class NodePartitioned(NodeKilled):
    """A node loses its network."""

    name = "node-partitioned"
    summary = "one pod's node loses its network; the Service drops its pod when its lease has run out"

    def strike(self, run: Run) -> None:
        """Cut it off."""
        run.act(f"{self.node} loses its network")
        run.nodes.connect(self.node, connected=False)

    def mend(self, run: Run) -> None:
        """Connect it again."""
        run.act(f"{self.node} has its network again")
        run.nodes.connect(self.node, connected=True)
