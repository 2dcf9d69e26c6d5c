"""The control of the README's rollout test: without its protection the same rollout loses requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

#: Long enough for the pod to be replaced: a second of loading, the preStop sleep of 10 s, the drain.
SECONDS = "40"


@pytest.fixture(scope="module")
def deployed(inferctl: Callable[..., str], cluster: str) -> str:
    """The cluster, with the mock engine deployed on it; its pod loads in a moment."""
    inferctl("deploy", "--startup-delay", "1", "--name", cluster)
    return cluster


def test_rollout_without_protection_loses(inferctl: Callable[..., str], deployed: str) -> None:
    """A rollout with no preStop sleep and one second of grace is seen to lose requests."""
    said = inferctl("rollout-test", "--control", "--seconds", SECONDS, "--name", deployed).splitlines()
    assert said[-1].startswith("verdict: proven: the control lost ")
    assert not any(line.startswith("final total=") and line.endswith("failures=none") for line in said)
