"""The mock image built by a Docker engine."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from inferctl.console import Progress
from inferctl.errors import CommandFailed
from inferctl.images.docker import publish
from inferctl.paths import ROOT

if TYPE_CHECKING:
    from tests.unit.cluster.conftest import Machine

_DIGEST = f"sha256:{'0123456789abcdef' * 4}"


@pytest.fixture
def progress() -> Progress:
    """Progress that nobody sees."""
    return Progress(Console(file=io.StringIO()))


def test_image_is_built_pushed_and_known_by_digest(machine: Machine, progress: Progress) -> None:
    """The digest is the one that the registry told, and the build sees the whole checkout."""
    machine.answer("docker push", f"The push refers to [x]\nbuilt: digest: {_DIGEST} size: 1234")
    assert publish("localhost:5001", "mock-engine", progress) == _DIGEST
    assert machine.calls() == [
        f"docker build --file {ROOT}/engines/mock/Dockerfile --tag localhost:5001/mock-engine:built {ROOT}",
        "docker push localhost:5001/mock-engine:built",
    ]


def test_push_that_tells_no_digest_is_an_error(machine: Machine, progress: Progress) -> None:
    """An image without a digest is never deployed by its tag instead."""
    machine.answer("docker push", "pushed")
    with pytest.raises(CommandFailed, match="told no digest"):
        publish("localhost:5001", "mock-engine", progress)


def test_build_that_fails_is_reported_and_not_pushed(machine: Machine, progress: Progress) -> None:
    """An older image of the same tag is not pushed in its place."""
    machine.answer("docker build", "no space left on device", code=1)
    with pytest.raises(CommandFailed, match="no space left on device"):
        publish("localhost:5001", "mock-engine", progress)
    assert len(machine.calls()) == 1
