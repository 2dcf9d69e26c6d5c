"""What scenarios hold beyond the count of requests is missed where it does not hold."""

from __future__ import annotations

import pytest

from inferctl.disruption.scenarios.crashes import OutOfMemory
from inferctl.disruption.scenarios.drains import BlockedDrain
from inferctl.disruption.scenarios.rollouts import BadRollout
from inferctl.report.findings import Findings
from inferctl.report.state import Pod, State


def test_stuck_rollout_stops_no_serving_pod() -> None:
    """A pod that served and was told to stop is named; one of the bad version may go."""
    found = Findings(aimed_at=("good-1", "good-2"), retired={"good-2": 5.0, "bad-1": 6.0})
    assert BadRollout().expect(State(), found) == ["serving pod good-2 was told to stop"]
    found.retired = {"bad-1": 6.0}
    assert not BadRollout().expect(State(), found)


def test_blocked_drain_must_be_refused_by_the_budget() -> None:
    """A drain that went through, or failed for another reason, was not blocked by the PodDisruptionBudget."""
    scenario = BlockedDrain()
    assert scenario.expect(State(), Findings())
    scenario.said = "error: unable to drain node: time-out"
    assert "but 'error: unable to drain node: time-out'" in scenario.expect(State(), Findings())[0]
    scenario.said = "Cannot evict pod as it would violate the pod's disruption budget."
    assert not scenario.expect(State(), Findings())


@pytest.mark.parametrize(("reason", "complains"), [("OOMKilled", False), ("Error", True)])
def test_engine_must_be_ended_for_its_memory(reason: str, *, complains: bool) -> None:
    """An engine that was restarted for another reason than its memory is no proof."""
    state = State()
    state.pods["pod"] = Pod("pod", restarts=1, reason=reason)
    state.pods["other"] = Pod("other", reason="OOMKilled")
    assert bool(OutOfMemory().expect(state, Findings())) is complains
