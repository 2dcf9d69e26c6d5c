"""What the doctor finds, on machines that lack one thing or everything."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.cluster import preflight
from inferctl.cluster.preflight import Problem
from inferctl.doctor import examination
from inferctl.errors import CommandFailed, EnvironmentProblem

if TYPE_CHECKING:
    from typer.testing import Result


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with everything."""
    monkeypatch.setattr(examination, "missing", lambda _purposes: [])
    monkeypatch.setattr(examination, "compiler", lambda: "go")
    monkeypatch.setattr(preflight, "check", lambda _spec: [])
    monkeypatch.setattr(examination, "run", lambda *_words, **_options: "")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")


def ask(*options: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(application.app, ["doctor", *options])


def test_machine_with_everything_is_ready() -> None:
    """Nothing is lacking, and the exit code says so."""
    done = ask()
    assert done.exit_code == 0
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == ["ready", "ready", "ready"]


def test_everything_that_is_lacking_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run names every lack of every area, each with its fix, and the exit code is 2."""

    def no_compiler() -> None:
        raise EnvironmentProblem("Go 1.26 or later is needed (none found); install the Python packages again")

    lacks = [Problem("user id 1000 is not root", "run it with: sudo"), Problem("not installed: nft", "apt-get install")]
    monkeypatch.setattr(examination, "compiler", no_compiler)
    monkeypatch.setattr(preflight, "check", lambda _spec: lacks)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    done = ask()
    assert done.exit_code == 2
    for words in (
        "git is not installed",
        "Go 1.26 or later is needed",
        "user id 1000 is not root",
        "not installed: nft",
        "docker is not installed",
    ):
        assert f"  - {words}" in done.stdout
    problems = [problem for area in json.loads(ask("--json").stdout)["areas"] for problem in area["problems"]]
    assert len(problems) == 5
    assert all(problem["fix"] for problem in problems)


def test_one_kind_of_cluster_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Docker, or one without root, lacks nothing that it must have."""

    def no_engine(*_words: object, **_options: object) -> str:
        raise CommandFailed("docker info: exit code 1")

    with monkeypatch.context() as patch:
        patch.setattr(examination, "run", no_engine)
        done = ask()
        assert done.exit_code == 0
        assert "no Docker engine answers" in done.stdout
    monkeypatch.setattr(preflight, "check", lambda _spec: [Problem("not root", "sudo")])
    assert ask().exit_code == 0


def test_programs_that_are_not_built_are_no_lack_unless_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first use builds is announced; a full disk is a lack, before hours of building fail on it."""
    monkeypatch.setattr(examination, "missing", lambda _purposes: ["helm", "kube"])
    monkeypatch.setattr(examination, "BUILD_BYTES", 0)
    done = ask()
    assert done.exit_code == 0
    assert "the first use builds 2 programs: helm, kube" in done.stdout
    monkeypatch.setattr(examination, "BUILD_BYTES", 2**62)
    done = ask()
    assert done.exit_code == 2
    assert "GiB free, and building programs takes" in done.stdout
