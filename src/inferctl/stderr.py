"""Standard error that never fails: what is said there is lost where nobody takes it, and the exit code stays true."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Lossy(io.FileIO):
    """Writes to a descriptor, and counts as written what a full disk or a reader that has gone does not take."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def tolerate_loss() -> None:
    """From now on, standard error takes everything; a process without one stays without."""
    if sys.stderr is None:
        return
    lossy = _Lossy(sys.stderr.fileno(), "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(lossy), encoding=sys.stderr.encoding, errors=sys.stderr.errors, line_buffering=True
    )
