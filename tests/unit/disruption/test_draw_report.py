"""A report can be drawn again from any timeline that inferctl wrote, and from nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from inferctl.disruption.commands import draw_report
from inferctl.errors import UsageError


def _record(t: float, kind: str, **fields: Any) -> bytes:  # noqa: ANN401 - the fields of any record
    return json.dumps({"t": t, "kind": kind, **fields}).encode() + b"\n"


_POD = {"pod": "a", "release": "model", "node": "n", "restarts": 0, "reason": ""}
_END = {"http": 200, "chunks": 3, "ttft": 0.1, "e2e": 1.0, "reused": False, "detail": "", "last_bytes": ""}
_LINES = (
    _record(0, "run", scenario="drain", promise="A", text="a node is drained", environment={}),
    _record(1, "client", client="load", text="4 streams"),
    _record(1, "pod", **_POD, state="Ready"),
    _record(1, "slice", ready=["a"], terminating=[]),
    _record(2, "sent", client="load", id=1),
    _record(3, "first_token", client="load", id=1, pod="a"),
    _record(3, "disrupt", text="drain", pods=["a"], retires=True),
    _record(4, "pod", **_POD, state="Terminating"),
    _record(4, "sigterm", pod="a", open=1),
    _record(5, "end", client="load", id=1, outcome="truncated", pod="a", **_END),
    _record(5, "event", reason="Killing", object="Pod/a", message=None),
    _record(6, "summary", client="load", overloaded=0, lag={"p99": 0.1}),
    _record(6, "settled", text="settled"),
    _record(7, "verdict", outcome="loss", reason="one lost"),
)


@pytest.mark.parametrize("whole", range(1, len(_LINES) + 1))
def test_run_that_was_killed_has_a_report_of_what_is_there(tmp_path: Path, whole: int) -> None:
    """However few lines a run came to write, and though the last one is half written, its report is drawn."""
    timeline, page = tmp_path / "timeline.jsonl", tmp_path / "page.html"
    timeline.write_bytes(b"".join(_LINES[:whole]) + b"".join(_LINES[whole : whole + 1])[:20])
    draw_report(timeline, page)
    text = page.read_text(encoding="utf-8")
    assert "drain" in text
    assert ("the run was not finished" in text) is (whole < len(_LINES))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "begins with 'nothing', not with a record of kind 'run'"),
        (b'{"t": 0, "kind": "ru', "begins with 'nothing'"),
        (b'{"t": 0, "kind": "x"}\n', "begins with 'x'"),
        (b"hello\n", "line 1: not a record"),
        (b"\x7fELF\xff\n", "line 1: not a record"),
        (_LINES[0] + b"{}\n" + _LINES[1], "line 2: not a record"),
    ],
)
def test_file_that_is_no_timeline_leaves_no_page(tmp_path: Path, content: bytes, said: str) -> None:
    """The error names the file and what is wrong with it, and no empty page stays behind."""
    timeline, page = tmp_path / "timeline.jsonl", tmp_path / "page.html"
    timeline.write_bytes(content)
    with pytest.raises(UsageError, match=said) as refused:
        draw_report(timeline, page)
    assert str(timeline) in str(refused.value)
    assert "name a timeline.jsonl that inferctl test wrote" in str(refused.value)
    assert not page.exists()


def test_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that is missing, a file that exists, a name that is too long: each by name with the fix."""
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_bytes(b"".join(_LINES))
    for page, said in (
        (
            tmp_path / "gone" / "page.html",
            "No such file or directory; name a file in a folder that exists",
        ),
        (timeline / "page.html", "Not a directory; name a file"),
        (tmp_path / ("x" * 300), "File name too long; name a file"),
        (timeline, "exists; name a file that does not"),
        (tmp_path, "exists; name a file that does not"),
    ):
        with pytest.raises(UsageError, match=said):
            draw_report(timeline, page)
    assert timeline.read_bytes() == b"".join(_LINES)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has a folder that even root cannot write")
def test_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """Where no file can be made, the page's name and the reason are told."""
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_bytes(_LINES[0])
    with pytest.raises(UsageError, match=f"page /proc/{os.getpid()}/page.html: .*; name a file in a folder"):
        draw_report(timeline, Path(f"/proc/{os.getpid()}/page.html"))
