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
    monkeypatch.setattr(lock, "_PATIENCE_SECONDS", 0.1)
    with lock.locked(spec), pytest.raises(EnvironmentProblem, match=f"process {os.getpid()}"), lock.locked(spec):
        pass
