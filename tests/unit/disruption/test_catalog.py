"""The scenarios keep the rules that all of them share."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption.catalog import QUICK, SCENARIOS, chosen
from inferctl.disruption.scenario import SHORT_YOUNG, Scenario
from inferctl.disruption.session import Session
from inferctl.disruption.verdict import Promise
from inferctl.errors import UsageError

_EXISTING = Target("existing", Path("/kubeconfig"), "production", "push:1", "pull:1")


def _session(allowed: str = "") -> Session:
    return Session(_EXISTING, repository="pull:1/mock", digest="sha256:0", progress=Progress(), nodes_allowed=allowed)


def test_names_are_unique() -> None:
    """Each name stands for one scenario."""
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_loss_has_a_control(scenario: type[Scenario]) -> None:
    """What promises that begun streams survive has a control; what must lose is its own."""
    assert bool(scenario.controls) == (scenario.promise in {Promise.A, Promise.C})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_crashes_state_a_time(scenario: type[Scenario]) -> None:
    """Class B, and only that, says within which time service is restored."""
    assert (scenario.restored_within is not None) == (scenario.promise is Promise.B)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.promise is Promise.A])
def test_class_a_runs_every_kind_of_load(scenario: type[Scenario]) -> None:
    """Short and long answers, on new, kept and young connections."""
    kinds = {(load.tokens > 100, load.keepalive, load.max_age is not None) for load in scenario.loads}
    assert kinds == {
        (False, False, False), (False, True, False), (False, True, True), (True, False, False), (True, True, False),
    }  # fmt: skip


def test_young_connections_are_below_the_chart_s_sleep() -> None:
    """The age at which a kept connection is given up is below the preStop sleep of the session's values."""
    values = _session()._values(SCENARIOS[0], None)
    assert SHORT_YOUNG.max_age is not None
    assert SHORT_YOUNG.max_age < values.get("rollout", {}).get("preStopSeconds", 10)


def test_control_values_lie_over_the_scenario_s() -> None:
    """The pods of a control are the unprotected ones from the start."""
    scenario = chosen("rollout")[0]
    values = _session()._values(scenario, scenario.controls[0])
    assert values["rollout"] == {"preStopSeconds": 0, "terminationGracePeriodSeconds": 1}


def test_quick_set() -> None:
    """The quick set is the five that CI runs."""
    assert [s.name for s in chosen("quick")] == ["rollout", "bad-rollout", "drain", "kubelet-restart", "node-killed"]
    assert set(QUICK) <= {scenario.name for scenario in SCENARIOS}


def test_unknown_scenario_is_refused() -> None:
    """A name that stands for nothing is named, with where to look."""
    with pytest.raises(UsageError, match=r"scenario 'rolout'.*--list"):
        chosen("rolout")


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.on_nodes])
def test_foreign_nodes_are_not_touched_unasked(scenario: type[Scenario]) -> None:
    """On a cluster that is not ours a scenario that acts on nodes refuses, and says how to allow what can be."""
    refusal = _session().refusal(scenario)
    assert ("--backend embedded" if scenario.own_nodes else "--allow-nodes production") in refusal


def test_only_the_named_context_is_allowed() -> None:
    """Permission for another context is no permission; for this one it is."""
    drain = chosen("drain")[0]
    assert _session("staging").refusal(drain)
    assert not _session("production").refusal(drain)


def test_rollout_needs_no_permission() -> None:
    """What stays within its own namespace runs on any cluster that one is pointed to."""
    assert not _session().refusal(chosen("rollout")[0])
