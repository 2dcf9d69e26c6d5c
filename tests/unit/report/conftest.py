"""Timelines in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inferctl.report.recorder import Recorder
from inferctl.report.state import State
from tests import browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need a browser where there is none."""
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out and browser.find() is None:
        config.stash[_LEFT_OUT] = left_out
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests were left out, and what would have them run."""
    for item in config.stash.get(_LEFT_OUT, []):
        terminalreporter.write_line(f"NOT RUN {item.nodeid}: {browser.MISSING}")


class Story:
    """A run told event by event."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.state = State()
        self.records: list[dict[str, Any]] = []
        self._next = 0

    def add(self, t: float, kind: str, **fields: object) -> None:
        """Add any record."""
        record = {"t": t, "kind": kind, **fields}
        self.records.append(record)
        self.state.apply(record)

    def pod(self, t: float, name: str, state: str) -> None:
        """Add a state of a pod."""
        self.add(t, "pod", pod=name, release="model", node="node-a", state=state, restarts=0, reason="")

    def request(
        self, sent: float | None, end: float, outcome: str = "ok", *, first: float | None = None, pod: str = "",
        http: int = 200, chunks: int = 20, reused: bool = False, client: str = "load",
    ) -> int:  # fmt: skip
        """Add a whole request; returns its number."""
        number = self._next
        self._next += 1
        if sent is not None:
            self.add(sent, "sent", client=client, id=number)
        if first is not None:
            self.add(first, "first_token", client=client, id=number, pod=pod)
        self.add(
            end, "end", client=client, id=number, outcome=outcome, pod=pod, http=http, chunks=chunks, ttft=0.1,
            e2e=0.7, reused=reused, detail=f"detail of {number}",
            last_bytes="" if outcome == "ok" else f'data: {{"id": "{number}"\r\n',
        )  # fmt: skip
        return number


@pytest.fixture
def story() -> Story:
    """A run in which nothing has happened yet."""
    return Story()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder with a timeline of its own."""
    recorder = Recorder(tmp_path / "timeline.jsonl")
    yield recorder
    recorder.close()
