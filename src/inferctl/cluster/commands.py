"""``inferctl cluster``: up, down, status, logs."""

from __future__ import annotations

import json
import os
from pathlib import Path  # noqa: TC003 - typer reads annotations at run time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from inferctl.cluster import inspection
from inferctl.cluster.backend import choose
from inferctl.cluster.spec import DEFAULT_CLUSTER, ClusterSpec
from inferctl.console import Progress
from inferctl.errors import UsageError
from inferctl.process.command import tail

app = typer.Typer(no_args_is_help=True, help="A disposable Kubernetes cluster.", rich_markup_mode=None)

Backend = Annotated[str, typer.Option(help="embedded, kind or existing; by default what fits this machine.")]
Name = Annotated[str, typer.Option(help="The cluster's name; by default 'inference'.")]


@app.command()
def up(
    backend: Backend = "",
    name: Name = "",
    kubernetes: Annotated[str, typer.Option(help="For a new embedded cluster: 1.30; by default the newest.")] = "",
    retain: Annotated[bool, typer.Option("--retain", help="Keep a cluster whose start failed.")] = False,
) -> None:
    """Bring the cluster up, or leave it as it is when it answers.

    Example: inferctl cluster up --name trial

    Example: inferctl cluster up --name oldest --kubernetes 1.30
    """
    progress = Progress()
    target = choose(backend, name, kubernetes).up(progress, retain=retain)
    progress.say(f"ready. kubectl --context {target.context} get nodes")


@app.command()
def down(backend: Backend = "", name: Name = "") -> None:
    """Remove the cluster, whatever state it is in.

    Example: inferctl cluster down --name trial
    """
    choose(backend, name).down(Progress())


@app.command()
def status(
    backend: Backend = "",
    name: Name = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print it for a program to read.")] = False,
) -> None:
    """Show whether the cluster is up, and the state of its parts; exit code 1 when it is not up.

    Example: inferctl cluster status --json
    """
    state = choose(backend, name).describe()
    if as_json:
        typer.echo(json.dumps(state, indent=1, default=str))
    else:
        _show(state)
    if not state["up"]:
        raise typer.Exit(1)


def _show(state: dict[str, object]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"cluster {state['name']} ({state['backend']}): {'up' if state['up'] else 'not up'}", markup=False)
    if state["up"] or state.get("problem"):
        console.print(f"context: {state['context']} of {state['kubeconfig']}", markup=False)
        if state["registry"] or state["backend"] == "existing":
            console.print(f"registry: {state['registry'] or 'none; name one with INFERCTL_REGISTRY'}", markup=False)
    for what in ("problem", "kubernetes"):
        if state.get(what):
            console.print(f"{what}: {state[what]}", markup=False)
    nodes = state.get("nodes")
    if isinstance(nodes, list) and nodes:
        table = Table("node", "component", "state", "restarts")
        for node in nodes:
            components = node.get("components", {})
            if not (node.get("running") and components):
                table.add_row(node["name"], *_whole(node), "")
            for name, component in components.items():
                table.add_row(node["name"], name, component["state"], str(component["restarts"]))
        console.print(table)
    if state["up"]:
        console.print(f"kubectl --context {state['context']} get nodes", markup=False)


def _whole(node: dict[str, str]) -> tuple[str, str]:
    """What is shown of a node of whose parts nothing is known."""
    if node.get("version"):
        return f"kubelet {node['version']}", "ready" if node["running"] else "not ready"
    return "init", "running" if node["running"] else "down"


@app.command()
def logs(
    component: Annotated[str, typer.Argument(help="NODE/COMPONENT, such as worker/kubelet; all names if absent.")] = "",
    name: Name = "",
    lines: Annotated[int, typer.Option(min=1, help="How many lines from the end.")] = 50,
) -> None:
    """Show the end of a component's log; works on a cluster that failed to start and was kept, too.

    Example: inferctl cluster logs worker/kubelet --lines 100
    """
    spec = _embedded(name)
    found = inspection.logs(spec)
    if not found:
        raise UsageError(f"cluster {spec.name!r} has no logs; bring it up with: ./just cluster-up")
    if not component:
        typer.echo("\n".join(found))
        return
    if component not in found:
        raise UsageError(f"no log {component!r}; there are: {', '.join(found)}")
    typer.echo(tail(found[component].read_text(errors="replace"), lines))


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    name: Name = "",
) -> None:
    """Copy a cluster's logs, configuration and API objects into a folder, for a report or a bug.

    Example: inferctl cluster export /tmp/cluster-report
    """
    inspection.export(_embedded(name), folder)
    typer.echo(f"written: {folder}")


def _embedded(name: str) -> ClusterSpec:
    """The embedded cluster of this name, or of the one that the environment names, be it up or not."""
    wanted = name or os.environ.get("INFERCTL_CLUSTER_NAME") or DEFAULT_CLUSTER
    return ClusterSpec.load(wanted) or ClusterSpec(wanted)
