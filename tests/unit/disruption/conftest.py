"""What tests of disruptions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder with a timeline of its own."""
    recorder = Recorder(tmp_path / "timeline.jsonl")
    yield recorder
    recorder.close()
