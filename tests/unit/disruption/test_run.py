"""How long a run waits is the release's own matter, and what it starts is not forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.disruption import run as tested
from inferctl.disruption import settle
from inferctl.disruption.cordons import Cordons
from inferctl.disruption.scenarios.drains import Drain
from inferctl.disruption.session import Session
from inferctl.errors import CommandFailed, DeadlineExceeded, EnvironmentProblem
from inferctl.process.lock import Lock
from inferctl.release.helm import Release
from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMAGE: dict[str, Any] = {"image": {"repository": "pull:1/engine", "digest": "sha256:0"}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tested.Run]:
    """A run on a release of two pods, whose kubectl notes its arguments and ends as the file `code` says."""
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n. {tmp_path}/code\n')
    program.chmod(0o755)
    (tmp_path / "code").write_text("exit 0")
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(tested, "tool", lambda _: program)
    monkeypatch.setattr(Target, "client", lambda *_: None)
    monkeypatch.setattr(Cordons, "cordon", lambda *_: None)
    release = Release(Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1"), "chat")
    recorder = Recorder(tmp_path / "run" / "timeline.jsonl")
    values = {**_IMAGE, "replicaCount": 2}
    run = tested.Run(release, values, recorder, nodes=None, control=None, progress=Progress())
    yield run
    run.end_programs()
    recorder.close()


@pytest.mark.parametrize(
    ("load", "grace", "seconds"),
    [(None, None, 2 * (600 + 60) + 90), (30, 20, 2 * 90 + 20), (3600, 900, 2 * 3660 + 900)],
)
def test_waits_are_as_long_as_the_release_may_take(
    run: tested.Run, monkeypatch: pytest.MonkeyPatch, *, load: int | None, grace: int | None, seconds: int
) -> None:
    """A model that loads for an hour is waited for, one that loads at once is not waited for in vain."""
    waited: list[float] = []
    monkeypatch.setattr(settle, "wait_until", lambda _, for_seconds, **__: waited.append(for_seconds))
    run.values |= {"engine": {"loadTimeoutSeconds": load}, "rollout": {"terminationGracePeriodSeconds": grace}}
    run.wait_at_rest()
    run.drain("node-a")
    assert waited == [seconds]
    assert f"--timeout={seconds}s" in (run.recorder.path.parents[1] / "calls").read_text()


def test_drain_that_fails_is_told_in_kubectls_words(run: tested.Run, tmp_path: Path) -> None:
    """Kubectl's message is the error's, and the time it was given is its own."""
    (tmp_path / "code").write_text("echo 'would violate the budget' >&2; exit 1")
    with pytest.raises(CommandFailed, match=r"exit code 1\nwould violate the budget"):
        run.drain("node-a", seconds=12)
    assert "drain node-a" in (tmp_path / "calls").read_text()
    assert "--timeout=12s" in (tmp_path / "calls").read_text()


def test_drain_that_goes_on_keeps_others_from_the_release(run: tested.Run, tmp_path: Path) -> None:
    """Whoever wants the release while an abandoned drain still evicts its pods is told of that drain."""
    (tmp_path / "code").write_text("exec sleep 60")
    with run.release.lock.held():
        drain = run.start_drain("node-a")
    other = Lock(run.release.lock.path, "the release")
    with pytest.raises(EnvironmentProblem, match=f"being changed by process {drain.pid} "), other.held(0.1):
        pytest.fail("held by two")
    run.end_programs()
    with other.held(0.1):
        assert drain.returncode


def test_engine_that_names_no_pod_is_not_waited_for(run: tested.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream can be told to be at risk where answers do not say which pod they came from: the run ends at once."""
    monkeypatch.setattr(Drain, "struck", lambda *_: ["pod"])
    run.recorder.record(
        "end", client="load", id=0, outcome="ok", pod="", http=200, chunks=3, ttft=0.1, e2e=0.2, reused=False, detail=""
    )
    with pytest.raises(DeadlineExceeded, match=r"0 streams are past their first token on .*x-served-by"):
        Session._wait_at_risk(Drain(), run)


@pytest.mark.parametrize("alone", [True, False])
def test_pods_that_may_serve_others_are_not_hurried(
    run: tested.Run, monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    """Pods on their way out are ended at once only where a session is alone: elsewhere somebody may read from them."""
    hurried: list[str] = []
    monkeypatch.setattr(Release, "upgrade", lambda *_, **__: None)
    monkeypatch.setattr(settle, "unsettled", lambda *_: "")
    monkeypatch.setattr(tested, "hurry_leaving", lambda _, release: hurried.append(release.name))
    run.deploy(alone=alone)
    assert hurried == (["chat"] if alone else [])
