"""The lowest layer of the mock image: a Debian root file system with Python and little else.

It comes from the distribution's own signed packages by mmdebstrap, so it needs no image registry. Python's
library is compiled here, since a container with a read-only root could never keep what it compiles.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferctl.errors import EnvironmentProblem
from inferctl.paths import CACHE
from inferctl.process.command import run

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES = ("python3-minimal", "libpython3-stdlib", "ca-certificates")
_UNUSED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "var/cache",
    "var/lib/apt",
)
# The stand-ins for a user database and a world-writable /tmp, without which many programs will not start.
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
}
_EPOCH = "0"


@dataclass(frozen=True)
class Base:
    """The unpacked root file system, the layer made of it, and its Python's version such as ``3.11``."""

    folder: Path
    layer: Path
    python: str


def can_build() -> bool:
    """Whether this machine can make the base layer: Linux, as root, with mmdebstrap."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mmdebstrap") is not None


def build() -> Base:
    """Make the base layer, or return the one that was made before from the same recipe.

    Raises:
        EnvironmentProblem: this is no Debian or Ubuntu, whose packages it is made of.
        CommandFailed: mmdebstrap failed.
    """
    suite = _suite()
    recipe = json.dumps([suite, _PACKAGES, _UNUSED, _FILES])
    home = CACHE / f"base-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    root, layer = home / "root", home / "base.tar.gz"
    if not layer.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        run(
            ["mmdebstrap", "--variant=extract", f"--include={','.join(_PACKAGES)}", suite, root],
            env={"SOURCE_DATE_EPOCH": _EPOCH},
        )
        _finish(root)
        part = layer.with_suffix(".part")
        pack_folder(root, part)
        part.rename(layer)
    version = next((root / "usr" / "lib").glob("python3.*")).name.removeprefix("python")
    return Base(root, layer, version)


def compile_in(root: Path, folder: str) -> None:
    """Compile the Python files below ``folder`` with the Python of a root file system, by content, not by time."""
    command = ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder]
    run(["chroot", root, *command])


def pack_folder(folder: Path, archive: Path, *names: str) -> None:
    """Pack a folder, or the named parts of it, so that the same files give the same bytes."""
    options = [
        "--sort=name",
        f"--mtime=@{_EPOCH}",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=posix",
    ]
    options += ["--pax-option=delete=atime,delete=ctime"]
    command: list[str | Path] = ["tar", *options, "-C", folder, "-c", *(names or (".",))]
    with archive.open("wb") as output, subprocess.Popen(command, stdout=subprocess.PIPE) as tar:
        # -n leaves name and time out of the header.
        subprocess.run(["gzip", "-n"], stdin=tar.stdout, stdout=output, check=True)
    if tar.returncode:
        raise EnvironmentProblem(f"tar could not pack {folder}")


def _finish(root: Path) -> None:
    for unused in _UNUSED:
        shutil.rmtree(root / unused, ignore_errors=True)
    for name, content in _FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)
    temporary = root / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    compile_in(root, "/usr/lib")


def _suite() -> str:
    release = platform.freedesktop_os_release()
    suite = release.get("VERSION_CODENAME", "")
    if not suite or not {release["ID"], *release.get("ID_LIKE", "").split()} & {"debian", "ubuntu"}:
        raise EnvironmentProblem(
            f"the mock image's base is made of Debian or Ubuntu packages, and this is {release['ID']}; "
            "build it with Docker instead (engines/mock/Dockerfile)"
        )
    return suite
