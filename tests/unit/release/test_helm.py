"""A release is changed through helm, and never left locked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from inferctl.cluster.target import Target
from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.release.helm import Release, merged

if TYPE_CHECKING:
    from collections.abc import Callable

#: Stands in for helm: notes its arguments and input, then does what the test says.
_HELM = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in *--values=-*) cat > {folder}/values ;; esac
{body}
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Release]:
    """Makes a release whose helm is a script with the given body."""

    def make(body: str) -> Release:
        program = tmp_path / "helm"
        program.write_text(_HELM.format(folder=tmp_path, body=body))
        program.chmod(0o755)
        monkeypatch.setattr("inferctl.release.helm.tool", lambda _: program)
        monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))
        target = Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1")
        return Release(target, "mock", "space")

    return make


def _calls(folder: Path) -> str:
    return (folder / "calls").read_text()


def test_upgrade_passes_the_values_whole(release: Callable[[str], Release], tmp_path: Path) -> None:
    """The values reach helm as a file, in the release's namespace and cluster, with the time to wait."""
    release("true").upgrade({"model": {"name": "a: b"}, "replicaCount": 2}, wait=30)
    assert yaml.safe_load((tmp_path / "values").read_text()) == {"model": {"name": "a: b"}, "replicaCount": 2}
    for word in ("--kube-context=context", "--namespace=space", "upgrade --install mock", "--wait --timeout=30s"):
        assert word in _calls(tmp_path)


def test_refusal_is_told_in_helms_words(release: Callable[[str], Release]) -> None:
    """When helm refuses, the error has what it said."""
    with pytest.raises(CommandFailed, match=r"exit code 1\nError: image.digest is required"):
        release("echo 'Error: image.digest is required' >&2; exit 1").upgrade({})


def test_no_release(release: Callable[[str], Release]) -> None:
    """A release that does not exist has an empty status, and nothing is recovered."""
    missing = release("echo 'Error: release: not found' >&2; exit 1")
    assert missing.status() == ""
    assert missing.revision() == 0
    missing.recover()


def test_other_errors_are_not_taken_for_absence(release: Callable[[str], Release]) -> None:
    """A cluster that does not answer is an error, not a missing release."""
    with pytest.raises(CommandFailed, match="cluster unreachable"):
        release("echo 'Error: cluster unreachable' >&2; exit 1").status()


#: Changes the same release with the helm that is named.
_UPGRADE = """
import sys
from pathlib import Path
from inferctl.cluster.target import Target
from inferctl.release import helm
helm.tool = lambda _: sys.argv[1]
helm.Release(Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1"), "mock", "space").upgrade({})
"""
_HISTORY = """case "$*" in *history*) echo '[{history}]' ;; esac"""


def _history(*statuses: str) -> str:
    """A script that knows revisions of these statuses, numbered from 1."""
    revisions = (f'{{"revision": {number}, "status": "{status}"}}' for number, status in enumerate(statuses, 1))
    return _HISTORY.format(history=", ".join(revisions))


def _was_killed(release: Release) -> Release:
    """Have the last inferctl that changed a release be one that was killed."""
    release.lock.path.parent.mkdir(parents=True, exist_ok=True)
    release.lock.path.write_text("1234567")
    return release


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["superseded", "deployed", "pending-upgrade"], "rollback mock 2"),
        (["superseded", "deployed", "failed", "failed", "pending-upgrade"], "rollback mock 2"),
        (["superseded", "superseded", "pending-rollback"], "rollback mock 2"),
        (["pending-install"], "uninstall mock"),
        (["failed", "pending-upgrade"], "uninstall mock"),
    ],
)
def test_release_that_a_killed_inferctl_left_pending_is_freed(
    release: Callable[[str], Release], tmp_path: Path, statuses: list[str], expected: str
) -> None:
    """It goes back to the last revision that was deployed, not just the one before; one that never was is removed."""
    _was_killed(release(_history(*statuses))).recover()
    assert expected in _calls(tmp_path).splitlines()[-1]


def test_release_that_another_helm_works_on_is_left_alone(release: Callable[[str], Release], tmp_path: Path) -> None:
    """A release is pending though no inferctl was killed: a person's helm may live, so nothing but the fix is told."""
    with pytest.raises(EnvironmentProblem, match=r"'mock' in namespace 'space' .* pending-upgrade.* rollback mock"):
        release(_history("deployed", "pending-upgrade")).recover()
    assert "rollback" not in _calls(tmp_path)


_LENT = "values of an inferctl test; the release's own are those of revision "


def _described(*revisions: tuple[str, str]) -> str:
    """A script that knows revisions of these statuses and descriptions, numbered from 1."""
    rows = [{"revision": n, "status": status, "description": said} for n, (status, said) in enumerate(revisions, 1)]
    return _HISTORY.format(history=json.dumps(rows).replace("'", "'\\''")[1:-1])


