"""Every check that looks at single files finds something: run as it is, on a file with one fault in it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from inferctl.checks.catalog import CHECKS, named
from inferctl.checks.runner import State, run_all
from inferctl.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

#: By check: a file's name, what it should be, and the same with a fault that this check is there for.
FAULTS = {
    "ruff format": ("a.py", '"""Says nothing."""\n', "'''Says nothing.'''\n"),
    "ruff check": ("a.py", '"""Says nothing."""\n', '"""Says nothing."""\n\nimport os\n'),
    "shellcheck": ("a.sh", '#!/bin/sh\necho "$1"\n', "#!/bin/sh\necho $1\n"),
    "shfmt": ("a.sh", "#!/bin/sh\nif true; then\n\techo\nfi\n", "#!/bin/sh\nif true; then\n    echo\nfi\n"),
    "yamlfmt": ("a.yml", "# A list.\na:\n  - b\n", "# A list.\na:\n  -   b\n"),
    "yamllint": ("a.yaml", "a: 1\nb: 2\n", "a: 1\na: 2\n"),
    "gofmt": ("a.go", "package a\n", "package  a\n"),
    "just --fmt": ("justfile", "a:\n    true\n", "a:\n  true\n"),
    "actionlint": (
        ".github/workflows/a.yml",
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo\n",
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - rum: echo\n",
    ),
    "hadolint": ("Dockerfile", "FROM a@sha256:0\nWORKDIR /a\n", "FROM a:latest\nWORKDIR /a\n"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found_and_named_and_its_absence_passes(name: str, tmp_path: Path) -> None:
    """The check passes the good file, fails the bad one, and says which file it is."""
    for configuration in ("pyproject.toml", ".yamlfmt.yml", ".yamllint.yml"):
        shutil.copy(ROOT / configuration, tmp_path)
    file, good, bad = FAULTS[name]
    place = tmp_path / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(good)
    [passed] = run_all(named([name]), [file], root=tmp_path, jobs=1, done=lambda _: None)
    assert passed.state is State.OK, passed.output
    place.write_text(bad)
    [found] = run_all(named([name]), [file], root=tmp_path, jobs=1, done=lambda _: None)
    assert found.state is State.FAILED
    assert file in found.output


def test_every_check_of_single_files_has_a_fault_here() -> None:
    """A new linter comes with a fault that it finds."""
    assert {check.name for check in CHECKS if check.files and not check.nix_only} == set(FAULTS)
