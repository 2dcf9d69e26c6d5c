"""The timeline's file is whole lines of JSON."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inferctl.errors import DeadlineExceeded, UsageError
from inferctl.report.timeline import Timeline, entry, read

if TYPE_CHECKING:
    from inferctl.report.recorder import Recorder
    from inferctl.report.state import State


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Records come back as they were, in order."""
    timeline = Timeline(tmp_path / "run" / "timeline.jsonl")
    records = [entry("action", 1.5, text="drain"), entry("slice", 2.0, ready=["a"], terminating=[])]
    for record in records:
        timeline.append(record)
    timeline.close()
    assert list(read(timeline.path)) == records


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b"[]", "it is no JSON object"),
        (b"\xff\xfe", "it is no UTF-8 text"),
        (rb'{"t": 1, "kind": "action", "text": "\ud800"}', "it is no UTF-8 text"),
        (b'{"kind": "x"}', "it has no time t"),
        (b'{"t": "soon", "kind": "x"}', "it has no time t"),
        (b'{"t": NaN, "kind": "x"}', "it has no time t"),
        (b'{"t": 1e999, "kind": "x"}', "it has no time t"),
        (b'{"t": true, "kind": "x"}', "it has no time t"),
        (b'{"t": 1e9, "kind": "x"}', "its time t is days away from the first one"),
        (b'{"t": 1}', "it has no kind"),
        (b'{"t": 1, "kind": "end", "client": "a", "id": 1}', "outcome of a record of kind 'end' must be a text"),
        (b'{"t": 1, "kind": "exit", "pod": "a"}', "finished of a record of kind 'exit' must be a number"),
        (b'{"t": 1, "kind": "slice", "ready": "a"}', "ready of a record of kind 'slice' must be a list of texts"),
        (
            b'{"t": 1, "kind": "event", "object": "Pod/a", "message": ""}',
            "reason of a record of kind 'event' must be a text or null",
        ),
        (b'{"t": 1, "kind": "summary", "client": "a", "overloaded": 0, "total": "3"}', "total of a record of kind"),
        (b'{"t": 1, "kind": "disrupt", "text": "", "pods": 1}', "pods of a record of kind 'disrupt' must be a list"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: bytes, why: str) -> None:
    """A line that is no record is refused with its number, the reason and the fix."""
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(b'{"t": 1, "kind": "x"}\n' + line + b"\n")
    with pytest.raises(
        UsageError, match=f"timeline.jsonl, line 2: not a record of a timeline: {why}.*take the line out"
    ):
        list(read(path))


def test_line_that_a_killed_run_left_half_written_is_passed_over(tmp_path: Path) -> None:
    """What was written whole before it is read, wherever the last line breaks off."""
    path = tmp_path / "timeline.jsonl"
    whole, last = b'{"t": 1, "kind": "x"}\n', '{"t": 2, "kind": "action", "text": "ä"}'.encode()
    for length in range(len(last)):
        path.write_bytes(whole + last[:length])
        assert [record["t"] for record in read(path)] == [1]
    path.write_bytes(whole + last)
    assert [record["t"] for record in read(path)] == [1, 2]


def test_file_without_line_ends_is_refused() -> None:
    """A file that is all one line is not read into memory whole."""
    with pytest.raises(UsageError, match="/dev/zero, line 1: not a record"):
        list(read(Path("/dev/zero")))


def test_folder_is_named(tmp_path: Path) -> None:
    """A folder in the place of a file is told with what to give instead."""
    with pytest.raises(UsageError, match="Is a directory; name a timeline"):
        list(read(tmp_path))


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is named with what to give instead."""
    with pytest.raises(UsageError, match=r"gone.jsonl: No such file.*name a timeline.jsonl"):
        list(read(tmp_path / "gone.jsonl"))


def _missing_action(state: State) -> str:
    return "" if state.notes else "no action yet"


def test_wait_ends_when_the_state_comes(recorder: Recorder) -> None:
    """A waiter goes on as soon as a record of another thread brings what it waits for."""
    timer = threading.Timer(0.05, recorder.record, ["action"], {"text": "drain"})
    timer.start()
    recorder.wait(_missing_action, 60)
    timer.join()


def test_wait_says_what_is_missing(recorder: Recorder) -> None:
    """A wait that ends in vain says what was missing last."""
    with pytest.raises(DeadlineExceeded, match="not after 0 s: no action yet"):
        recorder.wait(_missing_action, 0)


def test_wait_gives_up_when_it_is_hopeless(recorder: Recorder) -> None:
    """A wait ends before its deadline when what it waits for cannot come any more."""
    with pytest.raises(DeadlineExceeded, match="no action yet: the load has ended"):
        recorder.wait(_missing_action, 60, failed=lambda: "the load has ended")


def test_records_after_the_end_are_ignored(recorder: Recorder) -> None:
    """Observers that outlive the run change nothing."""
    recorder.close()
    recorder.record("action", text="late")
    assert not recorder.state.notes
    assert not list(read(recorder.path))
