"""What a program reads of scenarios and of their runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.disruption import commands
from inferctl.disruption.catalog import QUICK, SCENARIOS
from inferctl.disruption.result import Result
from inferctl.disruption.verdict import Outcome, Verdict


def _result(outcome: Outcome, **lost: int) -> Any:  # noqa: ANN401 - stands in for a run
    requests = {kind: [object()] * count for kind, count in lost.items()}
    found = SimpleNamespace(total=10 + sum(lost.values()), ok=10, at_risk=[object()] * 4, lost=requests)
    verdict = Verdict(outcome, "why")
    return SimpleNamespace(name="drain", verdict=verdict, seconds=61.23, found=found, folder=Path("runs/drain"))


def test_scenarios_as_json_are_those_that_are_listed() -> None:
    """Each has its class, its controls, and whether CI runs it."""
    rows = json.loads(CliRunner().invoke(application.app, ["test", "--list", "--json"]).stdout)
    assert [row["name"] for row in rows] == [scenario.name for scenario in SCENARIOS]
    assert {row["name"] for row in rows if row["quick"]} == set(QUICK)
    drain = next(row for row in rows if row["name"] == "drain")
    assert drain["class"] == "A"
    assert "unprotected" in drain["controls"]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([Outcome.PROVEN], 0),
        ([Outcome.PROVEN, Outcome.NOT_MEASURED], 2),
        ([Outcome.LOSS, Outcome.NOT_MEASURED], 1),
    ],
)
def test_runs_as_json_are_all_that_is_printed(
    outcomes: list[Outcome], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object per run, and the exit code is that of the worst: loss outweighs what was not measured."""
    assert commands._conclude([_result(outcome, truncated=2) for outcome in outcomes], as_json=True) == code
    rows = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in rows] == [outcome.value for outcome in outcomes]
    assert rows[0] == {
        "name": "drain",
        "verdict": outcomes[0].value,
        "reason": "why",
        "seconds": 61.2,
        "total": 12,
        "ok": 10,
        "at_risk": 4,
        "lost": {"truncated": 2},
        "folder": "runs/drain",
    }


def test_blind_control_outweighs_its_proven_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """All runs together are not measured where a control lost nothing, and so is the scenario beside it."""
    scenario, control = _result(Outcome.PROVEN), _result(Outcome.NOT_MEASURED)
    control.name = "drain/unprotected"
    runs = [Result(r.name, r.verdict, r.found, r.seconds, r.folder) for r in (scenario, control)]
    assert commands._conclude(runs, as_json=True) == 2
    assert [row["verdict"] for row in json.loads(capsys.readouterr().out)] == ["not measured", "not measured"]


@pytest.mark.parametrize(
    ("name", "options", "planned"),
    [
        ("rollout", {}, [None]),
        ("rollout", {"with_controls": True}, [None, "unprotected", "short-grace", "abort", "ignores-sigterm"]),
        ("rollout", {"only_control": True}, ["unprotected"]),
        ("engine-killed", {"with_controls": True}, [None]),
    ],
)
def test_controls_are_planned(name: str, options: dict[str, bool], planned: list[str | None]) -> None:
    """All controls of a scenario run with it if asked for; a control alone is its first."""
    plan = commands._plan(name, **{"with_controls": False, "only_control": False} | options)
    assert [control and control.name for _, control in plan] == planned


def test_quick_set_has_one_control_each() -> None:
    """CI sees each of its scenarios find loss."""
    plan = commands._plan("quick", with_controls=True, only_control=False)
    assert [(scenario.name, bool(control)) for scenario, control in plan] == [
        ("rollout", False), ("rollout", True), ("bad-rollout", False), ("bad-rollout", True), ("drain", False),
        ("drain", True), ("kubelet-restart", False), ("kubelet-restart", True), ("node-killed", False),
    ]  # fmt: skip


def test_runs_as_text_end_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the last line is the verdict over all runs."""
    results = [_result(Outcome.PROVEN), _result(Outcome.LOSS, truncated=2)]
    assert commands._conclude(results, as_json=False) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "verdict: loss: 2 runs with 22 requests: 1 proven, 1 loss"
