"""Layers: the same files give the same bytes, so that the same sources give the same digest."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from inferctl.errors import EnvironmentProblem
from inferctl.images import base, crane, engine

if TYPE_CHECKING:
    from pathlib import Path


def test_same_files_pack_to_the_same_bytes(tmp_path: Path) -> None:
    """Neither the time nor the order in which files were made gets into a layer."""
    archives = []
    for number, names in enumerate((["a", "b"], ["b", "a"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
        archive = tmp_path / f"{number}.tar.gz"
        base.pack_folder(folder, archive)
        archives.append(archive.read_bytes())
    assert archives[0] == archives[1]


def test_packed_program_can_be_run_by_anyone(tmp_path: Path) -> None:
    """A program in a layer is executable and owned by root, whoever packed it."""
    program = tmp_path / "program"
    program.write_text("x")
    layer = crane.pack({"/bin/program": program}, tmp_path / "layer.tar")
    with tarfile.open(layer) as archive:
        member = archive.getmember("bin/program")
    assert (member.mode, member.uid, member.gid, member.mtime) == (0o755, 0, 0, 0)


def test_system_without_debian_packages_is_told_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no Debian packages, the message names the Dockerfile."""
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "fedora", "VERSION_CODENAME": ""})
    with pytest.raises(EnvironmentProblem, match="engines/mock/Dockerfile"):
        base.build()


def test_packages_are_the_same_wherever_the_building_python_is(tmp_path: Path) -> None:
    """A script names that Python in its first line, and the package's record has the script's hash: neither is kept."""
    for place, digest in (("here", "sha256=aa,221"), ("there", "sha256=bb,225")):
        package = tmp_path / place / "web-1.dist-info"
        package.mkdir(parents=True)
        (package / "RECORD").write_text(f"../../bin/web,{digest}\nweb/bin/a.py,sha256=cc,1\n")
        (tmp_path / place / "bin").mkdir()
        (tmp_path / place / "bin" / "web").write_text(f"#!/{place}/python\n")
        engine._forget_scripts(tmp_path / place)
        assert not (tmp_path / place / "bin").exists()
        assert (package / "RECORD").read_text() == "web/bin/a.py,sha256=cc,1\n"
