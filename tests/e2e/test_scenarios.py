"""The quick set of disruptions, each with a control that must lose requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.paths import RUNS
from inferctl.report.state import State
from inferctl.report.timeline import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def quick(inferctl: Callable[..., str], cluster: str) -> tuple[list[str], list[Path]]:
    """What the quick set said, and the timelines that it left."""
    before = set(RUNS.glob("*/timeline.jsonl"))
    said = inferctl("test", "quick", "--with-controls", "--name", cluster).strip().splitlines()
    return said, sorted(set(RUNS.glob("*/timeline.jsonl")) - before)


def test_quick_set_is_proven_and_its_controls_lose(quick: tuple[list[str], list[Path]]) -> None:
    """Rollout, drain, bad rollout, kubelet restart and node loss keep their promises; every control loses."""
    said, _ = quick
    assert said[-1].startswith("verdict: proven: ")


@pytest.mark.parametrize("scenario", ["rollout", "drain"])
def test_timeline_tells_when_a_retired_engine_exited(quick: tuple[list[str], list[Path]], scenario: str) -> None:
    """Each engine that said that it had SIGTERM exits once, after that, and before its pod is gone."""
    _, timelines = quick
    # A run's folder is named <date>-<time>-<scenario>.
    (timeline,) = [path for path in timelines if path.parent.name.split("-", 2)[2] == scenario]
    state = State()
    for record in read(timeline):
        state.apply(record)
    retired = [pod for pod in state.pods.values() if pod.sigterm is not None and pod.gone is not None]
    assert retired
    for pod in retired:
        (exited,) = pod.exits
        assert pod.sigterm is not None
        assert pod.gone is not None
        assert pod.sigterm <= exited <= pod.gone


def test_bad_model_does_not_touch_the_good_one_beside_it(inferctl: Callable[..., str], cluster: str) -> None:
    """A release whose image does not exist costs another in its namespace nothing; as one release they would lose."""
    said = inferctl("test", "two-models", "--with-controls", "--name", cluster).strip().splitlines()
    assert said[-1].startswith("verdict: proven: ")
