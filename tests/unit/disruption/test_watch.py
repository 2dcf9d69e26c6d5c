"""What the cluster says is put into a few words of our own."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from lightkube.resources.core_v1 import Node, Pod
from lightkube.resources.discovery_v1 import EndpointSlice

from inferctl.disruption.watch import Watch, _describe_exit, _describe_node, _describe_pod, _describe_slice
from inferctl.report.timeline import read

if TYPE_CHECKING:
    from inferctl.report.recorder import Recorder

_RUNNING = {"state": {"running": {}}, "restartCount": 0, "ready": False, "image": "i", "imageID": "", "name": "engine"}


_ENDED = {
    "terminated": {
        "containerID": "containerd://a", "exitCode": 0, "finishedAt": "2026-01-01T00:00:05Z", "reason": "Completed",
    }
}  # fmt: skip


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


def _exiting(**status: Any) -> Pod:  # noqa: ANN401 - fields of a container's status
    containers = [{**_RUNNING, "name": "sidecar", "state": _ENDED}, {**_RUNNING, **status}]
    metadata = {"name": "pod", "uid": "u", "labels": {"app.kubernetes.io/instance": "model"}}
    pod = {"metadata": metadata, "spec": {"containers": []}, "status": {"containerStatuses": containers}}
    return cast("Pod", Pod.from_dict(pod))


@pytest.mark.parametrize("status", [{"state": _ENDED}, {"lastState": _ENDED, "restartCount": 1}])
def test_exit_of_an_engine(status: dict[str, Any]) -> None:
    """The kubelet says when the engine ended, of a container that is over and of one that was started again."""
    exited = _describe_exit(_exiting(**status))
    assert exited == {
        "kind": "exit", "pod": "pod", "finished": 1767225605, "code": 0, "reason": "Completed",
        "container": "containerd://a",
    }  # fmt: skip


@pytest.mark.parametrize(
    "status",
    [{}, {"state": {"terminated": {"exitCode": 137, "finishedAt": None, "reason": "ContainerStatusUnknown"}}}],
)
def test_engine_that_is_not_known_to_have_ended(status: dict[str, Any]) -> None:
    """An engine that runs has no exit, whatever its neighbours do; nor has one whose end nobody saw."""
    assert _describe_exit(_exiting(**status)) is None


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> Watch:
    """A watch that has listed nothing yet, whose threads do nothing, with a recorder."""
    monkeypatch.setattr(Watch, "_follow", lambda *_: None)
    monkeypatch.setattr(Watch, "_listen", lambda *_: None)
    watch = Watch(SimpleNamespace(resource="mock-inference-service"))  # type: ignore[arg-type]
    watch._recorder = recorder
    return watch


def test_exit_is_recorded_once_and_before_the_pod_is_gone(watch: Watch, recorder: Recorder) -> None:
    """However often the cluster repeats an end, it is told once; a second container of the pod has one of its own."""
    watch._reconcile(Pod, [_exiting()])
    again = {"terminated": {**_ENDED["terminated"], "containerID": "containerd://b", "exitCode": 137}}
    for status in ({"state": _ENDED}, {"lastState": _ENDED}, {"state": again, "lastState": _ENDED}):
        watch._take(Pod, _exiting(**status), gone=False)
    watch._take(Pod, _exiting(state=again), gone=True)
    told = [record for record in read(recorder.path) if record["kind"] == "exit" or record.get("state") == "Gone"]
    assert [(record["kind"], record.get("code")) for record in told] == [("exit", 0), ("exit", 137), ("pod", None)]


def test_exit_that_only_the_last_event_tells_is_recorded(watch: Watch, recorder: Recorder) -> None:
    """Where the end and the removal come as one event, the end is told first."""
    watch._reconcile(Pod, [_exiting()])
    watch._take(Pod, _exiting(state=_ENDED), gone=True)
    assert [record["kind"] for record in read(recorder.path)][-2:] == ["exit", "pod"]


def test_exit_from_before_the_first_listing_is_history(watch: Watch, recorder: Recorder) -> None:
    """A pod that was restarted long ago adds nothing to a run, neither when it is listed first nor later."""
    for _ in range(2):
        watch._reconcile(Pod, [_exiting(lastState=_ENDED, restartCount=1)])
    assert not any(record["kind"] == "exit" for record in read(recorder.path))


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
