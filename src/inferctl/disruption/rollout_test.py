"""The rollout test of fixed length: every pod of a release is replaced while load runs."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

from httpx2 import HTTPError
from lightkube import ApiError

from inferctl.disruption.cordons import Cordons
from inferctl.disruption.load import Load, LoadPod
from inferctl.disruption.result import Result
from inferctl.disruption.settle import wait_restored, wait_settled
from inferctl.disruption.verdict import Outcome, Promise, Verdict, judge
from inferctl.disruption.watch import Watch
from inferctl.errors import EnvironmentProblem, InferctlError
from inferctl.paths import RUNS
from inferctl.release.helm import Release, merged
from inferctl.release.serving import serving
from inferctl.report.findings import find, unnamed
from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inferctl.cluster.target import Target
    from inferctl.console import Progress
    from inferctl.report.findings import Findings
    from inferctl.report.state import State

#: The protection taken away: SIGTERM at once, and one second until the kill.
UNPROTECTED: dict[str, Any] = {"rollout": {"preStopSeconds": 0, "terminationGracePeriodSeconds": 1}}
#: How long load runs before the rollout begins, so that the counts show what undisturbed service looks like.
_BEFORE_SECONDS = 20.0
_TAIL_SECONDS = 120.0
_SUMMARY = "helm upgrade replaces every pod while load runs for a fixed time"


def rollout_test(
    target: Target,
    *,
    release: str = "mock",
    seconds: float = 150,
    streams: int = 4,
    control: bool = False,
    progress: Progress,
) -> Result:
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
        EnvironmentProblem: there is no such release, or another process changes it.
        UsageError: it is not of this chart.
        CommandFailed: the release could not be given its own values back.

    Returns:
        What became of it; a rollout or a load that came to no end is the verdict's reason.
    """
    subject = Release(target, release)
    with subject.changing(progress.say):
        Cordons(subject).sweep(progress.say)
        if not subject.status():
            raise EnvironmentProblem(subject.missing)
        return _measured(subject, seconds=seconds, streams=streams, control=control, progress=progress)


def _measured(subject: Release, *, seconds: float, streams: int, control: bool, progress: Progress) -> Result:
    began = time.monotonic()
    own = subject.values()
    how = serving(subject, own)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-rollout-test{'-control' if control else ''}"
    scenario = "rollout-test (control)" if control else "rollout-test"
    with closing(Recorder(RUNS / name / "timeline.jsonl")) as recorder:
        recorder.record("run", scenario=scenario, text=_SUMMARY, promise="A")
        LoadPod.sweep(subject)
        load = LoadPod(
            Load("fixed", streams=streams, seconds=seconds), subject, recorder,
            image=how.image, url=how.url, model=how.model, hear=_say,
        )  # fmt: skip
        trouble = _replaced(
            subject, own, load, recorder, within=how.replace_seconds, control=control, progress=progress
        )
        verdict, found = _judged(recorder, trouble, control=control)
        recorder.record("verdict", outcome=verdict.outcome.value, reason=verdict.reason)
    if control and not trouble:
        wait_restored(subject.target.client(), subject, how.replace_seconds, progress)
    return Result(scenario, verdict, found, time.monotonic() - began, recorder.path.parent)


def _replaced(
    subject: Release,
    own: Mapping[str, Any],
    load: LoadPod,
    recorder: Recorder,
    *,
    within: float,
    control: bool,
    progress: Progress,
) -> str:
    """Replace the pods under load and clean up; gives what went wrong before the clean-up, empty if nothing did."""
    values = merged(own, UNPROTECTED) if control else own
    api = subject.target.client()
    watch = Watch(subject)
    lent = ExitStack()
    trouble = ""
    try:
        if control:
            lent.enter_context(subject.lent())
            with progress.step("taking the protection away"):
                subject.upgrade(values)
        with progress.step("waiting for the release to be at rest"):
            wait_settled(api, subject, within, tell=progress.say)
        watch.attach(recorder)
        with progress.step("starting load"):
            load.start()
            load.wait_running()
        seconds = load.load.seconds
        before = min(_BEFORE_SECONDS, seconds / 5)
        recorder.wait(
            lambda state: _not_yet(state, before),
            before + _TAIL_SECONDS,
            failed=lambda: recorder.look(unnamed),
        )
        progress.say("rollout begins: every pod is replaced")
        recorder.record("disrupt", text="helm upgrade with a changed environment")
        # Helm would wait in silence; what the pods lack is told here.
        subject.upgrade(merged(values, {"engine": {"env": {"ROLLOUT": recorder.path.parent.name}}}))
        wait_settled(api, subject, within, tell=progress.say)
        recorder.record("settled", text="every pod replaced")
        progress.say("rollout has ended")
        load.wait_ended(seconds + _TAIL_SECONDS)
    except (InferctlError, ApiError, HTTPError) as error:
        trouble = str(error)
        progress.say(trouble)
    finally:
        watch.detach()
        with progress.step("cleaning up"), ExitStack() as steps:
            # All run, the last one first, whatever becomes of the others.
            steps.callback(load.remove)
            steps.callback(_restore, subject, own if control else None)
            steps.callback(lent.close)
    return trouble


def _restore(subject: Release, own: Mapping[str, Any] | None) -> None:
    """Unlock the release and give it its own values; a Ctrl-C meanwhile comes through when they are in place."""
    try:
        try:
            _give(subject, own)
        except KeyboardInterrupt:
            _give(subject, own)
            raise
    except InferctlError as error:
        if own is not None:
            error.add_note(f"release {subject.name!r} may still be without its protection: install its values again")
        raise


def _give(subject: Release, own: Mapping[str, Any] | None) -> None:
    subject.recover()
    if own is not None:
        # Only until the API has them: this must not be interrupted, and pods may take minutes.
        subject.upgrade(own)


def _judged(recorder: Recorder, trouble: str, *, control: bool) -> tuple[Verdict, Findings]:
    """What was lost until something went wrong is loss all the same."""
    found = find(recorder.state)
    if not found.retired:
        verdict = Verdict(Outcome.NOT_MEASURED, "no pod was replaced while load ran")
    else:
        verdict = judge(found, Promise.A, control=control)
    return verdict.unless_cut_short(trouble, control=control), found


def _not_yet(state: State, before: float) -> str:
    first = min((request.sent for request in state.requests.values() if request.sent), default=None)
    if first is None or time.time() < first + before:
        return f"load has not run for {before:g} s"
    in_service = [pod.name for pod in state.pods.values() if pod.serving and state.begun[pod.name]]
    return "" if in_service else "no stream is open on a serving pod"


def _say(line: str) -> None:
    print(line, flush=True)
