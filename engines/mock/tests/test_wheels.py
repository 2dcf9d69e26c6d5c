"""The subset of the lock that goes into the image."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

MOCK = Path(__file__).resolve().parents[1]
LOCK = """\
# made by a tool
app==1.0 ; python_version >= '3' \\
    --hash=sha256:aa
    # via
    #   project (pyproject.toml:dev)
Lib-One==2.0 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via app
deep==3.0 \\
    --hash=sha256:dd
    # via
    #   lib-one
    #   other
other==4.0 \\
    --hash=sha256:ee
    # via project (pyproject.toml)
"""


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("wheels", MOCK / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_closure(wheels: ModuleType) -> None:
    """What the roots ask for comes along, with its hashes and markers; what only others ask for does not."""
    assert wheels.needed(LOCK, ["App"]) == [
        "app==1.0 ; python_version >= '3' \\",
        "    --hash=sha256:aa",
        "deep==3.0 \\",
        "    --hash=sha256:dd",
        "Lib-One==2.0 \\",
        "    --hash=sha256:bb \\",
        "    --hash=sha256:cc",
    ]


def test_root_that_is_not_pinned(wheels: ModuleType) -> None:
    """A dependency of the engine that the lock does not pin is an error that names it."""
    with pytest.raises(wheels.LockError, match="not pinned in the lock: nowhere"):
        wheels.needed(LOCK, ["nowhere"])


def test_lock_of_the_project() -> None:
    """The project's own lock pins everything that the engine imports, each with a hash, and no test tool."""
    lock = MOCK.parents[1] / "requirements.lock"
    printed = subprocess.run(
        [sys.executable, MOCK / "wheels.py", lock], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split("==")[0] for line in printed.splitlines() if "==" in line}
    assert {"starlette", "uvicorn", "uvloop", "httptools", "prometheus-client", "anyio", "h11"} <= names
    assert names.isdisjoint({"pytest", "openai", "mypy", "pydantic"})
    assert all("--hash=sha256:" in block for block in printed.split("==")[1:])


def test_lock_that_does_not_exist() -> None:
    """A lock that cannot be read is a message and exit code 2."""
    ended = subprocess.run(
        [sys.executable, MOCK / "wheels.py", "/nowhere"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == "wheels.py: /nowhere: [Errno 2] No such file or directory: '/nowhere'\n"
