"""The commands ``test``, ``rollout-test``, ``drain-test`` and ``report``."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from inferctl.cluster.backend import choose
from inferctl.console import Progress
from inferctl.disruption.catalog import QUICK, SCENARIOS, chosen
from inferctl.disruption.controls import held_to_controls
from inferctl.disruption.cordons import Cordons
from inferctl.disruption.drain_test import drain_test
from inferctl.disruption.options import MOST_SECONDS, number
from inferctl.disruption.result import keep, summary
from inferctl.disruption.rollout_test import rollout_test
from inferctl.disruption.session import Session
from inferctl.disruption.verdict import Outcome, Promise
from inferctl.errors import InferctlError, UsageError
from inferctl.images import engine
from inferctl.release.helm import Release
from inferctl.release.mock import install_unless_foreign
from inferctl.report import html, live
from inferctl.report.timeline import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.cluster.target import Target
    from inferctl.disruption.result import Result
    from inferctl.disruption.scenario import Control, Scenario
    from inferctl.report.recorder import Recorder

_PIPE_WIDTH = 200

Backend = Annotated[str, typer.Option(help="embedded, kind or existing; by default what fits this machine.")]
Cluster = Annotated[str, typer.Option("--name", help="The cluster's name, or the context of an existing one.")]
OnlyControl = Annotated[bool, typer.Option("--control", help="Take the protection away: the run must lose requests.")]
AllowNodes = Annotated[
    str, typer.Option(help="The context on whose nodes scenarios may act; only needed for an existing cluster.")
]
ReleaseName = Annotated[str, typer.Option(help="A release in the namespace 'default'.")]

Deploy = Annotated[
    bool,
    typer.Option(
        "--deploy",
        help="First bring the cluster up and install the mock engine, unless the release serves another engine.",
    ),
]


def run_scenarios(  # noqa: PLR0917 - the options of a command line, which typer passes by name
    name: Annotated[str | None, typer.Argument(help="A scenario, 'quick' (what CI runs) or 'all'.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the scenarios and what they promise.")] = False,
    with_controls: Annotated[
        bool, typer.Option("--with-controls", help="Run the controls too, which must lose requests.")
    ] = False,
    control: OnlyControl = False,
    backend: Backend = "",
    cluster: Cluster = "",
    image: Annotated[
        str, typer.Option(help="The engine's image by digest, as nodes pull it; by default the mock engine is built.")
    ] = "",
    allow_nodes: AllowNodes = "",
    repeat: Annotated[int, typer.Option(min=1, help="Run everything so many times.")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON list, of the scenarios or of what became of each run.")
    ] = False,
) -> None:
    """Disrupt a release under load and say what was lost; exit code 0 proven, 1 loss, 2 not measured.

    Examples: inferctl test --list; inferctl test rollout; inferctl test quick --with-controls;
    inferctl test quick --json | jq -r '.[] | [.name, .verdict] | @tsv'; inferctl test drain --control;
    inferctl test drain --backend existing --name my-context --allow-nodes my-context
    """
    # An unset variable in a script, `inferctl test "$UNSET"`, must not pass for a test that was proven.
    if list_ or name is None:
        _list(as_json=as_json)
        return
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    progress = Progress(console)
    runs = _plan(name, with_controls=with_controls, only_control=control)
    target = choose(backend, cluster).up(progress)
    session = _session(target, image, allow_nodes, progress, console)
    _refuse_early(session, runs, name)
    results: list[Result] = []
    session.prepare()
    try:
        for _ in range(repeat):
            for scenario, one in runs:
                if name in {"all", "quick"} and (reason := session.refusal(scenario)):
                    progress.say(f"{scenario.name} left out: {reason}")
                    continue
                results.append(_run(session, scenario, one, progress, quiet=as_json))
    finally:
        session.close()
    raise typer.Exit(_conclude(results, as_json=as_json))


def run_rollout_test(  # noqa: PLR0917 - as above
    release: ReleaseName = "mock",
    seconds: Annotated[
        float, typer.Option(min=20, max=MOST_SECONDS, callback=number, help="How long load runs.")
    ] = 150,
    streams: Annotated[int, typer.Option(min=1, help="How many streams at once.")] = 4,
    control: OnlyControl = False,
    deploy: Deploy = False,
    backend: Backend = "",
    cluster: Cluster = "",
) -> None:
    """Replace every pod of a deployed release while load runs for a fixed time, and say what was lost.

    What changes is the variable ROLLOUT in engine.env; it stays in the release's values until they are installed
    again, because taking it back would replace every pod once more. The control gives the release its own values back.

    Examples: inferctl rollout-test --deploy; inferctl rollout-test --release my-model --control --seconds 60
    """
    progress = Progress()
    target = _target(backend, cluster, release, progress, replicas=1, deploy=deploy)
    result = rollout_test(target, release=release, seconds=seconds, streams=streams, control=control, progress=progress)
    keep(result, progress)
    # Its load has printed the counts.
    print(result.verdict.line, flush=True)
    raise typer.Exit(result.verdict.exit_code)


def run_drain_test(  # noqa: PLR0917 - as above
    release: ReleaseName = "mock",
    control: OnlyControl = False,
    deploy: Deploy = False,
    backend: Backend = "",
    cluster: Cluster = "",
    allow_nodes: AllowNodes = "",
) -> None:
    """Drain the node of a deployed release's first pod under load, with two replicas, and say what was lost.

    Examples: inferctl drain-test --deploy; inferctl drain-test --release my-model --control
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    progress = Progress(console)
    target = _target(backend, cluster, release, progress, replicas=2, deploy=deploy)
    result = drain_test(
        target, release=release, control=control, nodes_allowed=allow_nodes, progress=progress, observe=_live(console)
    )
    keep(result, progress)
    _tell(result)
    raise typer.Exit(result.verdict.exit_code)


