"""The mock engine's image: Debian's Python, the engine's wheels pinned by hash, and the engine."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from inferctl.images import base, docker
from inferctl.images.crane import ImageConfig
from inferctl.images.crane import publish as publish_image
from inferctl.paths import CACHE, ENGINE, LOCK
from inferctl.process.command import run

if TYPE_CHECKING:
    from inferctl.console import Progress

#: The same places and variables as in the engine's Dockerfile.
_HOME = "opt/mock-engine"
_CONFIG = ImageConfig(
    entrypoint=("python3", "-m", "mock_engine"),
    env={"PYTHONPATH": f"/{_HOME}", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"},
    user="65532:65532",
)
NAME = "mock-engine"


def publish(registry: str, progress: Progress, *, plain_http: bool = True) -> str:
    """Build the image where it is not built yet, and push it; with Docker where this machine cannot do without.

    Args:
        registry: where to push, as this machine reaches it: ``host:port``.
        progress: told of each step.
        plain_http: whether that registry is reached without TLS.

    Returns:
        The image's digest, ``sha256:...``; the same sources give the same one.

    Raises:
        CommandFailed: a package could not be fetched, or the registry did not take the image.
        EnvironmentProblem: this machine cannot make the base layer.
    """
    if not base.can_build():
        return docker.publish(registry, NAME, progress)
    with progress.step("mock image: base layer"):
        lowest = base.build()
    with progress.step("mock image: engine layer"):
        engine = _engine_layer(lowest)
    with progress.step("mock image: push"):
        return publish_image([lowest.layer, engine], f"{registry}/{NAME}:built", _CONFIG, plain_http=plain_http)


def _engine_layer(lowest: base.Base) -> Path:
    layer = CACHE / f"engine-{_fingerprint(lowest)}.tar.gz"
    if layer.exists():
        return layer
    with TemporaryDirectory(dir=CACHE) as scratch:
        root = Path(scratch, "root")
        # Linked, not copied: only the engine's own files are added to it.
        run(["cp", "-al", lowest.folder, root])
        _install_wheels(root / _HOME, lowest.python, Path(scratch))
        shutil.copytree(ENGINE / "src" / "mock_engine", root / _HOME / "mock_engine", ignore=_not_shipped)
        base.compile_in(root, f"/{_HOME}")
        part = Path(scratch, "layer.part")
        base.pack_folder(root, part, _HOME)
        part.rename(layer)
    return layer


def _install_wheels(folder: Path, python: str, scratch: Path) -> None:
    """Install what the engine needs for another machine's Python, from wheels alone, each checked by its hash."""
    wanted = scratch / "engine.lock"
    wanted.write_text(run([sys.executable, ENGINE / "wheels.py", LOCK]))
    run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--require-hashes",
            "--only-binary=:all:", f"--python-version={python}", "--implementation=cp",
            "--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_17_x86_64", "--platform=manylinux2014_x86_64",
            f"--target={folder}", f"--requirement={wanted}",
        ]
    )  # fmt: skip
    _forget_scripts(folder)


def _forget_scripts(folder: Path) -> None:
    """Remove scripts, and what is recorded of them: both depend on where the building machine's Python is."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for record in folder.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith("../../bin/")))


def _fingerprint(lowest: base.Base) -> str:
    digest = hashlib.sha256(lowest.layer.parent.name.encode())
    for path in sorted(
        [*(ENGINE / "src").rglob("*"), ENGINE / "wheels.py", ENGINE / "pyproject.toml", LOCK, Path(__file__)]
    ):
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
            digest.update(f"{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _not_shipped(_folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__"}
