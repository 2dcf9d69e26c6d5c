"""``inferctl cluster``: up, down, status, logs."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from inferctl.cluster.backend import choose
from inferctl.console import Progress

app = typer.Typer(no_args_is_help=True, help="A disposable Kubernetes cluster.", rich_markup_mode=None)

Backend = Annotated[str, typer.Option(help="embedded, kind or existing; by default what fits this machine.")]
Name = Annotated[str, typer.Option(help="The cluster's name; by default 'inference'.")]


@app.command()
def up(
    backend: Backend = "",
    name: Name = "",
    retain: Annotated[bool, typer.Option("--retain", help="Keep a cluster whose start failed.")] = False,
) -> None:
    """Bring the cluster up, or leave it as it is when it answers.

    Example: inferctl cluster up --name trial
    """
    progress = Progress()
    target = choose(backend, name).up(progress, retain=retain)
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
    console = Console(highlight=False)
    console.print(f"cluster {state['name']} ({state['backend']}): {'up' if state['up'] else 'not up'}")
    nodes = state.get("nodes")
    if isinstance(nodes, list) and nodes:
        table = Table("node", "component", "state", "restarts")
        for node in nodes:
            if not node.get("running"):
                table.add_row(node["name"], "init", "down", "")
            for name, component in node.get("components", {}).items():
                table.add_row(node["name"], name, component["state"], str(component["restarts"]))
        console.print(table)
    if state["up"]:
        console.print(f"kubectl --context {state['context']} get nodes")
