"""The timeline of a run: JSON Lines, one object per thing that happened, each with ``t`` and ``kind``.

``t`` is Unix seconds. docs/timeline.md lists the kinds. Everything that is shown or judged comes from this
file, so that a verdict can be checked by anyone who has it.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from inferctl.errors import UsageError
from inferctl.report.records import LONGEST_RUN, complaint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Record = dict[str, Any]
#: Longer than any line that is written, in bytes: a file without line ends is not read into memory whole.
_LONGEST_LINE = 2**20


class Timeline:
    """Appends records to a file; whole lines only, so that a reader may follow it."""

    def __init__(self, path: Path) -> None:
        """Begin a new file; its folder is made."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("w", encoding="utf-8", buffering=1)

    def append(self, record: Record) -> None:
        """Write one record."""
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def entry(kind: str, at: float | None = None, **fields: object) -> Record:
    """Make a record of something that happened at Unix time ``at``, or now."""
    return {"t": round(time.time() if at is None else at, 6), "kind": kind, **fields}


def read(path: Path) -> Iterator[Record]:
    """Read the records of a timeline in the order in which they were written.

    A last line that was cut short, as a run that was killed leaves it, is passed over.

    Raises:
        UsageError: the file cannot be read, or a line is no record; the message names both.
    """
    first: float | None = None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                record, why = _parsed(line)
                if why and not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
                    return
                if not why:
                    first = record["t"] if first is None else first
                    why = "" if abs(record["t"] - first) < LONGEST_RUN else "its time t is days away from the first one"
                if why:
                    shown = line[:60].decode(errors="replace")
                    raise UsageError(
                        f"{path}, line {number}: not a record of a timeline: {why}: {shown!r}; "
                        "take the line out, or name a timeline.jsonl that inferctl test wrote"
                    )
                yield record
    except OSError as error:
        raise UsageError(
            f"timeline {path}: {error.strerror}; name a timeline.jsonl that inferctl test wrote"
        ) from error


def _parsed(line: bytes) -> tuple[Record, str]:
    """A line's record, or why it is none."""
    try:
        text = line.decode()
        record = json.loads(text)
        # Half of a pair of code units can be written as JSON, but in no file.
        if "\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()
    except UnicodeError:
        return {}, "it is no UTF-8 text"
    except (ValueError, RecursionError):
        return {}, "it is no JSON"
    return record, complaint(record)
