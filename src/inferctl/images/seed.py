"""The images that a cluster itself needs, kept as the files of a registry that a new cluster starts with."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from inferctl.errors import EnvironmentProblem
from inferctl.images.crane import ImageConfig, pack, publish
from inferctl.images.registry import NAME, serving
from inferctl.paths import TOOLS, tool

_FOLDER = TOOLS / "seed"


@dataclass(frozen=True)
class Seed:
    """The cluster's own images, by digest, as pods name them."""

    coredns: str
    pause: str

    @classmethod
    def read(cls) -> Seed:
        """Read what `build` made.

        Raises:
            EnvironmentProblem: it has not been made.
        """
        try:
            return cls(**json.loads((_FOLDER / "images.json").read_text()))
        except FileNotFoundError as error:
            raise EnvironmentProblem("the cluster's own images are not built; run: ./just tools") from error

    @staticmethod
    def copy_into(storage: Path) -> None:
        """Give a new registry these images, by copying its files."""
        shutil.copytree(_FOLDER / "registry", storage)


def build() -> None:
    """Make the seed from the built programs, anew."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    with TemporaryDirectory() as scratch, serving(_FOLDER / "registry") as address:
        images = {}
        for name in ("coredns", "pause"):
            layer = pack({f"/{name}": tool(name)}, Path(scratch, f"{name}.tar"))
            digest = publish([layer], f"{address}/{name}:seed", ImageConfig([f"/{name}"]))
            images[name] = f"{NAME}/{name}@{digest}"
    (_FOLDER / "images.json").write_text(json.dumps(asdict(Seed(**images))))
