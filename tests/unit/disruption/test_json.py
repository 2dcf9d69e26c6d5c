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


def test_runs_as_text_end_with_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --json the last line is the verdict over all runs."""
    results = [_result(Outcome.PROVEN), _result(Outcome.LOSS, truncated=2)]
    assert commands._conclude(results, as_json=False) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "verdict: loss: 2 runs with 22 requests: 1 proven, 1 loss"
