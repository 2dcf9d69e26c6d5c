"""Whoever names a release that is not there is told how that one comes to be, not another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption import drain_test, load_command, rollout_test
from inferctl.errors import EnvironmentProblem
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Callable

_TARGET = Target("existing", Path("/kubeconfig"), "staging", "push:1", "pull:1")


def _load() -> None:
    load_command.run_load("nosuch")


def _rollout_test() -> None:
    rollout_test.rollout_test(_TARGET, release="nosuch", progress=Progress())


def _drain_test() -> None:
    drain_test.drain_test(_TARGET, release="nosuch", progress=Progress())


@pytest.mark.parametrize("command", [_load, _rollout_test, _drain_test])
def test_missing_release_is_named_with_its_own_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[[], None]
) -> None:
    """The message has the release, the cluster that was asked, and the command with the same name."""

    class Cordons:
        def __init__(self, _: Release) -> None: ...

        def sweep(self, _: object) -> None: ...

    class Backend:
        def target(self) -> Target:
            return _TARGET

    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(load_command, "choose", lambda *_: Backend())
    monkeypatch.setattr(rollout_test, "Cordons", Cordons)
    monkeypatch.setattr(Release, "_history", lambda _: [])
    with pytest.raises(EnvironmentProblem, match=r"'nosuch' is not deployed .* context 'staging'") as told:
        command()
    assert str(told.value).endswith("inferctl deploy --release nosuch")
