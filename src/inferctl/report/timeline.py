"""The timeline of a run: JSON Lines, one object per thing that happened, each with ``t`` and ``kind``.

``t`` is Unix seconds. docs/timeline.md lists the kinds. Everything that is shown or judged comes from this
file, so that a verdict can be checked by anyone who has it.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from inferctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Record = dict[str, Any]


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

    Raises:
        UsageError: the file is not there, or a line is no record.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    float(record["t"]), str(record["kind"])
                except (ValueError, TypeError, KeyError) as error:
                    raise UsageError(
                        f"{path}, line {number}: not a record of a timeline: {line[:60]!r}; "
                        "name a timeline.jsonl that inferctl test wrote"
                    ) from error
                yield record
    except OSError as error:
        raise UsageError(
            f"timeline {path}: {error.strerror}; name a timeline.jsonl that inferctl test wrote"
        ) from error
