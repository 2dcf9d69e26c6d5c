"""Processes are known by more than a number."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from inferctl.process.identity import MARKER, ProcessIdentity, marked

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A marked process that sleeps until the test ends."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, MARKER: "test-of-identity"})
    yield process
    process.kill()
    process.wait()


def test_stranger_with_the_same_id_is_not_killed(sleeper: subprocess.Popen[bytes]) -> None:
    """A process that has taken over a number does not get the signal meant for the one before."""
    real = ProcessIdentity.of(sleeper.pid)
    assert real is not None
    former = ProcessIdentity(sleeper.pid, real.started - 1)
    assert not former.alive()
    former.kill()
    assert real.alive()
    real.kill()
    assert real.wait_gone(time.monotonic() + 10)


def test_marked_processes_are_found_by_the_whole_value(sleeper: subprocess.Popen[bytes]) -> None:
    """A marker is found by its exact value, not by the beginning of it."""
    deadline = time.monotonic() + 10
    while sleeper.pid not in [process.pid for process in marked("test-of-identity")]:
        assert time.monotonic() < deadline
    assert sleeper.pid not in [process.pid for process in marked("test-of")]


def test_ended_process_has_no_identity() -> None:
    """What has ended is not found, not even while its parent has not collected it."""
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessIdentity.of(process.pid) is None
    process.wait()
