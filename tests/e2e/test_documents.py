"""What the first documents tell people to type is run on a real cluster, as it stands there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.paths import ROOT, tool
from inferctl.process.command import run
from tests import documents

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SECONDS = 1500
_RELEASE = "my-model"
_ACCELERATOR = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def image(inferctl: Callable[..., str], cluster: str, kubectl: Callable[..., str]) -> str:
    """The mock engine's image by digest, as the nodes pull it."""
    inferctl("deploy", "--startup-delay", "1", "--name", cluster)
    return kubectl("get", "deployment", "mock-inference-service", "-o=jsonpath={..containers[0].image}")


@pytest.fixture(scope="module")
def _accelerators(kubectl: Callable[..., str]) -> None:
    """Every node has two accelerators by name; nothing is behind them, and the mock engine asks for nothing."""
    amount = {_ACCELERATOR: "2"}
    status = json.dumps({"status": {"capacity": amount, "allocatable": amount}})
    for node in kubectl("get", "nodes", "-o=name").split():
        kubectl("patch", node, "--subresource=status", "--type=merge", f"--patch={status}")


@pytest.fixture
def _removed(kubeconfig_of_session: Path, cluster: str, kubectl: Callable[..., str]) -> Iterator[None]:
    """The release that the documents install is gone after the test, and its pods are."""
    yield
    context = ClusterSpec(cluster).context
    at = [f"--kubeconfig={kubeconfig_of_session}", f"--kube-context={context}"]
    run([tool("helm"), "uninstall", _RELEASE, "--ignore-not-found", *at])
    pods = f"--selector=app.kubernetes.io/instance={_RELEASE}"
    kubectl("wait", "--for=delete", "pods", pods, "--timeout=180s")


@pytest.fixture
def type_out(
    cluster: str, image: str, kubeconfig_of_session: Path, tmp_path: Path
) -> Callable[[list[str]], subprocess.CompletedProcess[str]]:
    """Runs command lines as somebody who has this cluster and this image would type them."""
    variables = {"IMAGE": image, "INFERCTL_CLUSTER_NAME": cluster, "KUBECONFIG": str(kubeconfig_of_session)}
    return lambda lines: documents.run(lines, tmp_path, variables, seconds=_SECONDS)


@pytest.mark.usefixtures("_accelerators", "_removed")
@pytest.mark.parametrize("document", documents.DOCUMENTS)
def test_commands_of_a_document_work(
    document: str,
    type_out: Callable[[list[str]], subprocess.CompletedProcess[str]],
    kubectl: Callable[..., str],
) -> None:
    """Each command succeeds, a rollout test among them is proven, and at the end the model serves."""
    lines = [line for line in documents.commands((ROOT / document).read_text()) if line not in documents.LEFT_OUT]
    done = type_out(lines)
    assert done.returncode == 0
    if "./just rollout-test" in lines:
        assert "\nverdict: proven: 0 of " in done.stdout
        assert " failures=none\n" in done.stdout
    kubectl("wait", "--for=condition=Available", f"deployment/{_RELEASE}-inference-service", "--timeout=120s")
