"""The cluster's own programs fail; the engines must not notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from inferctl.disruption.scenario import ENGINE_DIES, IN_PLACE, Control, OneNode, Scenario
from inferctl.disruption.scenarios.rollouts import NO_IMAGE, wait_retired
from inferctl.disruption.verdict import Promise

if TYPE_CHECKING:
    from inferctl.disruption.run import Run

_OUTAGE_SECONDS = 30.0
_FLAPS = 3
_ONE_REPLICA = Control("one-replica", "the second replica", {"replicaCount": 1})


class _Restart(OneNode):
    """A program of the first pod's node is killed and started again by the node."""

    own_nodes = True
    controls = (ENGINE_DIES,)
    component: ClassVar[str]

    def disrupt(self, run: Run) -> None:
        """Kill it, and wait until it is ready again."""
        run.act(f"SIGKILL to {self.component} of {self.node}")
        run.nodes.restart(self.node, self.component)
        if run.control:
            for pod in run.aimed_at:
                run.kill_engine(pod)
        run.act(f"{self.component} is ready again")

    def settled(self, run: Run) -> None:
        """Serve on for a while, then be at rest."""
        run.wait_requests(400)
        run.wait_at_rest()


class KubeletRestart(_Restart):
    """The kubelet dies."""

    name = "kubelet-restart"
    summary = "the kubelet of one pod's node is killed and started again"
    component = "kubelet"


class ContainerdRestart(_Restart):
    """Containerd dies; the containers' own supervisors go on."""

    name = "containerd-restart"
    summary = "containerd of one pod's node is killed and started again"
    component = "containerd"


class ApiOutage(Scenario):
    """Nobody can change anything for 30 s; the Service goes on as it was."""

    name = "api-outage"
    summary = f"the API server is away for {_OUTAGE_SECONDS:.0f} s"
    own_nodes = True
    on_nodes = True
    controls = (ENGINE_DIES,)

    def disrupt(self, run: Run) -> None:
        """Stop it, wait, start it."""
        uids = [run.uid(pod) for pod in run.aimed_at]
        run.act("the API server is stopped")
        run.nodes.stop(run.nodes.control_plane, "kube-apiserver")
        if run.control:
            for uid in uids:
                run.nodes.kill_engine(uid)
        run.wait_seconds(_OUTAGE_SECONDS)
        self._start(run)

    def settled(self, run: Run) -> None:
        """Serve on for a while, then be at rest."""
        run.wait_requests(100)
        run.wait_at_rest()

    def restore(self, run: Run) -> None:
        """Start it, if an error came between."""
        run.quietly(lambda: self._start(run))

    @staticmethod
    def _start(run: Run) -> None:
        run.act("the API server is started")
        run.nodes.start(run.nodes.control_plane, "kube-apiserver")


class RegistryOutage(Scenario):
    """A rollout to an image that no node has, while the registry is away: it waits, then goes on."""

    name = "registry-outage"
    summary = "the registry is away during a rollout to a new image; the rollout waits for it"
    own_nodes = True
    on_nodes = True
    retires = True
    controls = (IN_PLACE,)

    def disrupt(self, run: Run) -> None:
        """Push a new image, stop the registry, upgrade, see the pull fail, start the registry."""
        digest = run.new_image()
        run.act("the registry is stopped")
        run.nodes.stop(run.nodes.control_plane, "registry")
        run.upgrade({"image": {"digest": digest}})
        run.wait(lambda state: "" if run.shows(state, NO_IMAGE) else "no pull has failed yet", 90)
        run.act("a pull has failed")
        if run.control is None:
            run.wait_requests(100)
        else:
            run.wait_loss()
        self._start(run)
        wait_retired(run, run.aimed_at)

    def restore(self, run: Run) -> None:
        """Start the registry, if an error came between."""
        run.quietly(lambda: self._start(run))

    @staticmethod
    def _start(run: Run) -> None:
        run.act("the registry is started")
        run.nodes.start(run.nodes.control_plane, "registry")


class ReadinessFlapping(Scenario):
    """One pod's health check fails and recovers, again and again."""

    name = "readiness-flapping"
    summary = f"one pod becomes unready and ready again, {_FLAPS} times; its streams go on"
    values: ClassVar = {
        "engine": {"env": {"FAULT_CONTROL": 1}},
        "probes": {"periodSeconds": 1, "timeoutSeconds": 1, "livenessFailureThreshold": 60},
    }
    controls = (_ONE_REPLICA,)

    def struck(self, run: Run) -> list[str]:
        """The first pod."""
        return run.serving()[:1]

    def disrupt(self, run: Run) -> None:
        """Break and mend its health check."""
        pod = run.aimed_at[0]
        for _ in range(_FLAPS):
            run.set_faults(pod, "health=30")
            run.wait(lambda state: "" if state.pods[pod].state == "Unready" else f"{pod} is still ready", 60)
            run.wait_requests(10 if run.control is None else 0)
            run.set_faults(pod, "")
            run.wait(lambda state: "" if state.pods[pod].serving else f"{pod} is still unready", 60)

    def settled(self, run: Run) -> None:
        """Serve on for a while."""
        run.wait_requests(50)
        run.wait_at_rest()


class ProxyDead(Scenario):
    """kube-proxy of the clients' node is dead: its rules still name pods that are gone."""

    name = "proxy-dead"
    promise = Promise.LOSES
    summary = "a rollout while kube-proxy of the clients' node is dead: requests go to pods that are gone"
    own_nodes = True
    on_nodes = True
    retires = True

    def avoid(self, run: Run) -> list[str]:
        """Load runs on the control plane."""
        return run.workers()

    def disrupt(self, run: Run) -> None:
        """Stop kube-proxy, roll out."""
        run.act("kube-proxy of the clients' node is stopped")
        run.nodes.stop(run.nodes.control_plane, "kube-proxy")
        run.upgrade(run.replaced())
        wait_retired(run, run.aimed_at)
        run.wait(
            lambda state: "" if all(state.pods[pod].gone for pod in run.aimed_at) else "old pods are still ending",
            run.replace_seconds,
        )

    def restore(self, run: Run) -> None:
        """Start kube-proxy."""
        run.act("kube-proxy is started")
        run.quietly(lambda: run.nodes.start(run.nodes.control_plane, "kube-proxy"))
