"""The load pod is what the load generator and the restricted Pod Security Standard accept."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from lightkube import ApiError
from lightkube.models.meta_v1 import Status as MetaStatus

from inferctl.cluster.target import Target
from inferctl.disruption.load import Load, LoadPod
from inferctl.disruption.podlog import follow
from inferctl.disruption.scenario import EVERY_LOAD
from inferctl.disruption.variants import _comma_separated
from inferctl.errors import CommandFailed, ComponentFailed, DeadlineExceeded
from inferctl.paths import LOADTEST
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inferctl.report.recorder import Recorder

_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: context, context: {cluster: c, user: u}}]
"""


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A release on a cluster that does not answer."""
    (tmp_path / "kubeconfig").write_text(_KUBECONFIG)
    return Release(Target("existing", tmp_path / "kubeconfig", "context", "push:1", "pull:1"), "model", "space")


def _pod(load: Load, release: Release, recorder: Recorder) -> LoadPod:
    return LoadPod(load, release, recorder, image="pull:1/mock@sha256:0", url="http://127.0.0.1:1", model="m")


@pytest.mark.parametrize("load", EVERY_LOAD, ids=lambda load: load.name)
def test_load_generator_takes_the_environment(load: Load, release: Release, recorder: Recorder) -> None:
    """The load generator takes every variable: the answers' length, the connections, and 10 s of silence as a loss."""
    environment = _pod(load, release, recorder)._environment()
    code = (
        "import os; from loadgen import settings as s; r = s.read(os.environ); "
        "print(r.max_tokens, r.connection, r.stall_seconds)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=LOADTEST, env=environment, capture_output=True, text=True, check=False
    )
    assert said.stderr == ""
    assert said.stdout.split() == [str(load.tokens), "keepalive" if load.keepalive else "new", "10.0"]


def test_no_two_pods_of_a_load_have_one_name(release: Release, recorder: Recorder) -> None:
    """A kubelet that lags behind can then not give the log of an earlier run's pod for that of this one's."""
    names = {_pod(EVERY_LOAD[0], release, recorder).name for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("model-load-short-new-") for name in names)


def test_pod_is_restricted(release: Release, recorder: Recorder) -> None:
    """The pod meets what a namespace that enforces `restricted` asks for."""
    spec = _pod(EVERY_LOAD[0], release, recorder)._spec("", [])
    container = spec["containers"][0]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert not spec["automountServiceAccountToken"]


def test_pod_keeps_off_struck_nodes(release: Release, recorder: Recorder) -> None:
    """Nodes that will be struck are excluded, and a node that is asked for is required."""
    spec = _pod(EVERY_LOAD[0], release, recorder)._spec("here", ["struck"])
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchFields"] == [
        {"key": "metadata.name", "operator": "In", "values": ["here"]},
        {"key": "metadata.name", "operator": "NotIn", "values": ["struck"]},
    ]


def test_events_reach_the_timeline(release: Release, recorder: Recorder) -> None:
    """An event keeps its own time and gets its load's name."""
    pod = _pod(EVERY_LOAD[0], release, recorder)
    pod._event({"t": 12.5, "kind": "sent", "id": 3})
    request = recorder.state.requests["short-new", 3]
    assert request.sent == 12.5


class _Client:
    """Stands in for the API: a log that is not there at first, and whose connection breaks after two lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.reads = 0

    def get(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - a Pod
        phase = "Succeeded" if self.reads > 2 else "Running"
        return type("Pod", (), {"status": type("Status", (), {"phase": phase})})

    def log(self, *_: object, **__: object) -> Iterator[str]:
        self.reads += 1
        if self.reads == 1:
            # What the API server passes on from a kubelet that has not seen the pod yet.
            raise ApiError(status=MetaStatus(code=404))
        return iter(self.lines[:2] if self.reads == 2 else self.lines)


def test_log_is_resumed_without_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the way to a log breaks, each line is given once, also where time stamps leave out zeros."""
    monkeypatch.setattr("inferctl.disruption.podlog._AGAIN_SECONDS", 0)
    lines = ["2026-01-01T00:00:00.1Z a", "2026-01-01T00:00:00.15Z b", "2026-01-01T00:00:00.2Z c"]
    client: Any = _Client(lines)
    assert [text for _, text in follow(client, "pod", "space", stopped=lambda: False)] == ["a", "b", "c"]


