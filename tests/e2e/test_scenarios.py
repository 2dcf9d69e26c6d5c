"""The quick set of disruptions, each with a control that must lose requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def test_quick_set_is_proven_and_its_controls_lose(inferctl: Callable[..., str], cluster: str) -> None:
    """Rollout, drain, bad rollout, kubelet restart and node loss keep their promises; every control loses."""
    said = inferctl("test", "quick", "--with-controls", "--name", cluster).strip().splitlines()
    assert said[-1].startswith("verdict: proven: ")


def test_bad_model_does_not_touch_the_good_one_beside_it(inferctl: Callable[..., str], cluster: str) -> None:
    """A release whose image does not exist costs another in its namespace nothing; as one release they would lose."""
    said = inferctl("test", "two-models", "--with-controls", "--name", cluster).strip().splitlines()
    assert said[-1].startswith("verdict: proven: ")
