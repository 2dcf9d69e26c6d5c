"""A run is judged by what its release was deployed with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption.scenario import EVERY_LOAD
from inferctl.disruption.scenarios.rollouts import Rollout
from inferctl.disruption.session import Session
from inferctl.disruption.verdict import Outcome

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


@pytest.mark.parametrize(
    ("sleep", "outcome"), [(None, Outcome.LOSS), (10, Outcome.LOSS), (5, Outcome.PROVEN), (0, Outcome.PROVEN)]
)
def test_young_connections_are_those_below_the_release_s_own_sleep(
    recorder: Recorder, sleep: int | None, outcome: Outcome
) -> None:
    """A connection of 5 s may be refused where the preStop sleep is no longer than that, and nowhere else."""
    target = Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1")
    session = Session(target, repository="pull:1/mock", digest="sha256:0", progress=Progress())
    recorder.record("pod", 1.0, state="Ready", **_POD)
    recorder.record("disrupt", 9.0, text="", pods=["old"], retires=True)
    recorder.record("pod", 10.0, state="Terminating", **_POD)
    for number in range(8):
        _request(recorder, number, "ok", http=200, client="short-new")
    _request(recorder, 8, "http_500", http=500, client="short-young")
    image = {"repository": "pull:1/mock", "digest": "sha256:0"}
    run: Any = SimpleNamespace(
        recorder=recorder,
        control=None,
        loads=[SimpleNamespace(load=load) for load in EVERY_LOAD],
        values={"image": image, "rollout": {} if sleep is None else {"preStopSeconds": sleep}},
    )
    verdict, _ = session._judge(Rollout(), run, "")
    assert verdict.outcome is outcome
