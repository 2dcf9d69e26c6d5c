"""Images assembled from layers and pushed to a registry by digest, with crane and no daemon."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class ImageConfig:
    """How a container of the image starts.

    Attributes:
        entrypoint: the program and its first arguments.
        env: variables of every container.
        user: ``uid:gid``; empty means root.
        workdir: the folder it starts in.
    """

    entrypoint: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = "/"


def publish(layers: Sequence[Path], reference: str, config: ImageConfig, *, plain_http: bool = True) -> str:
    """Push an image made of ``layers`` to a registry.

    Args:
        layers: tar files, lowest first; gzipped ones are pushed as they are.
        reference: ``host:port/name:tag``.
        config: how its containers start.
        plain_http: whether the registry is reached without TLS.

    Returns:
        The digest, ``sha256:...``.

    Raises:
        CommandFailed: the registry did not take it.
    """
    name = reference.rpartition(":")[0]
    how = ["--insecure"] if plain_http else []
    files = [f"--new_layer={layer}" for layer in layers]
    run([tool("crane"), "append", *how, "--oci-empty-base", *files, f"--new_tag={reference}"])
    options = [f"--entrypoint={','.join(config.entrypoint)}", f"--workdir={config.workdir}"]
    options += [f"--env={key}={value}" for key, value in config.env.items()]
    options += [f"--user={config.user}"] if config.user else []
    pushed = run(
        [
            tool("crane"),
            "mutate",
            *how,
            "--set-platform=linux/amd64",
            *options,
            f"--tag={reference}",
            reference,
        ]
    )
    digest = pushed.strip().rpartition("@")[2]
    # A tag can be moved; only the digest is ever used.
    run([tool("crane"), "manifest", *how, f"{name}@{digest}"])
    return digest


def pack(files: Mapping[str, Path], layer: Path) -> Path:
    """Write a layer with these files, executable and owned by root; the same files give the same bytes.

    Args:
        files: the path inside the image, and the file to put there.
        layer: the tar file to write.
    """
    with tarfile.open(layer, "w") as archive:
        for name, source in sorted(files.items()):
            info = tarfile.TarInfo(name.lstrip("/"))
            info.size, info.mode = source.stat().st_size, 0o755
            with source.open("rb") as content:
                archive.addfile(info, content)
    return layer
