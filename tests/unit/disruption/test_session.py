"""A run is judged by what its release was deployed with."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption.scenario import EVERY_LOAD
from inferctl.disruption.scenarios.crashes import EngineKilled
from inferctl.disruption.scenarios.rollouts import Rollout
from inferctl.disruption.session import Session
from inferctl.disruption.verdict import Outcome
from inferctl.errors import DeadlineExceeded, UsageError

if TYPE_CHECKING:
    from inferctl.report.recorder import Recorder

_POD = {"pod": "old", "release": "model", "node": "n", "restarts": 0, "reason": ""}
_END = {"ttft": 0.1, "e2e": 0.2, "detail": ""}


def _request(recorder: Recorder, number: int, outcome: str, *, http: int, client: str) -> None:
    """A request on the pod that is told to stop, which ends 10 s after that."""
    request: dict[str, Any] = {"client": client, "id": number, "pod": "old"}
    if http == 200:
        recorder.record("first_token", 9.0, **request)
    recorder.record(
        "end", 20.0, outcome=outcome, http=http, chunks=3 if http == 200 else 0, reused=True, **request, **_END
    )


@pytest.fixture
def session() -> Session:
    """A session that has done nothing yet."""
    target = Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1")
    return Session(target, repository="pull:1/mock", digest="sha256:0", progress=Progress())


def _run(recorder: Recorder, *, at_risk: int = 8, rollout: dict[str, int] | None = None) -> Any:  # noqa: ANN401 - stands in for a Run
    """A rollout of one pod under every load, with so many streams at risk."""
    recorder.record("pod", 1.0, state="Ready", **_POD)
    recorder.record("disrupt", 9.0, text="", pods=["old"], retires=True)
    recorder.record("pod", 10.0, state="Terminating", **_POD)
    for number in range(at_risk):
        _request(recorder, number, "ok", http=200, client="short-new")
    image = {"repository": "pull:1/mock", "digest": "sha256:0"}
    return SimpleNamespace(
        recorder=recorder,
        control=None,
        loads=[SimpleNamespace(load=load) for load in EVERY_LOAD],
        values={"image": image, "rollout": rollout or {}},
    )


@pytest.mark.parametrize(
    ("rollout", "outcome"),
    [
        ({}, Outcome.LOSS),
        ({"preStopSeconds": 10}, Outcome.LOSS),
        ({"preStopSeconds": 5}, Outcome.PROVEN),
        ({"preStopSeconds": 0}, Outcome.PROVEN),
    ],
)
def test_young_connections_are_those_below_the_release_s_own_sleep(
    recorder: Recorder, session: Session, rollout: dict[str, int], outcome: Outcome
) -> None:
    """A connection of 5 s may be refused where the preStop sleep is no longer than that, and nowhere else."""
    run = _run(recorder, rollout=rollout)
    _request(recorder, 8, "http_500", http=500, client="short-young")
    assert session._judge(Rollout(), run, "")[0].outcome is outcome


def test_scenario_that_asks_for_more_streams_gets_them(recorder: Recorder, session: Session) -> None:
    """One stream fewer at risk than the scenario wants is not measured."""
    verdict, _ = session._judge(Rollout(), _run(recorder, at_risk=7), "")
    assert verdict.line == "verdict: not measured: 7 streams were at risk, at least 8 are needed"


def test_what_else_must_hold_is_loss_where_it_does_not(recorder: Recorder, session: Session) -> None:
    """A complaint of the scenario itself outweighs requests that all went well, and is the last line."""

    class Complains(Rollout):
        def expect(self, *_: object) -> list[str]:
            return ["a serving pod was told to stop"]

    verdict, _ = session._judge(Complains(), _run(recorder), "")
    assert verdict.line == "verdict: loss: a serving pod was told to stop"
    assert recorder.state.facts["verdict"]["outcome"] == "loss"


def test_run_that_came_to_no_end_proves_nothing_but_loss(recorder: Recorder, session: Session) -> None:
    """What went wrong is the reason why nothing was measured; a stream that was cut by then stays a loss."""
    run = _run(recorder)
    assert session._judge(Rollout(), run, "no end\nmore")[0].line == "verdict: not measured: no end"
    _request(recorder, 8, "truncated", http=200, client="long-new")
    assert session._judge(Rollout(), run, "no end")[0].outcome is Outcome.LOSS


@pytest.mark.parametrize(("after", "outcome"), [(14, Outcome.PROVEN), (16, Outcome.LOSS)])
def test_crash_is_held_to_its_own_time(recorder: Recorder, session: Session, after: float, outcome: Outcome) -> None:
    """A scenario of class B is judged by the time that it states."""
    run = _run(recorder)
    for number in (8, 9, 10):
        _request(recorder, number, "truncated", http=200, client="long-new")
    recorder.record(
        "end", 9.0 + after, client="short-new", id=11, outcome="TimeoutError", pod="", http=0, chunks=0, reused=False,
        **_END,
    )  # fmt: skip
    assert EngineKilled.restored_within == 15
    assert session._judge(EngineKilled(), run, "")[0].outcome is outcome


def test_disruption_waits_for_a_long_answer(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough short answers are not enough: one that outlives the preStop sleep must be open on a pod to be struck."""
    monkeypatch.setattr("inferctl.disruption.session._AT_RISK_SECONDS", 0)
    monkeypatch.setattr(Rollout, "struck", lambda *_: ["old"])
    run: Any = SimpleNamespace(
        recorder=recorder, wait=recorder.wait, loads=[SimpleNamespace(load=load) for load in EVERY_LOAD]
    )
    for number in range(8):
        recorder.record("first_token", 9.0, client="short-new", id=number, pod="old")
    with pytest.raises(DeadlineExceeded, match="no long answer has begun on"):
        Session._wait_at_risk(Rollout(), run)
    recorder.record("first_token", 9.0, client="long-kept", id=0, pod="old")
    Session._wait_at_risk(Rollout(), run)


def test_foreign_namespace_is_left_alone(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace of the session's name that inferctl did not make is refused, with what would make it inferctl's."""
    asked: list[str] = []

    def kubectl(*words: str, stdin: str = "") -> str:
        assert not stdin
        asked.append(words[0])
        return json.dumps({"metadata": {"name": "inferctl-test", "labels": {"team": "search"}}})

    monkeypatch.setattr(session, "_kubectl", kubectl)
    with pytest.raises(UsageError, match="is not inferctl's; remove it, or label it"):
        session._make_namespace()
    assert asked == ["get"]
