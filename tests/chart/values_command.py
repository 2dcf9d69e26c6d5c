"""``inferctl values`` as its tests run it: in this process, on a file that they write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from inferctl.values.commands import app

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

DIGEST = "sha256:" + "0" * 64
#: The least that a values file holds.
IMAGE = f"image: {{repository: a, digest: '{DIGEST}'}}\n"


def invoke(*words: object) -> Result:
    """Run ``inferctl values`` with these words."""
    return CliRunner().invoke(app, [str(word) for word in words])


def check(tmp_path: Path, text: str, *options: str) -> Result:
    """Run ``inferctl values check`` on a file with this text."""
    file = tmp_path / "values.yaml"
    file.write_text(text, encoding="utf-8")
    return invoke("check", file, *options)
