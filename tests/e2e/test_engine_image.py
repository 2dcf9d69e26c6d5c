"""The mock engine's image on a real cluster: how large it is, what it may do, and how fast it stops."""

from __future__ import annotations

import gzip
import json
import os
import select
import signal
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.spec import ClusterSpec
from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT_BYTES = 100_000_000
STOP_SECONDS = 1.0
PODS = 3
NAMESPACE = "engine-image"
USER = 65532
_READY_SECONDS = 60


@pytest.fixture(scope="module")
def spec(inferctl: Callable[..., str], cluster: str) -> ClusterSpec:
    """The cluster, to whose registry the engine's image was pushed as any deployment does."""
    inferctl("deploy", "--startup-delay", "0", "--name", cluster)
    spec = ClusterSpec.load(cluster)
    assert spec is not None
    return spec


@pytest.fixture(scope="module")
def image(spec: ClusterSpec, kubectl: Callable[..., str]) -> str:  # noqa: ARG001 - deployed by then
    """The image of the deployed engine, as a pod names it: by digest."""
    column = "jsonpath={.spec.template.spec.containers[0].image}"
    return kubectl("get", "deployment", "mock-inference-service", "--namespace=default", "--output", column)


@pytest.fixture(scope="module")
def namespace(kubectl: Callable[..., str]) -> Iterator[str]:
    """A namespace that takes no pod with more rights than Kubernetes' `restricted` profile gives."""
    made = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    kubectl("create", "--filename=-", stdin=json.dumps(made))
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE)


def pod(name: str, image: str) -> dict[str, Any]:
    """Returns a pod of the image alone: nothing to write to, no rights, probed each second, never started again."""
    container = {
        "name": "engine",
        "image": image,
        "args": ["--shutdown-timeout", "30"],
        "env": [{"name": "POD_NAME", "value": name}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
        },
    }


def main_process(name: str) -> int:
    """Returns the main process of a pod's container, as this machine numbers it, by the name in its environment."""
    wanted = f"POD_NAME={name}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    assert len(found) == 1, f"processes of pod {name}: {found}"
    return found[0]


def test_image_is_small(spec: ClusterSpec, image: str) -> None:
    """The image is below 100 MB, both as it is pulled and as it lies unpacked on a node."""
    repository, _, digest = image.partition("/")[2].partition("@")
    url = f"http://{spec.registry_address}/v2/{repository}"
    name = f"{spec.registry_address}/{repository}@{digest}"
    manifest = json.loads(run([tool("crane"), "manifest", "--insecure", name]))
    packed = sum(part["size"] for part in [manifest["config"], *manifest["layers"]])
    unpacked = 0
    for layer in manifest["layers"]:
        with urllib.request.urlopen(f"{url}/blobs/{layer['digest']}", timeout=60) as blob, gzip.open(blob) as files:  # noqa: S310 - http only
            unpacked += files.seek(0, os.SEEK_END)
    print(f"image: {packed / 1e6:.1f} MB packed, {unpacked / 1e6:.1f} MB unpacked")
    assert 0 < packed < unpacked < LIMIT_BYTES


@pytest.mark.parametrize("number", range(PODS))
def test_restricted_pod_stops_within_a_second(
    kubectl: Callable[..., str], namespace: str, image: str, number: int
) -> None:
    """A pod with the fewest rights and a root that cannot be written gets Ready; its idle engine ends at SIGTERM.

    The time is from the signal to the end of the container's main process, by the machine's clock: what Kubernetes
    notes of a container's end is in whole seconds.
    """
    name = f"restricted-{number}"
    kubectl("create", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(pod(name, image)))
    kubectl("wait", f"--namespace={namespace}", "--for=condition=Ready", f"--timeout={_READY_SECONDS}s", f"pod/{name}")
    process = main_process(name)
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    assert {int(user) for user in status["Uid"].split()} == {USER}
    assert int(status["CapEff"], 16) == 0
    mounts = [line.split() for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines()]
    assert [options.split(",")[0] for _, _, _, _, place, options, *_ in mounts if place == "/"] == ["ro"]

    handle = os.pidfd_open(process)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        signalled = time.monotonic()
        ended, _, _ = select.select([handle], [], [], 30)
        seconds = time.monotonic() - signalled
    finally:
        os.close(handle)
    print(f"{name}: ended {seconds:.2f} s after SIGTERM")
    assert ended
    assert seconds < STOP_SECONDS
    code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    kubectl(
        "wait", f"--namespace={namespace}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", f"pod/{name}"
    )
    assert kubectl("get", f"--namespace={namespace}", f"pod/{name}", "--output", code) == "0"
