"""What is built again when, and from which version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.errors import EnvironmentProblem
from inferctl.paths import KUBE_MODULE
from inferctl.tools import build, go
from inferctl.tools.programs import PROGRAMS, Program, Purpose, needed_for, pinned

if TYPE_CHECKING:
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


def test_program_is_stale_when_its_pins_or_its_source_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program counts as current only while its module files and its own source are those it was built from."""
    module, bin_, stamps = tmp_path / "module", tmp_path / "bin", tmp_path / "stamps"
    (module / "cmd").mkdir(parents=True)
    for name in ("go.mod", "go.sum", "cmd/main.go"):
        (module / name).write_text("1")
    program = Program("p", "./cmd", frozenset({Purpose.CHECK}), module=module)
    monkeypatch.setattr(build, "BIN", bin_)
    monkeypatch.setattr(build, "_STAMPS", stamps)
    monkeypatch.setattr(build, "compiler", lambda: "go")
    monkeypatch.setattr(build, "run", lambda command, **_: command[command.index("-o") + 1].write_text("built"))
    monkeypatch.setattr(build, "needed_for", lambda _purposes: (program,))
    assert build.missing(set()) == ["p"]
    build._build(program)
    assert build.missing(set()) == []
    for name in ("go.mod", "go.sum", "cmd/main.go"):
        (module / name).write_text("2")
        assert build.missing(set()) == ["p"]
        build._build(program)
    (bin_ / "p").unlink()
    assert build.missing(set()) == ["p"]


def test_old_compiler_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Go that is too old is named, with its version and the way to get one."""
    monkeypatch.setattr(go, "run", lambda *_, **__: "go1.20.1")
    with pytest.raises(EnvironmentProblem, match=r"is go1\.20\.1.*rm -rf \.venv"):
        go.compiler()
