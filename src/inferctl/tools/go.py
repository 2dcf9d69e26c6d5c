"""The Go compiler: the machine's own where it is new enough, else the one that came with the Python packages."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from inferctl.errors import EnvironmentProblem
from inferctl.paths import KUBE_MODULE
from inferctl.process.command import run


def compiler() -> Path:
    """The path of a Go compiler that can build the modules here.

    Raises:
        EnvironmentProblem: there is none.
    """
    wanted = _number(_required())
    bundled = Path(sys.executable).parent / "go"
    seen = []
    for candidate in (shutil.which("go"), bundled, Path("/usr/local/go/bin/go")):
        if candidate is None or not Path(candidate).exists():
            continue
        version = run([candidate, "env", "GOVERSION"], env={"GOTOOLCHAIN": "local"}).strip()
        if _number(version) >= wanted:
            return Path(candidate)
        seen.append(f"{candidate} is {version}")
    raise EnvironmentProblem(
        f"Go {_required()} or later is needed ({'; '.join(seen) or 'none found'}); "
        "install the Python packages again, which bring one: rm -rf .venv && ./just"
    )


def _required() -> str:
    found = re.search(r"^go (\S+)$", (KUBE_MODULE / "go.mod").read_text(), re.MULTILINE)
    return found[1] if found else "1.26"


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
