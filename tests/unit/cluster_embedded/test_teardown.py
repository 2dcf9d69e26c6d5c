"""Removal from any half-made state, tested against planted clutter."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from inferctl.cluster import lock, teardown
from inferctl.cluster.spec import ClusterSpec
from inferctl.errors import EnvironmentProblem
from inferctl.process.identity import MARKER, ProcessIdentity, marked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """A cluster in a state folder of its own, without a link on the host."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr("inferctl.cluster.network.remove_host_link", lambda _name: None)
    return ClusterSpec("trial")


def test_nothing_there_is_no_error(spec: ClusterSpec) -> None:
    """Removing a cluster that was never there changes nothing, twice in a row."""
    teardown.remove(spec)
    teardown.remove(spec)


def test_marked_processes_end_and_files_go(spec: ClusterSpec) -> None:
    """Processes with the cluster's marker end, those of another cluster live on, and the folder goes."""
    mine = subprocess.Popen(["sleep", "60"], env={**os.environ, MARKER: spec.marker})
    others = subprocess.Popen(["sleep", "60"], env={**os.environ, MARKER: f"{spec.marker}-2"})
    stranger = ProcessIdentity.of(others.pid)
    spec.save()
    (spec.folder / "nodes" / "worker").mkdir(parents=True)
    try:
        deadline = time.monotonic() + 10
        while mine.pid not in [process.pid for process in marked(spec.marker)]:
            assert time.monotonic() < deadline, "the child has not become the program with the marker"
        teardown.remove(spec)
        assert mine.wait(timeout=10) == -9
        assert stranger is not None
        assert stranger.alive()
        assert not spec.folder.exists()
    finally:
        for process in (mine, others):
            process.kill()
            process.wait()


def test_files_are_not_removed_through_a_live_mount(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """While something is mounted in the folder, its files stay, and the message has the command that unmounts."""
    spec.save()
    monkeypatch.setattr(teardown, "mounted_below", lambda folder: [f"{folder}/x"])
    with pytest.raises(EnvironmentProblem, match=f"umount {spec.folder}/x"):
        teardown.remove(spec)
    assert (spec.folder / "cluster.json").exists()


def test_second_inferctl_is_told_who_holds_the_lock(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that another process is changing is left alone, and that process is named."""
    monkeypatch.setattr("inferctl.process.lock.PATIENCE_SECONDS", 0.1)
    with lock.locked(spec), pytest.raises(EnvironmentProblem, match=f"process {os.getpid()}"), lock.locked(spec):
        pass


def test_folder_of_a_stranger_is_left_alone(spec: ClusterSpec) -> None:
    """A folder that no cluster was saved in is not removed, whatever its name, and the message names it."""
    spec.folder.mkdir(parents=True)
    (spec.folder / "thesis.txt").write_text("mine")
    with pytest.raises(EnvironmentProblem, match=f"{spec.folder} holds files that are no cluster's"):
        teardown.remove(spec)
    assert (spec.folder / "thesis.txt").read_text() == "mine"


def test_removal_goes_on_when_the_users_kubeconfig_is_broken(spec: ClusterSpec, tmp_path: Path) -> None:
    """A kubeconfig that cannot be read any more stays as it is and is named; everything else goes."""
    broken = tmp_path / "kubeconfig"
    broken.write_text("a: [b")
    spec.save()
    (spec.folder / "user-kubeconfig").write_text(str(broken))
    with pytest.raises(EnvironmentProblem, match=f"the kubeconfig {broken} cannot be read"):
        teardown.remove(spec)
    assert not spec.folder.exists()
    assert broken.read_text() == "a: [b"


def test_state_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state folder cannot be made, the message names it and the variable that names another."""
    monkeypatch.setenv("INFERCTL_STATE", "/proc/nope")
    with pytest.raises(EnvironmentProblem, match="INFERCTL_STATE"), lock.locked(ClusterSpec("trial")):
        pass
