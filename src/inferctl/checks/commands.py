"""``inferctl check``: run the checks that need no cluster."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from inferctl.checks import files
from inferctl.checks.catalog import CHECKS, named, tools_of
from inferctl.checks.runner import Result, State, run_all
from inferctl.console import Progress
from inferctl.errors import UsageError
from inferctl.paths import ROOT
from inferctl.tools.build import ensure_programs

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Shown below the options.
EXAMPLES = """\b
Examples:
  inferctl check
  inferctl check mypy "ruff check"
  inferctl check --list

\b
Exit codes: 0 all is well, 1 a check failed, 2 a program is missing.
"""


def check(
    names: Annotated[list[str] | None, typer.Argument(help="Which; by default all.", show_default=False)] = None,
    *,
    listed: Annotated[bool, typer.Option("--list", help="Print the names and commands, and run nothing.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="How many run at once; by default one more than there are processors."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results for a program to read.")] = False,
) -> None:
    """Run formatters in check mode, linters, the chart's checks and the tests that need no cluster."""
    try:
        checks = named(names or ())
    except LookupError as error:
        known = ", ".join(one.name for one in CHECKS)
        raise UsageError(f"check {error}: there is none of this name; there are: {known}") from error
    if listed:
        for one in checks:
            typer.echo(f"{one.name:<24}{' '.join(one.command)}")
        return
    progress = Progress()
    ensure_programs(tools_of(checks), progress)

    def report(result: Result) -> None:
        progress.say(f"{result.check.name}: {result.state.value} ({result.seconds:.1f} s)")

    # One more than there are processors: the load tests mostly wait for clocks.
    jobs = jobs or (os.cpu_count() or 1) + 1
    results = run_all(checks, files.of_checkout(ROOT), root=ROOT, jobs=jobs, done=report, say=progress.say)
    typer.echo(_json(results) if as_json else _text(results, progress.elapsed))
    if any(result.state is State.FAILED for result in results):
        raise typer.Exit(1)


def _json(results: Sequence[Result]) -> str:
    rows = [
        {
            "name": result.check.name,
            "state": result.state.name.lower(),
            "seconds": round(result.seconds, 2),
            "output": result.output if result.state is State.FAILED else result.closing_line,
        }
        for result in results
    ]
    return json.dumps(rows, indent=1)


def _text(results: Sequence[Result], seconds: float) -> str:
    failed = [result for result in results if result.state is State.FAILED]
    lines = []
    for result in failed:
        lines += [f"--- {result.check.name} ---", result.output.rstrip(), ""]
    # It is what a person, or a program, looks for at the end of a test run.
    counts = [result for result in results if result.check.closing_line]
    lines += [f"{result.check.name}: {result.closing_line}" if failed else result.closing_line for result in counts]
    lines += [f"{result.check.name:<24}{result.seconds:7.1f} s  {result.state.value}" for result in results]
    verdict = f"{len(failed)} failed" if failed else "all well"
    lines.append(f"{len(results)} checks in {seconds:.1f} s: {verdict}")
    return "\n".join(lines)
