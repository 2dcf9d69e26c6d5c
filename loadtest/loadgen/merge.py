"""Several runs as one: reads summaries, or the logs that hold them, and adds them up."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loadgen.summary import Summary


class MergeError(Exception):
    """A file that holds no summary; says which and what to give instead."""


def merge_files(paths: Iterable[Path]) -> Summary:
    """Returns all the runs whose summaries are in these files, merged.

    A file is a SUMMARY_FILE, an EVENTS_FILE, or a pod's log with either in it; its last summary counts.

    Raises:
        MergeError: a file cannot be read or holds no summary.
    """
    merged: Summary | None = None
    for path in paths:
        found = _summary_in(path)
        if merged is None:
            merged = found
        else:
            merged.merge(found)
    if merged is None:
        raise MergeError("no files: name the summaries or pod logs to merge")
    return merged


def _summary_in(path: Path) -> Summary:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise MergeError(f"{path}: {error.strerror}: name a summary or a pod's log") from error
    for line in reversed(text.splitlines()):
        record = _object(line)
        if record is not None and "schema" in record:
            try:
                return Summary.from_json(record)
            except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise MergeError(f"{path}: not a summary of this program: {error!r}") from error
    raise MergeError(
        f"{path}: holds no summary: give what a run with SUMMARY_FILE or EVENTS_FILE wrote, or the pod's log"
    )


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
