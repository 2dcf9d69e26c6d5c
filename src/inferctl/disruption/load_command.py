"""``inferctl load``: load on a release and nothing else, for a look at how a service fares."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from inferctl.cluster.backend import choose
from inferctl.console import Progress
from inferctl.disruption.load import Load, LoadPod
from inferctl.disruption.options import MOST_SECONDS, number
from inferctl.errors import EnvironmentProblem
from inferctl.paths import RUNS
from inferctl.release.helm import Release
from inferctl.release.serving import serving
from inferctl.report import timeline
from inferctl.report.findings import find
from inferctl.report.recorder import Recorder
from inferctl.report.state import State

_TAIL_SECONDS = 120.0
_SUFFIX, _TIMELINE = "-load", "timeline.jsonl"


def run_load(  # noqa: PLR0917 - the options of a command line, which typer passes by name
    release: Annotated[str, typer.Option(help="A release in the namespace 'default'.")] = "mock",
    seconds: Annotated[float, typer.Option(min=1, max=MOST_SECONDS, callback=number, help="How long to send.")] = 120,
    concurrency: Annotated[int, typer.Option(min=1, help="How many streams at once.")] = 4,
    node: Annotated[str, typer.Option(help="The node to send from; by default wherever it fits.")] = "",
    backend: Annotated[str, typer.Option(help="embedded, kind or existing.")] = "",
    name: Annotated[str, typer.Option(help="The cluster's name, or the context of an existing one.")] = "",
    last: Annotated[bool, typer.Option("--last", help="Send nothing; say again how the last load ended.")] = False,
) -> None:
    """Stream answers from a release to a pod beside it and count how each ended.

    Exit code 0 if every request ended ok, 1 if any did not, 2 if the load came to no end of its own or sent nothing.

    Example: inferctl load --seconds 30 --concurrency 8
    """
    if last:
        _tell_last()
        return
    progress = Progress()
    subject = Release(choose(backend, name).target(), release)
    if not subject.status():
        raise EnvironmentProblem(subject.missing)
    how = serving(subject, subject.values())
    recorder = Recorder(RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}{_SUFFIX}" / _TIMELINE)
    pod = LoadPod(
        Load("load", streams=concurrency, seconds=seconds), subject, recorder,
        image=how.image, url=how.url, model=how.model, hear=typer.echo,
    )  # fmt: skip
    try:
        with progress.step("starting load"):
            pod.start(node=node)
            pod.wait_running()
        pod.wait_ended(seconds + _TAIL_SECONDS)
    finally:
        pod.remove()
        recorder.close()
    _conclude(recorder.state)


def _tell_last() -> None:
    runs = sorted(RUNS.glob(f"*{_SUFFIX}/{_TIMELINE}"))
    if not runs:
        raise EnvironmentProblem("no load has run yet; run: ./just load")
    state = State()
    for record in timeline.read(runs[-1]):
        state.apply(record)
    found = find(state)
    lost = {kind: len(requests) for kind, requests in found.lost.items()}
    typer.echo(f"{runs[-1].parent.name}: total={found.total} ok={found.ok} failures={lost or 'none'}")
    _conclude(state)


def _conclude(state: State) -> None:
    found = find(state)
    if found.failures:
        raise typer.Exit(1)
    if not found.total:
        why = "no request ended"
    elif not state.summaries:
        why = "it was ended before it could say so itself"
    elif found.unaccounted:
        why = f"its own count and its log differ by {found.unaccounted} requests"
    else:
        return
    typer.echo(f"not measured: {why}")
    raise typer.Exit(2)
