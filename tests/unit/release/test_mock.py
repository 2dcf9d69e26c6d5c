"""A test that deploys first never puts the mock engine over a release that serves something else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inferctl.checks.programs import environment
from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.errors import CommandFailed, EnvironmentProblem, Interrupted, UsageError
from inferctl.images import engine
from inferctl.paths import ROOT
from inferctl.release import mock
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Callable

_TARGET = Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1")
_MOCK: dict[str, Any] = {"image": {"repository": "pull:1/mock-engine", "digest": "sha256:0"}}
_OWN: dict[str, Any] = {"image": {"repository": "registry/vllm-openai", "digest": "sha256:0"}}


def _installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: dict[str, Any] | None, name: str = "chat"
) -> list[dict[str, Any]]:
    """Run the decision with a release of these values, or none, and give the values that were installed."""
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(Release, "recover", lambda _: None)
    monkeypatch.setattr(Release, "_lent_by", lambda _: 0)
    monkeypatch.setattr(Release, "status", lambda _: "")
    monkeypatch.setattr(Release, "status", lambda _: "" if values is None else "deployed")
    monkeypatch.setattr(Release, "values", lambda _: values)
    monkeypatch.setattr(Release, "last_deployed", lambda _: 0 if values is None else 1)
    monkeypatch.setattr(Release, "upgrade", lambda _, new, **__: given.append(new))
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(engine, "publish", lambda *_, **__: "sha256:1")
    monkeypatch.setattr(mock, "_DIGEST", tmp_path / "digest")
    mock.install_unless_foreign(_TARGET, name, Progress(), replicas=2)
    return given


@pytest.mark.parametrize(("values", "name"), [(None, "mock"), (_MOCK, "mock"), (_MOCK, "chat")])
def test_mock_is_installed_where_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: dict[str, Any] | None, name: str
) -> None:
    """Where "mock" is missing, or a release runs the mock engine, the new image is installed with CPU of its own."""
    (given,) = _installed(monkeypatch, tmp_path, values, name)
    assert given["image"] == {"repository": "pull:1/mock-engine", "digest": "sha256:1"}
    assert given["replicaCount"] == 2
    assert given["resources"] == {"requests": {"cpu": "100m"}}


@pytest.mark.parametrize("before", [0, 3])
def test_interrupted_change_is_undone_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], before: int
) -> None:
    """Ctrl-C takes back what the call made: a new release goes, another has the revision that it had."""
    done: list[str] = []
    _interrupted(monkeypatch, tmp_path, before, lambda _: done.append("undone"))
    with pytest.raises(KeyboardInterrupt):
        mock.install(_TARGET, "mock", Progress(), replicas=1)
    assert done == ["undone"]
    said = capsys.readouterr().err
    assert ("rolling release 'mock' back" if before else "removing release 'mock', which was new") in said


@pytest.mark.parametrize(
    ("before", "error", "fix"),
    [(0, KeyboardInterrupt(), "uninstall mock"), (3, CommandFailed("no answer"), "rollback mock 3")],
)
def test_what_an_interrupted_change_leaves_is_told_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int, error: BaseException, fix: str
) -> None:
    """When the clean-up fails or is interrupted too, the message names the release and the command for the rest."""

    def undo(_: Release) -> None:
        raise error

    _interrupted(monkeypatch, tmp_path, before, undo)
    with pytest.raises(Interrupted, match=rf"'mock' is left half changed .* --namespace default {fix}$") as told:
        mock.install(_TARGET, "mock", Progress(), replicas=1)
    assert told.value.exit_code == 130


def _interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: int, undo: Callable[[Release], object]
) -> None:
    """Have Ctrl-C come while helm works on a release of which this revision was deployed before."""

    def upgrade(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(Release, "recover", lambda _: None)
    monkeypatch.setattr(Release, "_lent_by", lambda _: 0)
    monkeypatch.setattr(Release, "status", lambda _: "")
    monkeypatch.setattr(Release, "last_deployed", lambda _: before)
    monkeypatch.setattr(Release, "upgrade", upgrade)
    monkeypatch.setattr(Release, "undo", undo)
    monkeypatch.setattr(engine, "publish", lambda *_, **__: "sha256:1")
    monkeypatch.setattr(mock, "_DIGEST", tmp_path / "digest")


@pytest.mark.parametrize(("delay", "wait", "load"), [(0, 240, None), (15, 270, None), (900, 2040, 1020)])
def test_install_waits_as_long_as_the_engine_is_told_to_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, delay: int, wait: int, load: int | None
) -> None:
    """A long load is waited for and allowed by the release, a short one is not waited for in vain."""
    given: list[tuple[dict[str, Any], float]] = []
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    monkeypatch.setattr(Release, "recover", lambda _: None)
    monkeypatch.setattr(Release, "_lent_by", lambda _: 0)
    monkeypatch.setattr(Release, "status", lambda _: "")
    monkeypatch.setattr(Release, "last_deployed", lambda _: 0)
    monkeypatch.setattr(Release, "upgrade", lambda _, values, wait: given.append((values, wait)))
    monkeypatch.setattr(engine, "publish", lambda *_, **__: "sha256:1")
    monkeypatch.setattr(mock, "_DIGEST", tmp_path / "digest")
    mock.install(_TARGET, "mock", Progress(), replicas=2, startup_delay=delay)
    ((values, waited),) = given
    assert waited == wait
    assert values["engine"].get("loadTimeoutSeconds") == load


def test_mistyped_release_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another name that is not there is refused with both ways on; nothing is pushed or installed."""
    with pytest.raises(EnvironmentProblem, match="inferctl deploy --release chat"):
        _installed(monkeypatch, tmp_path, None)
    assert not (tmp_path / "digest").exists()


def test_another_engine_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A release that serves another image is not changed, and no image is pushed for it."""
    assert _installed(monkeypatch, tmp_path, _OWN) == []
    assert not (tmp_path / "digest").exists()


def test_another_chart_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A release that is not of this chart is neither changed nor tested."""
    with pytest.raises(UsageError, match="release 'chat' is not of the chart"):
        _installed(monkeypatch, tmp_path, {"image": {"tag": "1"}})
    assert not (tmp_path / "digest").exists()


@pytest.mark.parametrize("recipe", ["rollout-test", "rollout-test-control", "drain-test", "drain-test-control"])
@pytest.mark.parametrize(
    ("words", "option"),
    [
        ([], "--release"),
        (["trial"], "--release"),
        (["mock", "--name", "trial"], "--release"),
        (["--name", "trial"], ""),
    ],
)
def test_recipes_pass_every_option_to_one_command(recipe: str, words: list[str], option: str) -> None:
    """A recipe is one command that deploys and tests with the same options; an option is no release's name."""
    just = shutil.which("just", path=environment()["PATH"]) or "just"
    shown = subprocess.run(
        [just, "--dry-run", recipe, *words], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    name = recipe.removesuffix("-control")
    control = ["--control"] if name != recipe else []
    assert shown.stderr.split() == ["inferctl", name, "--deploy", *control, *filter(None, [option]), '"$@"']
