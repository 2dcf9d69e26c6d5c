"""From the last released chart to this one, by Helm itself against a real API server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from inferctl.paths import CHART, tool

if TYPE_CHECKING:
    from collections.abc import Callable


def _version(package: Path) -> list[int]:
    """The numbers of a package's version, so that 0.10.0 comes after 0.9.0."""
    return [int(number) for number in package.stem.rpartition("-")[2].split(".")]


RELEASED = max((Path(__file__).parent / "released").glob("*.tgz"), key=_version)
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))


@pytest.fixture(scope="module")
def run(api_server: Path) -> Callable[..., str]:
    """Runs a program of this project against the API server; its error is the test's."""

    def call(program: str, *arguments: object) -> str:
        done = subprocess.run(
            [str(tool(program)), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, "KUBECONFIG": str(api_server)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def _selectors(run: Callable[..., str], namespace: str) -> dict[str, Any]:
    """The selector of each object, as text."""
    listed = json.loads(run("kubectl", "get", "deployments,services,pdb", "-n", namespace, "-o", "json"))
    return {item["kind"]: json.dumps(item["spec"]["selector"]) for item in listed["items"]}


@pytest.mark.cluster
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name.removesuffix("-values.yaml"))
@pytest.mark.parametrize("how", ["--reset-values", "--reuse-values", "--reset-then-reuse-values"])
def test_upgrade_from_the_last_release_keeps_the_selectors(run: Callable[..., str], file: Path, how: str) -> None:
    """Each way of carrying values over works, the selectors do not change by a byte, and back works too."""
    namespace = f"{file.name.removesuffix('-values.yaml')}{how[1:]}"
    given = ["--values", file] if how == "--reset-values" else []
    run("helm", "install", "mock", RELEASED, "-n", namespace, "--create-namespace", "--values", file)
    before = _selectors(run, namespace)
    assert {"Deployment", "Service"} <= before.keys()
    run("helm", "upgrade", "mock", CHART, "-n", namespace, how, *given)
    assert _selectors(run, namespace) == before
    run("helm", "rollback", "mock", 1, "-n", namespace)
    assert _selectors(run, namespace) == before


@pytest.mark.cluster
def test_upgrade_reuses_blocks_that_were_left_empty(run: Callable[..., str], tmp_path: Path) -> None:
    """--reuse-values hands the nulls of the first file to the next chart's schema, which must let them in."""
    blocks = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    empty: dict[str, object] = {name: None for name in blocks if name not in {"image", "engine"}}
    empty["engine"] = dict.fromkeys(blocks["engine"])
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(empty))
    minimal = CHART / "ci" / "minimal-values.yaml"
    given = ["--values", minimal, "--values", file]
    run("helm", "install", "mock", RELEASED, "-n", "empty", "--create-namespace", *given)
    run("helm", "upgrade", "mock", CHART, "-n", "empty", "--reuse-values", "--set", "replicaCount=2")
    assert "PodDisruptionBudget" in _selectors(run, "empty")
