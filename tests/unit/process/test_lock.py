"""A lock has one holder at a time, ends with it, and tells who it is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inferctl.errors import EnvironmentProblem
from inferctl.process.lock import Lock

if TYPE_CHECKING:
    from pathlib import Path

_HOLD = """
import sys
from pathlib import Path
from inferctl.process.lock import Lock
with Lock(Path(sys.argv[1]), "thing").held():
    print("held", flush=True)
    sys.stdin.read()
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    """A process that holds a lock until its standard input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    return holder


def test_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """The message has the holder's number and command line, and how to end it; afterwards the lock is free."""
    with _holder(tmp_path / "lock") as holder:
        lock = Lock(tmp_path / "lock", "thing")
        wanted = rf"thing is being changed by process {holder.pid} \(.*python.*end it with: kill {holder.pid}$"
        with pytest.raises(EnvironmentProblem, match=wanted), lock.held(0.1):
            pytest.fail("held by two")
        assert holder.stdin
        holder.stdin.close()
        holder.wait()
        with lock.held(0.1):
            assert not lock.cut_short


def test_lock_ends_with_a_holder_that_is_killed(tmp_path: Path) -> None:
    """A killed holder does not keep others out, and the next one knows that it was killed, once."""
    with _holder(tmp_path / "lock") as holder:
        holder.kill()
        holder.wait()
    lock = Lock(tmp_path / "lock", "thing")
    for cut_short in (True, False):
        with lock.held(0.1):
            assert lock.cut_short is cut_short


def test_error_counts_as_cut_short(tmp_path: Path) -> None:
    """Who ends with an error may have left something half done."""
    lock = Lock(tmp_path / "lock", "thing")
    with pytest.raises(KeyError), lock.held():
        raise KeyError
    with lock.held():
        assert lock.cut_short


def test_holder_may_take_it_again(tmp_path: Path) -> None:
    """Within the block the same lock is there already, and it is free only after the outermost one."""
    lock, other = (Lock(tmp_path / "lock", "thing") for _ in range(2))
    with lock.held():
        with lock.held():
            pass
        with pytest.raises(EnvironmentProblem, match=f"process {os.getpid()}"), other.held(0.1):
            pytest.fail("held by two")
    with other.held(0.1):
        assert not lock.files


def test_who_waits_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    """Having the file open is not holding its lock."""
    with _holder(tmp_path / "lock") as holder, (tmp_path / "lock").open():
        with pytest.raises(EnvironmentProblem) as refused, Lock(tmp_path / "lock", "thing").held(0.1):
            pytest.fail("held by two")
        assert f"kill {holder.pid}" in str(refused.value)
        assert str(os.getpid()) not in str(refused.value)
        holder.communicate()


def test_folder_that_cannot_be_made_is_named_with_the_fix(tmp_path: Path) -> None:
    """A file in the place of the folder is an error that names it, with what the caller says helps."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match=f"{tmp_path}/file cannot be written .*; move it"):
        Lock(tmp_path / "file" / "lock", "thing", "move it").held().__enter__()
