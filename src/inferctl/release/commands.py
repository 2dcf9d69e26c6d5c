"""``inferctl deploy``: the mock engine as a release, the way an app team would deploy a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from inferctl.cluster.backend import choose
from inferctl.console import Progress
from inferctl.images import engine
from inferctl.paths import ROOT
from inferctl.release.helm import Release

_DIGEST = ROOT / "local" / "mock-engine.digest"
_READY_SECONDS = 180
#: A load that is long enough to see: pods answer 503 for this long after their start.
_STARTUP_DELAY_SECONDS = 15


def deploy(
    release: Annotated[str, typer.Option(help="The release's name.")] = "mock",
    replicas: Annotated[int, typer.Option(min=1, help="How many pods.")] = 1,
    startup_delay: Annotated[int, typer.Option(min=0, help="Seconds that the engine takes to load.")] = (
        _STARTUP_DELAY_SECONDS
    ),
    backend: Annotated[str, typer.Option(help="embedded, kind or existing.")] = "",
    name: Annotated[str, typer.Option(help="The cluster's name.")] = "",
) -> None:
    """Build and push the mock engine's image and install it as a release; brings the cluster up if there is none.

    Example: inferctl deploy --replicas 2
    """
    progress = Progress()
    target = choose(backend, name).up(progress)
    digest = engine.publish(target.push, progress, plain_http=target.plain_http)
    _DIGEST.write_text(f"{digest}\n")
    values: dict[str, Any] = {
        "image": {"repository": f"{target.pull}/{engine.NAME}", "digest": digest},
        "replicaCount": replicas,
        "engine": {"env": {"STARTUP_DELAY_SECONDS": startup_delay}},
    }
    subject = Release(target, release)
    subject.recover()
    with progress.step(f"helm upgrade --install {release}, until {replicas} pods are ready"):
        subject.upgrade(values, wait=_READY_SECONDS)
    progress.say(f"release {release!r} serves http://{subject.resource}:8000 inside the cluster")