def test_upgrade_of_a_test_says_whose_values_are_the_releases_own(
    release: Callable[[str], Release], tmp_path: Path
) -> None:
    """Only within the block does a revision say that it is a test's, and to which one to go back."""
    subject = release(_history("superseded", "deployed"))
    with subject.lent():
        subject.upgrade({})
    assert f"--description={_LENT}2" in _calls(tmp_path).splitlines()[-1]
    subject.upgrade({})
    assert "--description" not in _calls(tmp_path).splitlines()[-1]


@pytest.mark.parametrize(
    ("revisions", "goes_back"),
    [
        ([("superseded", "Upgrade complete"), ("deployed", f"{_LENT}1")], True),
        ([("superseded", ""), ("superseded", f"{_LENT}1"), ("deployed", f"{_LENT}1"), ("failed", "x")], True),
        ([("superseded", ""), ("superseded", f"{_LENT}1"), ("deployed", "Upgrade complete")], False),
        ([("superseded", f"{_LENT}7"), ("deployed", f"{_LENT}7")], False),
        ([("superseded", ""), ("deployed", f"{_LENT}one")], False),
    ],
)
def test_values_of_a_test_that_was_killed_give_way(
    release: Callable[[str], Release], tmp_path: Path, revisions: list[tuple[str, str]], *, goes_back: bool
) -> None:
    """The next change first gives the release its own values back and says so; what a person installed since stays."""
    said: list[str] = []
    with release(_described(*revisions)).changing(said.append):
        pass
    assert ("rollback mock 1" in _calls(tmp_path)) is goes_back
    assert ("rollback" in _calls(tmp_path)) is goes_back
    assert bool(said) is goes_back


def test_release_goes_back_to_its_own_values_past_those_of_a_test(
    release: Callable[[str], Release], tmp_path: Path
) -> None:
    """A test that was killed in the middle of an upgrade leaves two things to undo, which one rollback does."""
    revisions = [("superseded", ""), ("deployed", f"{_LENT}1"), ("pending-upgrade", "Preparing upgrade")]
    _was_killed(release(_described(*revisions))).recover()
    assert "rollback mock 1" in _calls(tmp_path)


def test_helm_of_a_killed_inferctl_keeps_others_out(
    release: Callable[[str], Release], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the helm lives that a killed inferctl started, a second caller is refused and told which process it is."""
    monkeypatch.setattr("inferctl.process.lock.PATIENCE_SECONDS", 0.1)
    subject = release(f"touch {tmp_path}/up; exec sleep 60")
    program = subprocess.Popen([sys.executable, "-c", _UPGRADE, str(tmp_path / "helm")])
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "up").exists():
            assert time.monotonic() < deadline
            assert program.poll() is None
            time.sleep(0.01)
        program.kill()
        program.wait()
        with pytest.raises(
            EnvironmentProblem, match=r"'mock' .* is being changed by process \d+ \(sleep 60\)"
        ) as refused:
            subject.recover()
    finally:
        program.kill()
        program.wait()
        helm = int(re.findall(r"process (\d+)", str(refused.value))[0])
        os.kill(helm, signal.SIGKILL)
    assert "rollback" not in _calls(tmp_path)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [(["failed"], "uninstall mock"), (["deployed", "failed"], "rollback mock 1"), (["deployed"], "history mock")],
)
def test_change_that_came_to_no_end_is_undone(
    release: Callable[[str], Release], tmp_path: Path, statuses: list[str], expected: str
) -> None:
    """A new release is removed, one that was deployed has that revision again, and a change that ended well stays."""
    release(_history(*statuses)).undo()
    assert expected in _calls(tmp_path).splitlines()[-1]


def test_deployed_release_is_left_alone(release: Callable[[str], Release], tmp_path: Path) -> None:
    """Nothing is done to a release that is not locked."""
    release("""echo '[{"revision": 3, "status": "deployed"}]'""").recover()
    assert len(_calls(tmp_path).splitlines()) == 1


def test_interrupted_helm_may_write_its_last_word(release: Callable[[str], Release], tmp_path: Path) -> None:
    """Ctrl-C reaches helm as a signal that it can answer, not as a kill."""
    subject = release(
        f"trap 'echo cancelled >> {tmp_path}/calls; exit 1' INT; touch {tmp_path}/up; while :; do sleep 0.05; done"
    )

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while not (tmp_path / "up").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident or 0
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        subject.upgrade({}, wait=60)
    thread.join()
    assert "cancelled" in _calls(tmp_path)


def test_merged_lays_values_over_others() -> None:
    """Maps are merged key by key, everything else is replaced, and neither argument changes."""
    base = {"engine": {"env": {"A": 1}, "args": ["x"]}, "replicaCount": 1}
    extra = {"engine": {"env": {"B": 2}, "args": ["y"]}}
    assert merged(base, extra) == {"engine": {"env": {"A": 1, "B": 2}, "args": ["y"]}, "replicaCount": 1}
    assert base == {"engine": {"env": {"A": 1}, "args": ["x"]}, "replicaCount": 1}
