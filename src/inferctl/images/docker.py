"""The mock engine's image by a Docker engine, for machines that cannot make the daemonless one, such as a Mac."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from inferctl.errors import CommandFailed
from inferctl.paths import ENGINE, ROOT
from inferctl.process.command import run

if TYPE_CHECKING:
    from inferctl.console import Progress

_SECONDS = 900


def publish(registry: str, name: str, progress: Progress) -> str:
    """Build the engine's Dockerfile and push the image.

    Args:
        registry: where to push, as the Docker engine reaches it: ``host:port``; it takes localhost as plain HTTP.
        name: the repository in that registry.
        progress: told of each step.

    Returns:
        The image's digest, ``sha256:...``, as the registry has it.

    Raises:
        CommandFailed: the image does not build, the registry did not take it, or no digest was told.
    """
    reference = f"{registry}/{name}:built"
    with progress.step("mock image: docker build"):
        run(["docker", "build", "--file", ENGINE / "Dockerfile", "--tag", reference, ROOT], deadline=_SECONDS)
    with progress.step("mock image: docker push"):
        said = run(["docker", "push", reference], deadline=_SECONDS)
    # A tag can be moved; only the digest is ever used.
    digest = re.search(r"digest: (sha256:[0-9a-f]{64})", said)
    if not digest:
        raise CommandFailed(f"docker push {reference} told no digest:\n{said}")
    return digest[1]
