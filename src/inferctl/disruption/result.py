"""What a run came to, and what of it is kept beside its timeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferctl.report import html

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.console import Progress
    from inferctl.disruption.verdict import Verdict
    from inferctl.report.findings import Findings


@dataclass(frozen=True)
class Result:
    """What one run came to.

    Attributes:
        name: of the scenario and, after a slash, of the control.
        seconds: how long it took.
        folder: where its timeline and report are.
    """

    name: str
    verdict: Verdict
    found: Findings
    seconds: float
    folder: Path


def summary(result: Result) -> dict[str, object]:
    """A run's result as a program reads it."""
    found = result.found
    return {
        "name": result.name, "verdict": result.verdict.outcome.value, "reason": result.verdict.reason,
        "seconds": round(result.seconds, 1), "total": found.total, "ok": found.ok, "at_risk": len(found.at_risk),
        "lost": {kind: len(requests) for kind, requests in found.lost.items()},
        "folder": str(result.folder),
    }  # fmt: skip


def keep(result: Result, progress: Progress) -> None:
    """Put the report and the summary beside the run's timeline."""
    page = result.folder / "report.html"
    html.write(result.folder / "timeline.jsonl", page)
    (result.folder / "summary.json").write_text(json.dumps(summary(result), indent=1) + "\n")
    progress.say(f"report: {page}")
