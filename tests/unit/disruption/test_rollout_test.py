"""The rollout test's control gives a release its protection back, whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption import rollout_test as tested
from inferctl.disruption.result import keep
from inferctl.disruption.verdict import Outcome, Verdict
from inferctl.errors import CommandFailed, DeadlineExceeded
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.disruption.result import Result
    from inferctl.report.recorder import Recorder

_OWN: dict[str, Any] = {"image": {"repository": "pull:1/mock-engine", "digest": "sha256:0"}}
_BARE = {**_OWN, **tested.UNPROTECTED}


class _Calls(list[object]):
    """What was done to the release and its load, in order; anything of it may be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: dict[int, BaseException] = {}

    def did(self, what: object) -> None:
        self.append(what)
        if error := self.fail.get(len(self)):
            raise error


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Calls:
    """The calls of a rollout test that meets a release, a load and a watch without a cluster; load never starts."""
    calls = _Calls()

    class Load:
        def __init__(self, load: object, _: object, recorder: Recorder, **__: object) -> None:
            self.load, self.recorder = load, recorder

        @staticmethod
        def sweep(_: object) -> None: ...

        def start(self) -> None:
            calls.did("load starts")

        def remove(self) -> None:
            calls.did("load is removed")

    class Cordons:
        def __init__(self, _: object) -> None: ...

        def sweep(self, _: object) -> None: ...

    class Watch:
        def __init__(self, _: object) -> None: ...

        def attach(self, _: object) -> None: ...

        def detach(self) -> None: ...

    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(Release, "recover", lambda _: None)
    monkeypatch.setattr(Release, "_lent_by", lambda _: 0)
    monkeypatch.setattr(Release, "last_deployed", lambda _: 1)
    monkeypatch.setattr(Release, "status", lambda _: "deployed")
    monkeypatch.setattr(Release, "values", lambda _: _OWN)
    monkeypatch.setattr(Release, "upgrade", lambda _, values, **__: calls.did(values))
    monkeypatch.setattr(Target, "client", lambda *_: None)
    monkeypatch.setattr(tested, "Cordons", Cordons)
    monkeypatch.setattr(tested, "LoadPod", Load)
    monkeypatch.setattr(tested, "Watch", Watch)
    monkeypatch.setattr(tested, "RUNS", tmp_path)
    monkeypatch.setattr(tested, "wait_settled", lambda *_, **__: None)
    return calls


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs the test, or its control, on a release of that cluster."""

    def run(*options: str) -> Result:
        target = Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1")
        return tested.rollout_test(target, release="chat", control="--control" in options, progress=Progress())

    return run


def test_control_is_taken_back_before_load_is_removed(calls: _Calls, run: Callable[..., Result]) -> None:
    """When the load does not start, the release first gets its own values back, then the load is removed."""
    calls.fail = {2: CommandFailed("no load")}
    assert run("--control").verdict == Verdict(Outcome.NOT_MEASURED, "no load")
    assert calls == [_BARE, "load starts", _OWN, "load is removed"]


def test_load_that_cannot_be_removed_leaves_no_release_unprotected(calls: _Calls, run: Callable[..., Result]) -> None:
    """A failure to remove the load comes after the release has its own values."""
    calls.fail = {2: CommandFailed("no load"), 4: CommandFailed("not removed")}
    with pytest.raises(CommandFailed, match="not removed"):
        run("--control")
    assert calls == [_BARE, "load starts", _OWN, "load is removed"]


def test_second_interrupt_comes_through_after_the_clean_up(calls: _Calls, run: Callable[..., Result]) -> None:
    """Ctrl-C while the values are given back has them given back again, and the load is removed."""
    calls.fail = {2: KeyboardInterrupt(), 3: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run("--control")
    assert calls == [_BARE, "load starts", _OWN, _OWN, "load is removed"]


def test_release_that_stays_unprotected_is_named(calls: _Calls, run: Callable[..., Result]) -> None:
    """When the values cannot be given back the error says so, and the load is removed all the same."""
    calls.fail = {2: CommandFailed("no load"), 3: CommandFailed("helm failed")}
    with pytest.raises(CommandFailed, match="helm failed") as failed:
        run("--control")
    assert "release 'chat' may still be without its protection" in "".join(failed.value.__notes__)
    assert calls[-1] == "load is removed"


def test_without_a_control_no_values_are_given_back(calls: _Calls, run: Callable[..., Result]) -> None:
    """The test itself takes nothing away, so that there is nothing to give back."""
    calls.fail = {1: CommandFailed("no load")}
    assert run().verdict.line == "verdict: not measured: no load"
    assert calls == ["load starts", "load is removed"]


def test_engine_that_names_no_pod_is_not_measured(
    calls: _Calls, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no answer says which pod it came from, the test ends at once, with what the engine must do."""

    def answer_without_a_pod(load: Any) -> None:  # noqa: ANN401 - stands in for a LoadPod
        load.recorder.record("sent", client="fixed", id=0)
        load.recorder.record(
            "end", client="fixed", id=0, outcome="ok", pod="", http=200, chunks=3, ttft=0.1, e2e=0.2, reused=False,
            detail="",
        )  # fmt: skip

    monkeypatch.setattr(f"{tested.__name__}.LoadPod.wait_running", answer_without_a_pod, raising=False)
    verdict = run().verdict
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "no answer says which pod it came from" in verdict.reason
    assert "x-served-by" in verdict.reason
    assert calls == ["load starts", "load is removed"]


