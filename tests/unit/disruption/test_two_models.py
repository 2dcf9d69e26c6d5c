"""The scenario of two models complains when the good one notices the bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.disruption.scenarios.rollouts import TwoModels
from inferctl.report.findings import find
from inferctl.report.state import State

if TYPE_CHECKING:
    from inferctl.report.timeline import Record


def _pod(name: str, t: float, state: str = "Ready", restarts: int = 0) -> Record:
    release = name.rpartition("-")[0]
    return {
        "t": t, "kind": "pod", "pod": name, "release": release, "node": "n", "state": state, "restarts": restarts,
        "reason": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([], []),
        ([_pod("bad-1", 4, "Running", 3), _pod("bad-1", 5, "Gone", 3)], []),
        ([_pod("good-1", 4, "Terminating", 2)], ["pod good-1 of the good model was told to stop"]),
        ([_pod("good-2", 4, "Ready", 1)], ["pod good-2 of the good model was restarted"]),
    ],
    ids=["nothing", "bad-model-dies", "good-pod-stopped", "good-pod-restarted"],
)
def test_only_what_happens_to_the_good_model_counts(later: list[Record], expected: list[str]) -> None:
    """A good pod that stops or restarts after the bad one came is a complaint; earlier restarts are not."""
    disrupt: Record = {"t": 2.0, "kind": "disrupt", "text": "", "pods": ["good-1", "good-2"], "retires": False}
    state = State()
    for record in [_pod("good-1", 1, restarts=2), _pod("good-2", 1), disrupt, _pod("bad-1", 3, "Running"), *later]:
        state.apply(record)
    scenario = TwoModels()
    scenario.restarts_before = {"good-1": 2, "good-2": 0}
    assert scenario.expect(state, find(state)) == expected
