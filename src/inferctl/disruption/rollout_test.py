"""The rollout test of fixed length: every pod of a release is replaced while load runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from inferctl.disruption.load import Load, LoadPod
from inferctl.disruption.settle import unsettled, wait_until
from inferctl.disruption.verdict import Outcome, Promise, Verdict, judge
from inferctl.disruption.watch import Watch
from inferctl.errors import EnvironmentProblem
from inferctl.paths import RUNS
from inferctl.release.helm import Release, merged
from inferctl.report import html
from inferctl.report.findings import find
from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from inferctl.cluster.target import Target
    from inferctl.console import Progress
    from inferctl.report.state import State

#: The protection taken away: SIGTERM at once, and one second until the kill.
UNPROTECTED: dict[str, Any] = {"rollout": {"preStopSeconds": 0, "terminationGracePeriodSeconds": 1}}
#: How long load runs before the rollout begins, so that the counts show what undisturbed service looks like.
_BEFORE_SECONDS = 20.0
_SETTLE_SECONDS = 300.0
_TAIL_SECONDS = 120.0
_SUMMARY = "helm upgrade replaces every pod while load runs for a fixed time"
_MODEL, _PORT = "mock/mock-8b", 8000


def rollout_test(
    target: Target,
    *,
    release: str = "mock",
    seconds: float = 150,
    streams: int = 4,
    control: bool = False,
    progress: Progress,
) -> Verdict:
    """Replace every pod of a deployed release under load, and count how every request ended.

    The control first takes the protection away and lets the release come to rest, so that the pods that get
    replaced are the unprotected ones. Afterwards the release has its own values again.

    Args:
        target: the cluster.
        release: a release that is deployed there, in the namespace ``default``.
        seconds: how long load runs; the rollout begins after 20 of them, or a fifth if that is less.
        streams: how many at once.
        control: take the protection away; then only loss is a result.
        progress: told of each step.

    Raises:
        EnvironmentProblem: there is no such release.
        DeadlineExceeded: the rollout or the load came to no end.
    """
    subject = Release(target, release)
    subject.recover()
    if not subject.status():
        raise EnvironmentProblem(f"release {release!r} is not deployed; run: ./just deploy")
    own = subject.values()
    values = merged(own, UNPROTECTED) if control else own
    api = target.client()
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-rollout-test{'-control' if control else ''}"
    recorder = Recorder(RUNS / name / "timeline.jsonl")
    recorder.record("run", scenario="rollout-test (control)" if control else "rollout-test", text=_SUMMARY, promise="A")
    LoadPod.sweep(subject)
    load = LoadPod(
        Load("fixed", streams=streams, seconds=seconds), subject, recorder,
        image=f"{own['image']['repository']}@{own['image']['digest']}",
        url=f"http://{subject.resource}:{own.get('service', {}).get('port', _PORT)}",
        model=own.get("model", {}).get("name", _MODEL), hear=_say,
    )  # fmt: skip
    watch = Watch(subject)
    try:
        if control:
            with progress.step("taking the protection away"):
                subject.upgrade(values, wait=_SETTLE_SECONDS)
        with progress.step("waiting for the release to be at rest"):
            wait_until(lambda: unsettled(api, subject), _SETTLE_SECONDS)
        watch.attach(recorder)
        with progress.step("starting load"):
            load.start()
            load.wait_running()
        before = min(_BEFORE_SECONDS, seconds / 5)
        recorder.wait(lambda state: _not_yet(state, before), before + _TAIL_SECONDS)
        progress.say("rollout begins: every pod is replaced")
        recorder.record("disrupt", text="helm upgrade with a changed environment")
        subject.upgrade(merged(values, {"engine": {"env": {"ROLLOUT": name}}}), wait=_SETTLE_SECONDS)
        wait_until(lambda: unsettled(api, subject), _SETTLE_SECONDS)
        recorder.record("settled", text="every pod replaced")
        progress.say("rollout has ended")
        load.wait_ended(seconds + _TAIL_SECONDS)
    finally:
        watch.detach()
        with progress.step("cleaning up"):
            load.remove()
            subject.recover()
            if control:
                subject.upgrade(own, wait=_SETTLE_SECONDS)
    verdict = _judged(recorder, control=control)
    recorder.record("verdict", outcome=verdict.outcome.value, reason=verdict.reason)
    recorder.close()
    page = recorder.path.with_name("report.html")
    html.write(recorder.path, page)
    progress.say(f"report: {page}")
    return verdict


def _judged(recorder: Recorder, *, control: bool) -> Verdict:
    found = find(recorder.state)
    if not found.retired:
        return Verdict(Outcome.NOT_MEASURED, "no pod was replaced while load ran")
    return judge(found, Promise.A, control=control)


def _not_yet(state: State, before: float) -> str:
    first = min((request.sent for request in state.requests.values() if request.sent), default=None)
    if first is None or time.time() < first + before:
        return f"load has not run for {before:g} s"
    serving = [pod.name for pod in state.pods.values() if pod.serving and state.begun[pod.name]]
    return "" if serving else "no stream is open on a serving pod"


def _say(line: str) -> None:
    print(line, flush=True)
