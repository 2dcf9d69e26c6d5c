"""A scenario is worth what its controls show."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferctl.disruption.controls import held_to_controls
from inferctl.disruption.result import Result
from inferctl.disruption.verdict import Outcome, Verdict
from inferctl.report.findings import Findings


def _result(name: str, outcome: Outcome) -> Result:
    return Result(name, Verdict(outcome, "why"), Findings(), 1.0, Path("runs"))


@pytest.mark.parametrize(
    ("own", "control", "expected"),
    [
        (Outcome.PROVEN, Outcome.PROVEN, Outcome.PROVEN),
        (Outcome.PROVEN, Outcome.NOT_MEASURED, Outcome.NOT_MEASURED),
        (Outcome.LOSS, Outcome.NOT_MEASURED, Outcome.LOSS),
    ],
)
def test_blind_control_takes_its_scenarios_word_back(own: Outcome, control: Outcome, expected: Outcome) -> None:
    """No loss found by a test that cannot be seen to find any is not measured; loss that was found stays."""
    results = [_result("drain", own), _result("drain/unprotected", control), _result("drain-twice", Outcome.PROVEN)]
    held = held_to_controls(results)
    assert [result.verdict.outcome for result in held] == [expected, control, Outcome.PROVEN]
    assert ("drain/unprotected lost nothing" in held[0].verdict.reason) is (own is not expected)
