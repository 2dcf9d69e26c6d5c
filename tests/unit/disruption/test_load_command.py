"""How the last load ended is told again, and what was not measured is never taken for a good end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.disruption import load_command
from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("outcome", "ended", "code", "said"),
    [
        ("ok", True, 0, "total=1 ok=1 failures=none"),
        ("truncated", True, 1, "total=1 ok=0 failures={'cut': 1}"),
        ("truncated", False, 1, "total=1 ok=0 failures={'cut': 1}"),
        ("ok", False, 2, "not measured: it was ended before it could say so itself"),
        ("sent", True, 2, "not measured: its own count and its log differ by 1 requests"),
        ("", True, 2, "not measured: no request ended"),
        ("", False, 2, "not measured: no request ended"),
    ],
)
def test_last_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, outcome: str, ended: bool, code: int, said: str
) -> None:
    """A loss is 1 whatever else; a load that sent nothing, or was cut short itself, is 2."""
    recorder = Recorder(tmp_path / "20260101-000000-load" / "timeline.jsonl")
    recorder.record("run", scenario="load", promise="A", text="", environment={})
    if outcome:
        recorder.record("sent", client="load", id=0)
    if outcome == "sent":
        # Another request ended; the line that said how this one did is lost.
        outcome, total = "ok", 2
    else:
        total = 1
    if outcome:
        recorder.record(
            "end", client="load", id=0, outcome=outcome, pod="p", http=200, chunks=1, ttft=0.1, e2e=0.2, reused=False,
            detail="",
        )  # fmt: skip
    if ended:
        recorder.record(
            "summary",
            client="load", total=total, outcomes={}, latency={}, overloaded=0, lag={"p99": 0.001}, exit_code=0
        )  # fmt: skip
    recorder.close()
    monkeypatch.setattr(load_command, "RUNS", tmp_path)
    done = CliRunner().invoke(application.app, ["load", "--last"])
    assert done.exit_code == code
    assert said in done.stdout


def test_no_load_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any load the fault is named, with what to do."""
    monkeypatch.setattr(load_command, "RUNS", tmp_path)
    assert "run: ./just load" in str(CliRunner().invoke(application.app, ["load", "--last"]).exception)
