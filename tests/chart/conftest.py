"""Fixtures of the chart's tests: renderings, the schemas of Kubernetes, and an API server to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from inferctl.paths import CACHE
from inferctl.values import rendering
from tests.chart import api_server as server
from tests.chart import kubernetes_schemas
from tests.chart.yaml_text import as_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

DIGEST = "sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91"


class Render(Protocol):
    """Renders the chart with values on top of the least that a release needs."""

    def __call__(
        self, values: Mapping[str, object], /, *, release: str = ..., options: tuple[str, ...] = ...
    ) -> rendering.Release:
        """Render; a refusal raises ChartRefusal."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the chart's tests."""
    parser.addoption("--update-golden", action="store_true", help="write the golden manifests anew")
    parser.addoption("--chart-files", type=int, default=2000, help="how many random values files to try")


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """The chart with values on top of the least that a release needs."""

    def call(
        values: Mapping[str, object], /, *, release: str = "mock", options: tuple[str, ...] = ()
    ) -> rendering.Release:
        base = tmp_path / "base.yaml"
        base.write_text(as_yaml({"image": {"repository": "registry.example.com/team/engine", "digest": DIGEST}}))
        own = tmp_path / "own.yaml"
        own.write_text(as_yaml(values))
        return rendering.parse(rendering.render([base, own], release=release, options=options))

    return call


@pytest.fixture(scope="session")
def schema_location() -> str:
    """Where kubeconform finds the schemas of Kubernetes 1.30 to 1.37."""
    folder = CACHE / "kubernetes-schemas"
    kubernetes_schemas.prepare(folder)
    return kubernetes_schemas.location(folder)


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig of the administrator of an API server that runs for these tests only."""
    with server.running(tmp_path_factory.mktemp("api-server")) as kubeconfig:
        yield kubeconfig
