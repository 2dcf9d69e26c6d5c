"""What is built again when, and from which version."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from inferctl.console import Progress
from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.paths import KUBE_MODULE
from inferctl.tools import build, go
from inferctl.tools.programs import PROGRAMS, Program, Purpose, needed_for, pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def test_every_purpose_needs_a_program() -> None:
    """No purpose is left without programs, and no program has two entries."""
    assert all(needed_for({purpose}) for purpose in Purpose)
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


def test_version_comes_from_the_module_file() -> None:
    """The version of Kubernetes is read from the module that pins it."""
    assert pinned(KUBE_MODULE, "k8s.io/kubernetes").startswith("v1.37.")
    assert pinned(KUBE_MODULE / "kubernetes-1.30", "k8s.io/kubernetes").startswith("v1.30.")
    with pytest.raises(LookupError, match="no-such-module"):
        pinned(KUBE_MODULE, "no-such-module")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program that has not been built yet, in folders of its own, and a compiler that writes one word."""
    module = tmp_path / "module"
    (module / "cmd").mkdir(parents=True)
    for name in ("go.mod", "go.sum", "cmd/main.go"):
        (module / name).write_text("1")
    program = Program("p", "./cmd", frozenset({Purpose.CHECK}), module=module)
    monkeypatch.setattr(build, "TOOLS", tmp_path)
    monkeypatch.setattr(build, "BIN", tmp_path / "bin")
    monkeypatch.setattr(build, "_STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(build, "compiler", lambda: "go")
    monkeypatch.setattr(build, "run", lambda command, **_: command[command.index("-o") + 1].write_text("built"))
    monkeypatch.setattr(build, "needed_for", lambda _purposes: (program,))
    monkeypatch.setattr(build, "BUILD_BYTES", 0)
    return program


def test_program_is_stale_when_its_pins_or_its_source_change(program: Program, tmp_path: Path) -> None:
    """A program counts as current only while its module files and its own source are those it was built from."""
    assert build.missing(set()) == ["p"]
    build._build(program)
    assert build.missing(set()) == []
    for name in ("go.mod", "go.sum", "cmd/main.go"):
        (program.module / name).write_text("2")
        assert build.missing(set()) == ["p"]
        build._build(program)
    (tmp_path / "bin/p").unlink()
    assert build.missing(set()) == ["p"]


def test_old_compiler_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Go that is too old is named, with its version and the way to get one."""
    monkeypatch.setattr(go, "run", lambda *_, **__: "go1.20.1")
    with pytest.raises(EnvironmentProblem, match=r"is go1\.20\.1.*rm -rf \.venv"):
        go.compiler()


_HOLD = """
import sys
from pathlib import Path
from inferctl.process.lock import Lock
with Lock(Path(sys.argv[1]), "tools").held():
    print("held", flush=True)
    sys.stdin.read()
"""


class _Said(Progress):
    """Keeps what is said, and does something at each line."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.lines: list[str] = []
        self.then = then

    def say(self, text: str) -> None:
        self.lines.append(text)
        self.then()


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that builds, until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process


def test_second_build_waits_for_the_first_and_finds_its_programs(
    program: Program, builder: subprocess.Popen[str]
) -> None:
    """Who comes second says which process it waits for, and then builds nothing that the first one has built."""

    def first_is_done() -> None:
        build._build(program)
        assert builder.stdin
        builder.stdin.close()

    progress = _Said(first_is_done)
    build.ensure({Purpose.CHECK}, progress)
    assert len(progress.lines) == 1
    assert f"is being changed by process {builder.pid} " in progress.lines[0]


def test_wait_for_another_build_can_be_interrupted(program: Program, builder: subprocess.Popen[str]) -> None:
    """Ctrl-C while another process builds ends the wait, and builds nothing."""
    command = "from inferctl.process.lock import Lock; from pathlib import Path; import sys\n"
    command += "with Lock(Path(sys.argv[1]), 'tools').held(600, waiting=lambda t: print(t, flush=True)): print('held')"
    lock = program.module.parent / "lock"
    with subprocess.Popen([sys.executable, "-c", command, str(lock)], stdout=-1, stderr=-1, text=True) as second:
        assert second.stdout
        assert str(builder.pid) in second.stdout.readline()
        second.send_signal(signal.SIGINT)
        said, errors = second.communicate(timeout=60)
    assert not said
    assert "KeyboardInterrupt" in errors


def test_use_that_needs_no_build_waits_for_nobody(program: Program, builder: subprocess.Popen[str]) -> None:
    """What is there as pinned is used at once, also while another process builds something else."""
    build._build(program)
    progress = _Said()
    build.ensure({Purpose.CHECK}, progress)
    assert not progress.lines
    assert builder.poll() is None


def test_what_a_broken_build_left_is_removed(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a killed build nor one that fails leaves part of a program."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/.p.1.part").touch()

    def fail(command: list[Path], **_: object) -> None:
        command[-2].write_text("half")
        raise CommandFailed("no compiler")

    monkeypatch.setattr(build, "run", fail)
    with pytest.raises(CommandFailed):
        build.ensure({Purpose.CHECK}, _Said())
    assert build.missing(set()) == [program.name]
    assert not list((tmp_path / "bin").iterdir())
