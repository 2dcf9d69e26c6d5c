"""What the cluster says is put into a few words of our own."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node, Pod
from lightkube.resources.discovery_v1 import EndpointSlice

from inferctl.disruption.watch import Watch, _describe_node, _describe_pod, _describe_slice

_RUNNING = {"state": {"running": {}}, "restartCount": 0, "ready": False, "image": "i", "imageID": "", "name": "engine"}


def _pod(status: dict[str, Any], *, ready: bool = False, deleted: str | None = None) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    metadata = {"name": "pod", "labels": {"app.kubernetes.io/instance": "model"}, "deletionTimestamp": deleted}
    described = _describe_pod(
        Pod.from_dict(
            {
                "metadata": metadata,
                "spec": {"nodeName": "node", "containers": []},
                "status": {"conditions": conditions, "containerStatuses": [{**_RUNNING, **status}]},
            }
        )
    )
    assert described["release"] == "model"
    return described


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        (_pod({"state": {"waiting": {"reason": "ImagePullBackOff"}}}), "Pending"),
        (_pod({"started": False}), "Running"),
        (_pod({"started": True}), "Unready"),
        (_pod({"started": True}, ready=True), "Ready"),
        (_pod({"started": True}, ready=True, deleted="2026-01-01T00:00:00Z"), "Terminating"),
    ],
)
def test_pod_state(pod: dict[str, Any], state: str) -> None:
    """A pod loads, serves, fails its probe or ends; one that ends is Terminating even while it is ready."""
    assert pod["state"] == state


def test_reasons_of_a_pod() -> None:
    """Why a container waits comes first, then why it ended last."""
    ended = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "restartCount": 1}
    assert _pod(ended)["reason"] == "OOMKilled"
    assert _pod({**ended, "state": {"waiting": {"reason": "CrashLoopBackOff"}}})["reason"] == "CrashLoopBackOff"


def test_endpoints() -> None:
    """Ready endpoints and those that end are named by their pods."""
    piece = EndpointSlice.from_dict(
        {
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.0.0.2"], "targetRef": {"name": "b"}, "conditions": {"ready": True}},
                {"addresses": ["10.0.0.1"], "targetRef": {"name": "a"}, "conditions": {"terminating": True}},
            ],
        }
    )
    assert _describe_slice(piece) == {"kind": "slice", "ready": ["b"], "terminating": ["a"]}


@pytest.mark.parametrize(("status", "state"), [("True", "Ready"), ("False", "NotReady"), ("Unknown", "NotReady")])
def test_node(status: str, state: str) -> None:
    """A node of which nothing is heard is not ready."""
    node = Node.from_dict(
        {
            "metadata": {"name": "node"},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }
    )
    assert _describe_node(node) == {"kind": "node", "node": "node", "state": state, "cordoned": True}


def test_thread_that_runs_at_once_finds_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a thread may have listed before the next one starts; all listings still count."""

    class AtOnce(threading.Thread):
        def start(self) -> None:
            self.run()

    monkeypatch.setattr(threading, "Thread", AtOnce)
    monkeypatch.setattr(Watch, "_follow", lambda self, kind, _labels: self._reconcile(kind, []))
    assert Watch(SimpleNamespace(resource="mock-inference-service"))._complete.is_set()  # type: ignore[arg-type]
