"""A cluster that is taken down leaves nothing, however its start ended."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from inferctl.cluster.spec import ClusterSpec

NAME = "leaves-nothing"
KILLS = 10


@dataclass(frozen=True)
class Snapshot:
    """What a machine has that a cluster could leave behind, but for what belongs to other clusters."""

    processes: frozenset[str]
    mounts: frozenset[str]
    links: frozenset[str]
    namespaces: frozenset[str]
    cgroups: frozenset[str]
    files: frozenset[str | Path]

    @classmethod
    def take(cls) -> Snapshot:
        """Look at the machine now."""
        return cls(
            processes=frozenset(_marked_processes()),
            mounts=frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
            links=frozenset(link for link in _names(Path("/sys/class/net")) if not _is_other_clusters(link)),
            namespaces=frozenset(_names(Path("/run/netns"))),
            cgroups=frozenset(str(path) for path in Path("/sys/fs/cgroup").glob(f"**/inferctl-{NAME}*")),
            files=frozenset(
                [
                    *_state_root().glob(f"{NAME}/**"),
                    *_names(Path("/var/lib"), Path("/var/log"), Path("/run"), Path("/opt"), Path("/etc")),
                ]
            ),
        )


def _state_root() -> Path:
    return Path(os.environ.get("INFERCTL_STATE", "/var/lib/inferctl"))


def _is_other_clusters(link: str) -> bool:
    """A person may bring another cluster up or down meanwhile; its link is named after its folder."""
    name = link.rpartition("/")[2]
    return re.fullmatch("inf[0-9a-f]{10}", name) is not None and name != ClusterSpec(NAME).host_link


def _names(*folders: Path) -> list[str]:
    """What is directly in these folders."""
    return [str(path) for folder in folders if folder.is_dir() for path in folder.iterdir()]


def _marked_processes() -> list[str]:
    wanted = f"INFERCTL_CLUSTER={_state_root() / NAME}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
        except OSError:
            continue
    return found


def _inferctl(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "inferctl", *arguments, "--name", NAME], start_new_session=True)


def _finish(process: subprocess.Popen[bytes], seconds: float) -> None:
    assert process.wait(timeout=seconds) == 0


@pytest.fixture
def before(kubeconfig_of_user: Path) -> Snapshot:
    """The machine as it is without the cluster."""
    assert not kubeconfig_of_user.exists()
    _finish(_inferctl("cluster", "down"), 60)
    return Snapshot.take()


def test_down_after_up_leaves_nothing(before: Snapshot, kubeconfig_of_user: Path) -> None:
    """A cluster that came up is gone without a trace after down, and a second down is not an error."""
    _finish(_inferctl("cluster", "up"), 240)
    assert "inferctl-leaves-nothing" in kubeconfig_of_user.read_text()
    assert Snapshot.take() != before
    for _ in range(2):
        _finish(_inferctl("cluster", "down"), 60)
        assert Snapshot.take() == before
    assert not kubeconfig_of_user.parent.exists()


def test_down_after_up_was_killed_leaves_nothing(before: Snapshot, kubeconfig_of_user: Path) -> None:
    """After kill -9 of up at any of ten random moments of its start, down leaves nothing behind."""
    seed = int.from_bytes(os.urandom(4))
    moments = random.Random(seed)  # noqa: S311 - moments to kill at, not secrets
    began = time.monotonic()
    _finish(_inferctl("cluster", "up"), 240)
    latest = time.monotonic() - began
    _finish(_inferctl("cluster", "down"), 60)
    number = 0
    while number < KILLS:
        process = _inferctl("cluster", "up")
        moment = moments.uniform(0.2, latest)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        # One that came up before its moment was not killed, and does not count.
        number += process.wait() == -signal.SIGKILL
        _finish(_inferctl("cluster", "down"), 60)
        assert Snapshot.take() == before, f"kill {number} at {moment:.2f} s (seed {seed})"
        assert not kubeconfig_of_user.exists(), f"kill {number} at {moment:.2f} s (seed {seed})"


def test_up_after_everything_was_killed_builds_anew(before: Snapshot) -> None:
    """A cluster whose processes were all killed at once, as by a reboot, is found out and built anew by up."""
    _finish(_inferctl("cluster", "up"), 240)
    for entry in _marked_processes():
        try:
            os.kill(int(entry.split()[0]), signal.SIGKILL)
        except ProcessLookupError:
            continue
    _finish(_inferctl("cluster", "up"), 240)
    state = subprocess.run(
        [sys.executable, "-m", "inferctl", "cluster", "status", "--json", "--name", NAME],
        capture_output=True,
        check=True,
    )
    assert json.loads(state.stdout)["up"]
    _finish(_inferctl("cluster", "down"), 60)
    assert Snapshot.take() == before


def test_interrupted_up_leaves_nothing(before: Snapshot) -> None:
    """Ctrl-C during up removes what was started, without a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-m", "inferctl", "cluster", "up", "--name", NAME],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not _marked_processes():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert Snapshot.take() == before
