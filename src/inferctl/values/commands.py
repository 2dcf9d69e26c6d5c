"""The commands ``inferctl values init`` and ``inferctl values check``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated

import typer

from inferctl.values import reading, service, starter, writing
from inferctl.values.check import check

if TYPE_CHECKING:
    from inferctl.values.check import Finding

app = typer.Typer(
    name="values",
    help="Begin a values file for a model, and check one before it is installed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_INIT_EXAMPLES = """\b
Examples:
  inferctl values init my-model.yaml --model mistralai/Mistral-7B-Instruct-v0.3
  inferctl values init big.yaml --model example/large --gpus 8 --load-timeout 3600 --longest-answer 600
  inferctl values init - --model example/small --gpus 0 --image registry.example.com/team/engine@sha256:...
"""
_CHECK_EXAMPLES = """\b
Examples:
  inferctl values check my-model.yaml
  inferctl values check my-model.yaml --release chat --namespace search
  inferctl values check my-model.yaml --json | jq .behaviour.grace_seconds

\b
Exit codes: 0 the file is good, 1 it has problems, 2 it could not be checked.
"""


@app.command("init", epilog=_INIT_EXAMPLES)
def init(
    file: Annotated[Path, typer.Argument(help="Where to write it; - for standard output.", show_default=False)],
    *,
    model: Annotated[str, typer.Option(help="The model's name, as clients ask for it.")],
    image: Annotated[str, typer.Option(help="The engine's image, as repository@sha256:...")] = "",
    gpus: Annotated[int, typer.Option(min=0, max=64, help="GPUs per pod.")] = 1,
    replicas: Annotated[int, typer.Option(min=1, max=1000, help="Pods that serve.")] = 1,
    load_timeout: Annotated[int, typer.Option(min=1, max=604800, help="Longest load, in seconds.")] = 600,
    longest_answer: Annotated[int, typer.Option(min=1, max=86000, help="Longest answer, in seconds.")] = 75,
    spare_gpu: Annotated[
        bool, typer.Option("--spare-gpu/--no-spare-gpu", help="Whether a rollout may start one more pod.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a short values file with a reason at each line."""
    text = starter.values_file(starter.Wish(model, image, gpus, replicas, load_timeout, longest_answer, spare_gpu))
    if str(file) == "-":
        typer.echo(text, nl=False)
        return
    (writing.replace if force else writing.create)(file, text)
    missing = "" if image else "; image.repository and image.digest are still to be filled in"
    typer.echo(f"wrote {writing.shown(file)}{missing}")


@app.command("check", epilog=_CHECK_EXAMPLES)
def check_file(
    file: Annotated[Path, typer.Argument(help="The values file; - for standard input.", show_default=False)],
    *,
    release: Annotated[str, typer.Option(help="The release's name; it gives the objects theirs.")] = "model",
    namespace: Annotated[str, typer.Option(help="Where it would be installed.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what the chart refuses in a values file, or what the service would do."""
    finding = check(file, release=release, namespace=namespace)
    said = _json(finding) if as_json else _text(reading.name(file), finding)
    # Half a character, which YAML can write as an escape, cannot be printed.
    typer.echo(said.encode("utf-8", "backslashreplace").decode("utf-8"))
    raise typer.Exit(0 if finding.good else 1)


def _json(finding: Finding) -> str:
    return json.dumps({"good": finding.good, **dataclasses.asdict(finding)}, indent=2, ensure_ascii=False)


def _text(file: str, finding: Finding) -> str:
    lines = []
    for problem in finding.problems:
        where = f"{file}:{problem.line}" if problem.line else file
        name = problem.key if problem.key.isprintable() else ascii(problem.key)
        key = "" if not name or problem.message.startswith(name) else f"{name}: "
        lines.append(f"{where}: {key}{problem.message}")
        if problem.fix:
            lines.append(f"    {problem.fix}")
    if finding.good:
        lines.append(f"{file}: the chart accepts it, and every value arrives as written")
    if finding.behaviour:
        lines.append("")
        lines += [f"  {heading:<11}{sentence}" for heading, sentence in service.in_words(finding.behaviour)]
    if finding.remarks:
        lines += ["", "  consider"]
        lines += [f"    - {remark}" for remark in finding.remarks]
    return "\n".join(lines)
