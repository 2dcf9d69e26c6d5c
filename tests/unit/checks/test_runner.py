"""How checks are chosen, run and reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from inferctl import application
from inferctl.checks import commands, files, runner
from inferctl.checks.catalog import CHECKS, Check, named, tools_of
from inferctl.checks.runner import Result, State, run_all
from inferctl.errors import EnvironmentProblem
from inferctl.tools.programs import Purpose, needed_for

if TYPE_CHECKING:
    from collections.abc import Callable


def program(folder: Path, name: str, body: str) -> Check:
    """A check whose program is a shell script in ``folder``."""
    script = folder / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return Check(name, (str(script),))


def outcomes(checks: list[Check], paths: list[str], root: Path) -> dict[str, Result]:
    """Run the checks and give the results by name."""
    return {result.check.name: result for result in run_all(checks, paths, root=root, jobs=2, done=lambda _: None)}


def test_every_check_runs_although_one_fails(tmp_path: Path) -> None:
    """A failure stops nothing, and its output is kept, errors and all."""
    bad = program(tmp_path, "bad", "echo seen; echo why >&2; exit 3")
    good = program(tmp_path, "good", "exit 0")
    results = outcomes([bad, good], [], tmp_path)
    assert results["bad"].state is State.FAILED
    assert results["bad"].output == "seen\nwhy\n"
    assert results["good"].state is State.OK


def test_formatter_that_only_lists_fails_when_it_lists(tmp_path: Path) -> None:
    """A silent check that prints a file's name has failed, whatever its exit code."""
    listing = program(tmp_path, "listing", "echo main.go")
    silent = Check("listing", listing.command, silent=True)
    assert outcomes([silent], [], tmp_path)["listing"].state is State.FAILED


def test_files_reach_the_program_as_they_are_named(tmp_path: Path) -> None:
    """Names with spaces and quotes are one argument each, and files of other kinds are left out."""
    show = program(tmp_path, "show", 'for name; do echo "<$name>"; done')
    check = Check("show", show.command, files=("*.py",), excluded=("golden/*",))
    paths = ["a b.py", "it's.py", "c.txt", "golden/d.py"]
    assert outcomes([check], paths, tmp_path)["show"].output == "<a b.py>\n<it's.py>\n"


def test_check_without_its_kind_of_files_says_so(tmp_path: Path) -> None:
    """A linter is not run on nothing: most would then look at everything, or fail."""
    check = Check("show", program(tmp_path, "show", "exit 9").command, files=("*.go",))
    assert outcomes([check], ["a.py"], tmp_path)["show"].state is State.NO_FILES


def test_missing_programs_are_an_error_that_names_all_of_them(tmp_path: Path) -> None:
    """Nothing is skipped for want of a program, and nothing runs before all are found."""
    witness = tmp_path / "ran"
    checks = [Check("a", ("absent-a",)), program(tmp_path, "touch-it", f"touch {witness}"), Check("b", ("absent-b",))]
    with pytest.raises(EnvironmentProblem, match="absent-a, absent-b"):
        outcomes(checks, [], tmp_path)
    assert not witness.exists()


def test_check_that_needs_the_nix_shell_is_reported_outside_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not run here is in the report, under its own state."""
    check = Check("nix", ("absent",), nix_only=True)
    monkeypatch.delenv("IN_NIX_SHELL", raising=False)
    assert outcomes([check], [], tmp_path)["nix"].state is State.NIX_ONLY
    monkeypatch.setenv("IN_NIX_SHELL", "impure")
    with pytest.raises(EnvironmentProblem, match="absent"):
        outcomes([check], [], tmp_path)


def test_check_that_never_ends_is_ended_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check has a deadline, and what it printed until then is kept."""
    monkeypatch.setattr(runner, "_SECONDS", 1)
    check = program(tmp_path, "slow", "echo begun; exec sleep 60")
    result = outcomes([check], [], tmp_path)["slow"]
    assert result.state is State.FAILED
    assert result.output.splitlines() == ["begun", "", "not done after 1 s, ended"]


def test_interrupted_run_ends_what_runs_and_begins_nothing_more(tmp_path: Path) -> None:
    """After Ctrl-C no further check begins, and the one that runs is not waited for."""

    def interrupt(_: Result) -> None:
        raise KeyboardInterrupt

    quick = program(tmp_path, "quick", "exit 0")
    slow = program(tmp_path, "slow", "exec sleep 60")
    later = program(tmp_path, "later", f"touch {tmp_path}/begun")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_all([quick, slow, later], [], root=tmp_path, jobs=1, done=interrupt)
    assert time.monotonic() - began < 30
    assert not (tmp_path / "begun").exists()


