"""What every command has in common: help with an example, plain errors, completion, and colours for terminals alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from inferctl import reference
from inferctl.paths import ROOT

_INFERCTL = Path(sys.executable).parent / "inferctl"
_PAGES = reference.page().partition("## inferctl\n")[2].split("\n### ")[1:]
_LEAVES = [page for page in _PAGES if "\nCommands:\n" not in page]


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run inferctl as a user does, without a terminal."""
    return subprocess.run(
        [_INFERCTL, *words], capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


@pytest.mark.parametrize("page", _LEAVES, ids=lambda page: page.partition("\n")[0].strip())
def test_help_has_an_example(page: str) -> None:
    """Whoever asks a command for help sees how it is used, under its own name."""
    name = page.partition("\n")[0].strip()
    usage, _, rest = page.partition("Usage: ")[2].partition("\n")
    assert usage.startswith(name)
    assert re.search(rf"\b{name}\b", rest)
    assert "\b" not in page, "a mark of the help's source is printed"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cluster", "upp"], "upp"),
        (["cluster", "up", "--nmae", "x"], "--nmae"),
        (["cluster", "status", "--backend", "docker"], "backend 'docker': write embedded, kind or existing"),
        (["check", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["check", "nonsense"], "check nonsense: there is none of this name"),
        (["cluster", "status", "--backend", "kind", "--name", "trial"], "docker"),
    ],
)
def test_mistake_is_told_without_a_traceback(words: list[str], said: str) -> None:
    """A wrong command, option, value or backend: exit code 2, what was wrong on standard error, and no traceback."""
    done = run(*words, PATH="/nonexistent")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr, "colours without a terminal"
    assert not done.stdout


def test_output_that_no_terminal_reads_has_no_colours() -> None:
    """A pipe or a file gets plain text, help included; errors are looked at above."""
    for done in (run("--help"), run("doctor"), run("check", "--list")):
        assert "\x1b" not in done.stdout + done.stderr


def test_output_that_nobody_reads_is_no_result() -> None:
    """A reader that has gone does not make an exit code of 1, which would mean a loss."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [_INFERCTL, "check", "--list"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (2, "error: nobody reads the output to its end\n")


def test_version_is_the_packages() -> None:
    """A report of a fault can say which version it is about: the one that pyproject.toml names."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    told = run("--version")
    assert (told.returncode, told.stdout, told.stderr) == (0, f"inferctl {named}\n", "")


@pytest.mark.parametrize(("typed", "offered"), [("inferctl clu", "cluster"), ("inferctl cluster do", "down")])
def test_shell_completes_commands(typed: str, offered: str) -> None:
    """The shell is offered the commands that begin as typed."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_INFERCTL_COMPLETE": "complete_bash"}
    assert run(**words).stdout.split() == [offered]


@pytest.mark.parametrize(
    ("words", "module"), [(["hooks", "--help"], "checks.hook_commands"), (["check", "--list"], "checks.commands")]
)
def test_quick_commands_start_without_what_takes_longer_than_they_do(words: list[str], module: str) -> None:
    """What runs at each commit loads no client, cryptography, templates or validators, nor does the command line."""
    heavy = {"lightkube", "httpx2", "cryptography", "jinja2", "pydantic"}
    look = "import sys; from inferctl.application import app; app(standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert f"inferctl.{module}" in loaded
    assert heavy & loaded == set()


@pytest.mark.parametrize("command", [[str(_INFERCTL)], [sys.executable, "-m", "inferctl"]], ids=["script", "module"])
@pytest.mark.parametrize(
    ("sent", "slow"), [(signal.SIGINT, "typer"), (signal.SIGINT, "rich"), (signal.SIGTERM, "rich")]
)
def test_interrupt_during_imports_is_quiet(tmp_path: Path, command: list[str], sent: signal.Signals, slow: str) -> None:
    """Ctrl-C in the first moment ends with the exit code of an interrupt and one word, not with a traceback."""
    # In the place of a library of all commands, or of one: a module whose import takes for ever.
    code = f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(60)\n"
    (tmp_path / f"{slow}.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'src'}"}
    with subprocess.Popen(
        [*command, "cluster", "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(sent)
        assert process.communicate(timeout=30) == ("", "interrupted\n")
    assert process.returncode == 130
