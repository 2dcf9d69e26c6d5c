"""The timeline's file is whole lines of JSON."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from inferctl.errors import DeadlineExceeded, UsageError
from inferctl.report.timeline import Timeline, entry, read

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("line", ["{", "[]", '{"kind": "x"}', '{"t": "soon", "kind": "x"}'])
def test_bad_line_is_named(tmp_path: Path, line: str) -> None:
    """A line that is no record is refused with its number."""
    path = tmp_path / "timeline.jsonl"
    path.write_text('{"t": 1, "kind": "x"}\n' + line + "\n")
    with pytest.raises(UsageError, match="line 2: not a record"):
        list(read(path))


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