def draw_report(
    timeline: Annotated[Path, typer.Argument(help="A run's timeline.jsonl.")],
    page: Annotated[Path, typer.Argument(help="The HTML file to write.")],
) -> None:
    """Draw a run's report again from its timeline.

    Example: inferctl report runs/20260101-120000-drain/timeline.jsonl drain.html
    """
    first = next(read(timeline), {"kind": "nothing"})["kind"]
    if first != "run":
        raise UsageError(
            f"timeline {timeline} begins with {first!r}, not with a record of kind 'run'; "
            "name a timeline.jsonl that inferctl test wrote"
        )
    try:
        page.touch(exist_ok=False)
    except FileExistsError as error:
        raise UsageError(f"{page} exists; name a file that does not, nothing is overwritten") from error
    except OSError as error:
        raise UsageError(
            f"page {page}: {error.strerror}; name a file in a folder that exists and can be written"
        ) from error
    try:
        html.write(timeline, page)
    except BaseException:
        page.unlink()
        raise
    print(page)


def _target(backend: str, cluster: str, release: str, progress: Progress, *, replicas: int, deploy: bool) -> Target:
    chosen_backend = choose(backend, cluster)
    if not deploy:
        return chosen_backend.target()
    target = chosen_backend.up(progress)
    subject = Release(target, release)
    with subject.lock.held():
        # Two pods may need the node that a killed drain left cordoned.
        Cordons(subject).sweep(progress.say)
    install_unless_foreign(target, release, progress, replicas=replicas)
    return target


def _plan(name: str, *, with_controls: bool, only_control: bool) -> list[tuple[type[Scenario], Control | None]]:
    plan: list[tuple[type[Scenario], Control | None]] = []
    for scenario in chosen(name):
        # In the quick set one control per scenario shows that loss is found; `all` runs every one.
        controls = scenario.controls[:1] if name == "quick" or only_control else scenario.controls
        if not only_control:
            plan.append((scenario, None))
        elif not controls:
            raise UsageError(f"scenario {scenario.name!r} has no control: it loses requests by itself")
        if with_controls or only_control:
            plan += [(scenario, control) for control in controls]
    return plan