def test_log_goes_on_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines with earlier time stamps than those before them, or with the same one, are given too, each once."""
    monkeypatch.setattr("inferctl.disruption.podlog._AGAIN_SECONDS", 0)
    lines = ["2026-01-01T00:01:00Z a", "2026-01-01T00:00:00Z b", "2026-01-01T00:00:00Z c", "2026-01-01T00:00:01Z b"]
    client: Any = _Client(lines)
    assert [text for _, text in follow(client, "pod", "space", stopped=lambda: False)] == ["a", "b", "c", "b"]


def test_event_in_which_a_log_broke_off_is_taken_when_it_is_whole(
    release: Release, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line of the log ends nothing: the line comes again, and its event reaches the timeline once."""
    monkeypatch.setattr("inferctl.disruption.podlog._AGAIN_SECONDS", 0)
    pod = _pod(EVERY_LOAD[0], release, recorder)
    stamp, sent, ended = "2026-01-01T00:00:00Z ", '{"t": 1.5, "kind": "sent", "id": 0}', "final total=1"
    reads = iter([[stamp + sent[:20]], [stamp + sent, "2026-01-01T00:00:01Z " + ended]])
    phases = iter(["Running", "Succeeded"])
    heard: list[str] = []

    class Client:
        def get(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - a Pod
            return type("Pod", (), {"status": type("Status", (), {"phase": next(phases)})})

        def log(self, *_: object, **__: object) -> Iterator[str]:
            return iter(next(reads))

    monkeypatch.setattr(pod, "_client", Client())
    monkeypatch.setattr(pod, "_hear", heard.append)
    pod._follow()
    assert recorder.state.requests["short-new", 0].sent == 1.5
    assert recorder.state.open == 1
    assert heard == [ended]


def test_load_that_ended_without_its_last_word_is_noticed_at_once(release: Release, recorder: Recorder) -> None:
    """A load pod that was killed has no summary, and nobody waits until the time for it is over."""
    pod = _pod(EVERY_LOAD[0], release, recorder)
    pod._ended.set()
    with pytest.raises(DeadlineExceeded, match="'short-new' has no summary: its pod ended or was removed"):
        pod.wait_ended(5)


def test_entry_point_is_quoted() -> None:
    """Words with quotes and commas reach the image as they are."""
    assert _comma_separated(("sh", "-c", 'echo "a", b')) == 'sh,-c,"echo ""a"", b"'


@pytest.mark.parametrize(("phase", "ends"), [("Succeeded", True), ("Failed", True), ("Running", False)])
def test_load_that_has_ended_need_not_be_stopped(
    release: Release,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    phase: str,
    ends: bool,  # noqa: FBT001 - a parameter
) -> None:
    """A load that cannot be told to stop is a fault only while its pod runs."""

    def refuse(*_: object, **__: object) -> None:
        raise CommandFailed("container not found")

    monkeypatch.setattr("inferctl.disruption.load._END_SECONDS", 0.1)
    pod = _pod(EVERY_LOAD[0], release, recorder)
    found = type("Pod", (), {"status": type("Status", (), {"phase": phase})})
    monkeypatch.setattr(pod, "_client", type("Client", (), {"get": lambda *_: found}))
    monkeypatch.setattr(pod, "_kubectl", refuse)
    with nullcontext() if ends else pytest.raises(ComponentFailed, match="could not be stopped: container not found"):
        pod.stop()