def test_rollout_that_replaced_nothing_is_not_measured(recorder: Recorder) -> None:
    """Requests that all went well prove nothing where no pod was told to stop."""
    recorder.record("disrupt", 1.0, text="")
    recorder.record(
        "end", 2.0, client="fixed", id=0, outcome="ok", pod="p", http=200, chunks=3, ttft=0.1, e2e=0.2, reused=False,
        detail="",
    )  # fmt: skip
    assert tested._judged(recorder, "", control=False)[0].reason == "no pod was replaced while load ran"
    assert tested._judged(recorder, "", control=True)[0].outcome is Outcome.NOT_MEASURED


def test_rollout_waits_for_a_stream_on_a_serving_pod(recorder: Recorder) -> None:
    """Load must have run for its time, and a stream be past its first token on a pod in service."""
    assert tested._not_yet(recorder.state, 20) == "load has not run for 20 s"
    recorder.record("sent", 1.0, client="fixed", id=0)
    assert tested._not_yet(recorder.state, 20) == "no stream is open on a serving pod"
    pod = {"pod": "p", "release": "mock", "node": "n", "restarts": 0, "reason": ""}
    recorder.record("first_token", 2.0, client="fixed", id=0, pod="p")
    recorder.record("pod", 1.0, state="Unready", **pod)
    assert tested._not_yet(recorder.state, 20) == "no stream is open on a serving pod"
    recorder.record("pod", 2.0, state="Ready", **pod)
    assert not tested._not_yet(recorder.state, 20)


def test_release_that_cannot_start_ends_with_a_verdict(
    calls: _Calls, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that does not come to rest is a verdict with exit code 2, and the run's summary has its reason."""

    def stuck(*_: object, **__: object) -> None:
        raise DeadlineExceeded("release 'chat' is not at rest")

    monkeypatch.setattr(tested, "wait_settled", stuck)
    result = run()
    keep(result, Progress())
    assert (result.verdict.line, result.verdict.exit_code) == (
        "verdict: not measured: release 'chat' is not at rest",
        2,
    )
    kept = json.loads((result.folder / "summary.json").read_text())
    assert (kept["name"], kept["reason"], kept["total"]) == ("rollout-test", "release 'chat' is not at rest", 0)
    assert (result.folder / "report.html").exists()
    assert calls == ["load is removed"]
