"""Changes of the release itself: rollouts, good and bad, rollback, scale, uninstall, a second model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from inferctl.disruption.scenario import IN_PLACE, UNPROTECTED, Control, Scenario
from inferctl.disruption.verdict import Promise
from inferctl.release.helm import Release, merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inferctl.disruption.run import Run
    from inferctl.report.findings import Findings
    from inferctl.report.state import State

_SEEN_SECONDS = 90.0
_NO_SUCH_DIGEST = "sha256:" + "0" * 64
#: What a pod waits for whose image cannot be pulled.
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff")


def wait_retired(run: Run, pods: list[str]) -> None:
    """Wait until these pods have been told to stop and get no new connections; then long answers may cease."""

    def missing(state: State) -> str:
        left = [p for p in pods if state.pods[p].deleted is None or p in state.ready]
        return f"still in service: {', '.join(left)}" if left else ""

    run.wait(missing, run.replace_seconds)
    run.finish_long_streams()


class Rollout(Scenario):
    """Every pod is replaced by one with a changed environment."""

    name = "rollout"
    retires = True
    summary = "helm upgrade replaces every pod"
    controls = (
        UNPROTECTED,
        Control(
            "short-grace",
            "a grace period longer than the longest answer",
            {"rollout": {"terminationGracePeriodSeconds": 18}},
            longer_answers=True,
        ),
        Control(
            "abort",
            "the engine's part in the drain",
            {"engine": {"args": ["--shutdown-timeout", "0"]}},
            longer_answers=True,
        ),
        Control(
            "ignores-sigterm",
            "that SIGTERM reaches the engine",
            {"rollout": {"terminationGracePeriodSeconds": 40}},
            swallow_sigterm=True,
        ),
    )

    def disrupt(self, run: Run) -> None:
        """Upgrade."""
        run.upgrade(run.replaced())
        wait_retired(run, run.aimed_at)


class BadRollout(Scenario):
    """A version that never becomes Ready: the rollout stays stuck, the old pods go on serving."""

    name = "bad-rollout"
    summary = "a version whose image does not exist stays stuck; the old one goes on serving"
    controls = (IN_PLACE,)
    bad: ClassVar[Mapping[str, Any]] = {"image": {"digest": _NO_SUCH_DIGEST}}
    symptoms: ClassVar[tuple[str, ...]] = NO_IMAGE

    def disrupt(self, run: Run) -> None:
        """Upgrade to the bad version and wait until it shows what is wrong with it."""
        run.release.upgrade(merged(run.values, self.bad))
        run.wait(lambda state: "" if self.sick(run, state) else "the bad version has not shown itself", _SEEN_SECONDS)
        run.act("the bad version is stuck")

    def sick(self, run: Run, state: State) -> bool:
        """Whether a new pod has the symptom."""
        return run.shows(state, self.symptoms)

    def settled(self, run: Run) -> None:
        """Serve on for a while beside the stuck version; in the control, see that nothing serves any more."""
        if run.control is None:
            run.wait_requests(300)
        else:
            run.wait_loss()

    def expect(self, state: State, found: Findings) -> list[str]:
        """No serving pod was told to stop."""
        del state
        return [f"serving pod {pod} was told to stop" for pod in found.retired if pod in found.aimed_at]

    def restore(self, run: Run) -> None:
        """Go back to the good version."""
        run.quietly(lambda: run.release.upgrade(run.values, wait=run.replace_seconds))


class CrashingRollout(BadRollout):
    """A version whose engine exits at once."""

    name = "bad-rollout-crash"
    summary = "a version that crashes at once stays stuck; the old one goes on serving"
    bad: ClassVar[Mapping[str, Any]] = {"engine": {"args": ["--no-such-flag"]}}
    symptoms = ("CrashLoopBackOff",)


class UnhealthyRollout(BadRollout):
    """A version that runs and never becomes healthy."""

    name = "bad-rollout-unhealthy"
    summary = "a version that never becomes healthy stays stuck; the old one goes on serving"
    bad: ClassVar[Mapping[str, Any]] = {"engine": {"env": {"STARTUP_DELAY_SECONDS": 3600}}}

    def sick(self, run: Run, state: State) -> bool:
        """It runs and is not Ready."""
        return any(pod.state == "Running" for pod in state.pods.values() if pod.name not in run.aimed_at)


class Rollback(BadRollout):
    """A stuck rollout is taken back."""

    name = "rollback"
    summary = "helm rollback of a stuck rollout"

    def disrupt(self, run: Run) -> None:
        """Get stuck, then go back."""
        good = run.release.revision()
        super().disrupt(run)
        if run.control:
            run.wait_loss()
        run.act(f"helm rollback to revision {good}")
        run.release.rollback(good)

    def settled(self, run: Run) -> None:
        """The good version is at rest again."""
        run.wait_at_rest()
        run.wait_requests(150)


class Scale(Scenario):
    """Down to one pod and up again."""

    name = "scale"
    retires = True
    summary = "two pods become one, then two again"
    controls = (UNPROTECTED,)

    def disrupt(self, run: Run) -> None:
        """Scale down, wait until the pod is gone, scale up."""
        run.act("replicaCount 1")
        run.upgrade({"replicaCount": 1})
        run.wait(
            lambda state: "" if any(state.pods[pod].gone for pod in run.aimed_at) else "both pods are still there", 120
        )
        run.act("replicaCount 2")
        run.upgrade({"replicaCount": 2})


class Uninstall(Scenario):
    """The release is removed under load."""

    name = "uninstall"
    retires = True
    promise = Promise.C
    summary = "helm uninstall under load"
    controls = (UNPROTECTED,)

    def disrupt(self, run: Run) -> None:
        """Uninstall."""
        run.release.uninstall()

    def settled(self, run: Run) -> None:
        """Every pod is gone."""
        run.wait(
            lambda state: "" if all(state.pods[pod].gone for pod in run.aimed_at) else "pods are still ending",
            run.replace_seconds,
        )


class TwoModels(Scenario):
    """A second release beside the first never comes up."""

    name = "two-models"
    summary = "a second model whose image does not exist beside this one; each is a release of its own"
    controls = (IN_PLACE,)

    def __init__(self) -> None:
        """Nothing has been counted yet."""
        self.restarts_before: dict[str, int] = {}

    def disrupt(self, run: Run) -> None:
        """Install the bad model: as a release of its own, or in the control as a change of this one."""
        self.restarts_before = run.recorder.look(
            lambda state: {pod: state.pods[pod].restarts for pod in run.aimed_at},
        )
        chosen = self._other(run) if run.control is None else run.release
        chosen.upgrade(merged(run.values, BadRollout.bad))
        run.wait(
            lambda state: "" if run.shows(state, NO_IMAGE) else "the bad model's pull has not failed yet", _SEEN_SECONDS
        )
        run.act("the bad model has no image")

    def settled(self, run: Run) -> None:
        """Serve on beside it; in the control, see that nothing serves any more."""
        if run.control is None:
            run.wait_requests(300)
        else:
            run.wait_loss()

    def expect(self, state: State, found: Findings) -> list[str]:
        """No pod of this release was told to stop, and none was restarted."""
        stopped = [f"pod {pod} of the good model was told to stop" for pod in found.retired if pod in found.aimed_at]
        before = self.restarts_before
        restarted = [pod for pod in found.aimed_at if state.pods[pod].restarts > before.get(pod, 0)]
        return [*stopped, *(f"pod {pod} of the good model was restarted" for pod in restarted)]

    def restore(self, run: Run) -> None:
        """Remove the bad model."""
        if run.control is None:
            run.quietly(self._other(run).uninstall)
        else:
            run.quietly(lambda: run.release.upgrade(run.values, wait=180))

    @staticmethod
    def _other(run: Run) -> Release:
        return Release(run.release.target, f"{run.release.name}-bad", run.release.namespace)


class ReadyButWrong(Scenario):
    """A bad version that is Ready: Kubernetes has no way to know."""

    name = "ready-but-wrong"
    retires = True
    promise = Promise.LOSES
    summary = "a version that is Ready but serves another model: every request to it fails"

    def disrupt(self, run: Run) -> None:
        """Upgrade to an engine that knows the model by another name only."""
        run.upgrade({"model": {"name": "mock/another"}})
        wait_retired(run, run.aimed_at)
