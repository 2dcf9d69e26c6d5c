"""With --deploy a test brings up and deploys to the cluster that it then measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption import commands

if TYPE_CHECKING:
    from inferctl.release.helm import Release

_TARGET = Target("kind", Path("/kubeconfig"), "context", "push:1", "pull:1")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """What is done to the cluster that the options name, in order."""
    done: list[object] = []

    class Backend:
        def up(self, _: Progress) -> Target:
            done.append("up")
            return _TARGET

        def target(self) -> Target:
            done.append("looked up")
            return _TARGET

    def choose(backend: str, name: str) -> Backend:
        done.append((backend, name))
        return Backend()

    class Cordons:
        def __init__(self, release: Release) -> None:
            self._name = release.name

        def sweep(self, _: object) -> None:
            done.append(("nodes given back", self._name))

    def install(target: Target, name: str, _: Progress, **options: Any) -> None:  # noqa: ANN401 - written down
        done.append((target, name, options))

    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(commands, "choose", choose)
    monkeypatch.setattr(commands, "Cordons", Cordons)
    monkeypatch.setattr(commands, "install_unless_foreign", install)
    return done


def test_the_cluster_that_is_named_is_deployed_to(done: list[object]) -> None:
    """The backend and the name choose one cluster: it is brought up, deployed to and given to the test."""
    assert commands._target("kind", "trial", "chat", Progress(), replicas=2, deploy=True) is _TARGET
    assert done == [("kind", "trial"), "up", ("nodes given back", "chat"), (_TARGET, "chat", {"replicas": 2})]


def test_nothing_is_deployed_unasked(done: list[object]) -> None:
    """Without the option a cluster that is up is used as it is."""
    assert commands._target("kind", "trial", "chat", Progress(), replicas=2, deploy=False) is _TARGET
    assert done == [("kind", "trial"), "looked up"]
