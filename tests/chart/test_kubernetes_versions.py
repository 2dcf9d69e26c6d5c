"""Every Kubernetes version that the chart promises knows every field that the chart writes."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from inferctl.paths import CHART, tool
from inferctl.values import rendering
from tests.chart.kubernetes_schemas import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the manifests of every example."""
    folder = tmp_path_factory.mktemp("manifests")
    for file in EXAMPLES:
        (folder / file.name).write_text(rendering.render([file]), encoding="utf-8")
    return folder


def _kubeconform(version: str, location: str, manifests: Path) -> subprocess.CompletedProcess[str]:
    command = [
        tool("kubeconform"),
        "-strict",
        "-n=1",  # several would each read the same schemas, which takes longer
        "-kubernetes-version",
        version,
        "-schema-location",
        location,
        manifests,
    ]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("version", VERSIONS)
def test_examples_are_valid(version: str, schema_location: str, manifests: Path) -> None:
    """Kubeconform finds nothing to object to in strict mode."""
    done = _kubeconform(version, schema_location, manifests)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_field_that_a_version_lacks_is_found(schema_location: str, manifests: Path, tmp_path: Path) -> None:
    """The check above can fail: an unknown field is named."""
    text = (manifests / "minimal-values.yaml").read_text(encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(text.replace("preStop:", "preStopp:"), encoding="utf-8")
    done = _kubeconform(VERSIONS[0], schema_location, tmp_path)
    assert done.returncode == 1
    assert "'preStopp' not allowed" in done.stdout


@pytest.mark.parametrize("version", [*VERSIONS, "1.30.9-eks-1234567", "v1.34.3+k3s1"])
def test_helm_installs_on(version: str) -> None:
    """Helm takes every version from 1.30 on for good, whatever a vendor adds to it."""
    assert rendering.render([EXAMPLES[0]], options=["--kube-version", version])


def test_helm_refuses_what_lacks_the_native_sleep() -> None:
    """Before 1.30 preStop.sleep is off, and the API server would drop it in silence."""
    with pytest.raises(rendering.ChartRefusal, match=r"chart requires kubeVersion: >=1\.30\.0-0"):
        rendering.render([EXAMPLES[0]], options=["--kube-version", "1.29.14"])
