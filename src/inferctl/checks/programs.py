"""Where the programs of checks are: what this project builds, what came with its Python packages, then the PATH."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inferctl.errors import EnvironmentProblem
from inferctl.paths import BIN
from inferctl.process.command import run
from inferctl.tools.go import compiler

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inferctl.checks.catalog import Check

_OF_GIT = frozenset({"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"})


def in_nix_shell() -> bool:
    """Whether this process runs in a shell that Nix made."""
    return bool(os.environ.get("IN_NIX_SHELL"))


def environment() -> dict[str, str]:
    """The environment that checks run in."""
    # In a hook, git's variables point at the repository that is committed to; a check's own use of git must not.
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_GIT}
    search = [str(BIN), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {**inherited, "PATH": os.pathsep.join(search)}


def locate(checks: Iterable[Check]) -> dict[str, str]:
    """The path of each program that the checks run.

    Raises:
        EnvironmentProblem: some are missing; the message names all of them. A check is never skipped for it.
    """
    path = environment()["PATH"]
    found = {name: _find(name, path) for name in sorted({check.command[0] for check in checks})}
    missing = [name for name, place in found.items() if not place]
    if missing:
        raise EnvironmentProblem(
            f"programs of checks are missing: {', '.join(missing)}; "
            "make them with: ./just tools check (the Go ones), rm -rf .venv && ./just (the others)"
        )
    return {name: place for name, place in found.items() if place}


def tied(command: Sequence[str]) -> list[str]:
    """The command as one that is interrupted when the thread that starts it ends, be it by a kill of the process.

    Linux alone has such a tie; elsewhere the command stays as it is.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "INT", *command] if setpriv else list(command)


def _find(name: str, path: str) -> str | None:
    if name != "gofmt":
        return shutil.which(name, path=path)
    # Go's own programs lie beside each other, not on the PATH.
    root = run([compiler(), "env", "GOROOT"], env={"GOTOOLCHAIN": "local"}).strip()
    return shutil.which(name, path=f"{root}/bin")