def _session(target: Target, image: str, allow_nodes: str, progress: Progress, console: Console) -> Session:
    if image:
        repository, at, digest = image.partition("@")
        if not at or not digest.startswith("sha256:"):
            raise UsageError(f"--image {image!r}: write it with its digest, repository@sha256:...")
    else:
        digest = engine.publish(target.push, progress, plain_http=target.plain_http)
        repository = f"{target.pull}/{engine.NAME}"
    return Session(
        target,
        repository=repository,
        digest=digest,
        progress=progress,
        nodes_allowed=allow_nodes,
        observe=_live(console),
    )


def _live(console: Console) -> Callable[[Recorder], Callable[[], None]]:
    """The view shares the console of the progress lines: one display inside the other."""
    return lambda recorder: live.show(recorder, console)


def _refuse_early(session: Session, runs: list[tuple[type[Scenario], Control | None]], name: str) -> None:
    """A scenario that was asked for by its name must not be left out in silence."""
    if name not in {"all", "quick"}:
        for scenario, _ in runs:
            if reason := session.refusal(scenario):
                raise UsageError(f"scenario {scenario.name!r}: {reason}")


def _run(
    session: Session, scenario: type[Scenario], control: Control | None, progress: Progress, *, quiet: bool
) -> Result:
    taking = f", without {control.takes_away}" if control else ""
    progress.say(f"{scenario.name}: {scenario.summary}{taking}")
    result = session.run(scenario, control)
    keep(result, progress)
    if not quiet:
        _tell(result)
    return result


def _tell(result: Result) -> None:
    found = result.found
    counts = {"ok": found.ok, **{kind: len(requests) for kind, requests in found.lost.items()}}
    print(f"{result.name}: total={found.total} {counts} at_risk={len(found.at_risk)}")
    print(result.verdict.line, flush=True)


def _conclude(results: list[Result], *, as_json: bool) -> int:
    """Print all verdicts when there are several; loss outweighs what was not measured."""
    if not results:
        raise InferctlError("no scenario can run on this cluster; see inferctl test --list")
    results = held_to_controls(results)
    outcomes = [result.verdict.outcome for result in results]
    worst = next((o for o in (Outcome.LOSS, Outcome.NOT_MEASURED) if o in outcomes), Outcome.PROVEN)
    if as_json:
        print(json.dumps([summary(result) for result in results], indent=1))
    elif len(results) > 1:
        table = Table("run", "verdict", "requests", "at risk", "seconds")
        for result in results:
            counts = (str(result.found.total), str(len(result.found.at_risk)), f"{result.seconds:.0f}")
            table.add_row(result.name, result.verdict.outcome.value, *counts)
        Console(file=sys.stdout, highlight=False).print(table)
        unlike = {o: sum(o is other for other in outcomes) for o in Outcome}
        total = sum(result.found.total for result in results)
        said = ", ".join(f"{count} {o.value}" for o, count in unlike.items() if count)
        print(f"verdict: {worst.value}: {len(results)} runs with {total} requests: {said}")
    return worst.exit_code


def _list(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": scenario.name,
                "class": scenario.promise.name,
                "promise": scenario.promise.value,
                "summary": scenario.summary,
                "controls": [control.name for control in scenario.controls],
                "quick": scenario.name in QUICK,
            }
            for scenario in SCENARIOS
        ]
        print(json.dumps(rows, indent=1))
        return
    table = Table("scenario", "class", "what it does", "controls", box=None, padding=(0, 2, 0, 0))
    for scenario in SCENARIOS:
        name = "-" if scenario.promise is Promise.LOSES else scenario.promise.name
        table.add_row(scenario.name, name, scenario.summary, ", ".join(c.name for c in scenario.controls))
    # A pipe has no width to keep to: one line per scenario.
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    console.print(table)
    for promise in Promise:
        console.print(f"{'-' if promise is Promise.LOSES else promise.name}: {promise.value}", markup=False)
    console.print(f"quick: {', '.join(QUICK)}. all: every one.", markup=False)
