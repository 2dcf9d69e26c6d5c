"""The promise on a real cluster: a rollout under load cuts nothing, and without its protection it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.console import Progress
from inferctl.disruption.rollout_test import rollout_test
from inferctl.disruption.verdict import Outcome

if TYPE_CHECKING:
    from inferctl.cluster.target import Target
    from inferctl.release.helm import Release

#: Long enough for the pod to be replaced: a second of loading, the preStop sleep of 10 s, the drain.
SECONDS = 40


def test_rollout_loses_nothing(target: Target, release: Release) -> None:
    """Every pod is replaced under load, and every request ends ok."""
    verdict = rollout_test(target, release=release.name, seconds=SECONDS, progress=Progress())
    assert verdict.outcome is Outcome.PROVEN, verdict.line


def test_rollout_without_protection_loses(target: Target, release: Release) -> None:
    """The same rollout with no preStop sleep and one second of grace is seen to lose requests."""
    verdict = rollout_test(target, release=release.name, seconds=SECONDS, control=True, progress=Progress())
    assert verdict.exit_code == 0, verdict.line
    assert "loss" in verdict.line
