"""Whatever stands in a cluster's files, its state can be told and the cluster can be removed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from inferctl.cluster import embedded, init_client, inspection, launch
from inferctl.cluster.embedded_backend import EmbeddedBackend
from inferctl.cluster.spec import ClusterSpec
from inferctl.console import Progress
from inferctl.errors import CommandFailed, EnvironmentProblem

if TYPE_CHECKING:
    from pathlib import Path

_GARBAGE = (b"", b"\xff\xfe", b"abc def", b"1 2 3", b"-1 -1", b"9" * 30 + b" 1", b"null", b"[1]", b"{", b'{"a": 1}')
_FILES = (
    "cluster.json", "init.pid", "usable", "user-kubeconfig", "admin.kubeconfig", "nodes/control-plane/init.pid",
    "nodes/control-plane/status.json", "nodes/worker/plan.json",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder and a kubeconfig of the test's own, and no link on the host."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setattr("inferctl.cluster.network.remove_host_link", lambda _name: None)


@pytest.fixture
def spec() -> ClusterSpec:
    """A cluster of which only the files are there."""
    spec = ClusterSpec("trial")
    spec.save()
    for node in spec.nodes:
        spec.node_folder(node).mkdir(parents=True)
    return spec


def _down() -> None:
    EmbeddedBackend("trial").down(Progress(Console(file=io.StringIO())))


@pytest.mark.parametrize("garbage", _GARBAGE)
@pytest.mark.parametrize("file", _FILES)
def test_damaged_file_is_no_obstacle(spec: ClusterSpec, file: str, garbage: bytes) -> None:
    """The cluster counts as not up, and is removed."""
    (spec.folder / file).write_bytes(garbage)
    assert EmbeddedBackend("trial").describe()["up"] is False
    _down()
    assert not spec.folder.exists()


@pytest.mark.parametrize("file", _FILES)
def test_folder_in_the_place_of_a_file_is_no_obstacle(spec: ClusterSpec, file: str) -> None:
    """The same for a folder where a file should be; but without its spec a folder may be a stranger's, and stays."""
    (spec.folder / file).unlink(missing_ok=True)
    (spec.folder / file).mkdir()
    assert EmbeddedBackend("trial").describe()["up"] is False
    if file == "cluster.json":
        with pytest.raises(EnvironmentProblem, match="holds files that are no cluster's"):
            _down()
    else:
        _down()
        assert not spec.folder.exists()


def test_damaged_spec_is_told_with_the_way_on(spec: ClusterSpec) -> None:
    """Whoever asks for the cluster is told which file is damaged and how to get a new one."""
    (spec.folder / "cluster.json").write_text('{"name": "trial", "index": 9999}')
    backend = EmbeddedBackend("trial")
    assert "cluster.json is damaged" in str(backend.describe()["problem"])
    with pytest.raises(EnvironmentProblem, match=r"cluster.json is damaged.*\./just cluster-up"):
        backend.target()


def test_file_in_the_place_of_the_clusters_folder_stays_and_is_told(spec: ClusterSpec) -> None:
    """A file of the cluster's name is no cluster's: it is named and left alone."""
    _down()
    spec.folder.write_text("mine")
    with pytest.raises(EnvironmentProblem, match=f"{spec.folder} is no folder"):
        _down()
    assert spec.folder.read_text() == "mine"


def test_kubectl_that_fails_does_not_keep_the_cluster(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the context cannot be taken out of the user's kubeconfig, that is told, and everything else goes."""

    def refuse(*_: object, **__: object) -> str:
        raise CommandFailed("kubectl config: exit code 1\nerror: lock file exists")

    monkeypatch.setattr("inferctl.cluster.kubeconfig.run", refuse)
    (tmp_path / "kubeconfig").write_text("contexts: [{name: inferctl-trial}]")
    (spec.folder / "user-kubeconfig").write_text(str(tmp_path / "kubeconfig"))
    with pytest.raises(EnvironmentProblem, match=rf"{tmp_path}/kubeconfig \(error: lock file exists\); remove it"):
        _down()
    assert not spec.folder.exists()


@pytest.mark.parametrize(
    "content", [b'{"kubelet": {"state": 1, "restarts": 0, "detail": ""}}', b'{"kubelet": []}', *_GARBAGE]
)
def test_status_that_cannot_be_read_counts_as_none(tmp_path: Path, content: bytes) -> None:
    """A component's state is believed only if it is one."""
    (tmp_path / "status.json").write_bytes(content)
    assert init_client.status(tmp_path) == {}
    (tmp_path / "status.json").write_text('{"kubelet": {"state": "ready", "restarts": 0, "detail": "", "pid": 1}}')
    assert init_client.status(tmp_path)["kubelet"]["state"] == "ready"


@pytest.mark.parametrize("garbage", _GARBAGE)
def test_process_that_cannot_be_read_is_none_that_lives(tmp_path: Path, garbage: bytes) -> None:
    """What is no process's identity is never taken for one that runs."""
    (tmp_path / "init.pid").write_bytes(garbage)
    found = launch.identity(tmp_path)
    assert found is None or not found.alive()


def test_version_that_runs_is_asked_for(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of a cluster that is up has the version that its API answers with, whatever was asked for."""
    asked: list[object] = []

    def answer(command: list[object], **_: object) -> str:
        asked.extend(command)
        return '{"gitVersion": "v1.2.3"}'

    ready = embedded.NodeStatus("worker", running=True, components={"kubelet": {"state": "ready"}})
    monkeypatch.setattr(embedded, "status", lambda _: [ready])
    monkeypatch.setattr(inspection, "run", answer)
    state = EmbeddedBackend("trial").describe()
    assert (state["up"], state["kubernetes"]) == (True, "v1.2.3")
    assert f"--kubeconfig={spec.kubeconfig}" in asked


def test_api_that_does_not_answer_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an API that is away nor something else in its place is an error."""
    for said in ("", "{}", "[]"):
        monkeypatch.setattr(inspection, "run", lambda *_, said=said, **__: said)
        assert not inspection.running_version()
