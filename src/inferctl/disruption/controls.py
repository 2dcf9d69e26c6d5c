"""What controls mean for their scenario: where nothing shows that loss would be seen, having seen none says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inferctl.disruption.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inferctl.disruption.result import Result


def held_to_controls(results: Sequence[Result]) -> list[Result]:
    """Take the word of scenarios back whose controls, run beside them, lost nothing.

    Args:
        results: of scenarios and of their controls, whose names go on after a slash.
    """
    blind = {result.name for result in results if "/" in result.name and result.verdict.outcome is not Outcome.PROVEN}
    return [_held(result, sorted(name for name in blind if name.startswith(f"{result.name}/"))) for result in results]


def _held(result: Result, blind: list[str]) -> Result:
    if not blind or result.verdict.outcome is not Outcome.PROVEN:
        return result
    reason = f"{', '.join(blind)} lost nothing, so that this test has not been seen to find loss"
    return replace(result, verdict=Verdict(Outcome.NOT_MEASURED, reason))