def test_files_of_a_checkout_are_those_that_git_would_keep(tmp_path: Path) -> None:
    """Tracked and new files count; ignored and deleted ones do not."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    for name in ("tracked.py", "deleted.py", "ignored.py", "new one.py"):
        (tmp_path / name).touch()
    subprocess.run(["git", "add", "tracked.py", "deleted.py"], cwd=tmp_path, check=True)
    (tmp_path / "deleted.py").unlink()
    assert files.of_checkout(tmp_path) == [".gitignore", "new one.py", "tracked.py"]


def test_folder_that_is_no_checkout_is_refused_with_the_fix(tmp_path: Path) -> None:
    """Without git there is no list of files, and nothing is guessed."""
    with pytest.raises(EnvironmentProblem, match="clone it again"):
        files.of_checkout(tmp_path)


def test_report_has_each_check_its_time_and_the_output_of_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command exits with 1 when a check failed, shows why, and repeats a test runner's count."""
    bad = program(tmp_path, "bad", "echo reason; exit 1")
    count = program(tmp_path, "count", "echo noise; echo 3 passed")
    checks = (bad, Check("count", count.command, closing_line=True))
    monkeypatch.setattr(commands, "named", lambda _names: checks)
    monkeypatch.setattr(commands, "ensure_programs", lambda _purposes, _progress: None)
    done = CliRunner().invoke(application.app, ["check"])
    assert done.exit_code == 1
    assert "--- bad ---\nreason\n" in done.stdout
    assert "\ncount: 3 passed\n" in done.stdout
    assert "noise" not in done.stdout
    assert done.stdout.rstrip().endswith("1 failed")
    rows = json.loads(CliRunner().invoke(application.app, ["check", "--json"]).stdout)
    assert [(row["name"], row["state"]) for row in rows] == [("bad", "failed"), ("count", "ok")]


def test_unknown_check_is_refused_with_the_names_there_are() -> None:
    """A misspelt name runs nothing, and the message has the right ones."""
    done = subprocess.run(
        [sys.executable, "-c", "from inferctl.cli import main; main()", "check", "mypi"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "error: check mypi: there is none of this name; there are: command tests" in done.stderr


def test_only_programs_of_the_chosen_checks_are_built() -> None:
    """A check of Python builds nothing, a formatter itself, and all of them everything that checks need."""
    assert not tools_of(named(["mypy", "ruff check", "gofmt", "just --fmt", "load tests"]))
    assert [program.name for program in tools_of(named(["yamlfmt"]))] == ["yamlfmt"]
    assert {program.name for program in tools_of(named(["helm lint, kubeconform"]))} == {"helm", "kubeconform"}
    assert tools_of(CHECKS) == needed_for({Purpose.CHECK})


def test_quiet_run_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start it says how many run, and while none ends which ones run; those that wait are not named."""
    monkeypatch.setattr(runner, "_QUIET_SECONDS", 0.1)
    go_on = tmp_path / "go-on"
    slow = program(tmp_path, "slow", f"while ! [ -e {go_on} ]; do sleep 0.05; done")
    later = program(tmp_path, "later", "exit 0")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith("running"):
            go_on.touch()

    results = run_all([slow, later], [], root=tmp_path, jobs=1, done=lambda _: None, say=say)
    assert [result.state for result in results] == [State.OK, State.OK]
    assert said[:2] == ["2 checks, 1 at once", "running: slow"]


_ALONE = """
from inferctl.checks import commands
from inferctl.checks.catalog import Check
commands.named = lambda _: (Check("one", ({program!r},)),)
commands.ensure_programs = lambda *_: None
from inferctl.cli import main
main()
"""


def alone(check: Check) -> list[str]:
    """A command line that runs this check alone, as ``inferctl check`` does."""
    return [sys.executable, "-c", _ALONE.format(program=check.command[0]), "check"]


def test_killed_run_leaves_no_program(tmp_path: Path) -> None:
    """A program ends with the inferctl that started it, even if that is killed and can end nothing itself."""
    note = tmp_path / "pid"
    slow = program(tmp_path, "slow", f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 60")
    with subprocess.Popen(alone(slow), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as inferctl:
        until(note.exists)
        pid = int(note.read_text())
        assert runs(pid)
        inferctl.kill()
    until(lambda: not runs(pid))


def runs(pid: int) -> bool:
    """Whether there is a process of this number that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(what: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)


@pytest.mark.parametrize("reader", ["full", "gone", "closed"])
@pytest.mark.parametrize(("body", "code", "said"), [("exit 0", 0, "all well"), ("exit 9", 1, "1 failed")])
def test_exit_code_is_that_of_the_checks_whoever_reads(
    tmp_path: Path, reader: str, body: str, code: int, said: str
) -> None:
    """Progress that cannot be written to standard error is lost, and neither the report nor the exit code is."""
    words = alone(program(tmp_path, "one", body))
    where = {"full": "2>/dev/full", "gone": "2>&9", "closed": "2>&-"}[reader]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            ["bash", "-c", f'exec 9>&{write}; exec "$@" {where}', "bash", *words],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            pass_fds=[write],
        )
    finally:
        os.close(write)
    assert done.stdout.rstrip().endswith(said)
    assert done.returncode == code


def test_refusal_keeps_its_exit_code_whoever_reads() -> None:
    """A mistake is exit code 2, even where its message cannot be written."""
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-c", "from inferctl.cli import main; main()", "check", "mypi"]
        assert subprocess.run(words, stderr=full, check=False).returncode == 2


def test_names_of_checks_are_unique() -> None:
    """A name means one check."""
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert named(["mypy"]) == tuple(check for check in CHECKS if check.name == "mypy")
