"""``inferctl deploy``: the mock engine as a release, the way an app team would deploy a model."""

from __future__ import annotations

from typing import Annotated

import typer

from inferctl.cluster.backend import choose
from inferctl.console import Progress
from inferctl.release.mock import STARTUP_DELAY_SECONDS, install


def deploy(
    release: Annotated[str, typer.Option(help="The release's name.")] = "mock",
    replicas: Annotated[int, typer.Option(min=1, help="How many pods.")] = 1,
    startup_delay: Annotated[int, typer.Option(min=0, help="Seconds that the engine takes to load.")] = (
        STARTUP_DELAY_SECONDS
    ),
    backend: Annotated[str, typer.Option(help="embedded, kind or existing.")] = "",
    name: Annotated[str, typer.Option(help="The cluster's name.")] = "",
) -> None:
    """Build and push the mock engine's image and install it as a release; brings the cluster up if there is none.

    Example: inferctl deploy --replicas 2
    """
    progress = Progress()
    target = choose(backend, name).up(progress)
    subject = install(target, release, progress, replicas=replicas, startup_delay=startup_delay)
    progress.say(f"release {release!r} serves http://{subject.resource}:8000 inside the cluster")
