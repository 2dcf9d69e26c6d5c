"""``inferctl doctor``: what this machine lacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from inferctl.doctor.examination import Area, enough, examine

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Shown below the options.
EXAMPLES = """\b
Examples:
  inferctl doctor
  inferctl doctor --json | jq '.areas[].problems'

\b
Exit codes: 0 checks and a cluster can be run here, 2 something must be put right first.
"""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print it for a program to read.")] = False) -> None:
    """Say everything that this machine lacks, each with its fix; changes nothing.

    Run as ./just doctor, ./just first makes what every recipe needs: system packages as root, and .venv.
    """
    areas = examine()
    typer.echo(_json(areas) if as_json else _text(areas))
    if not enough(areas):
        raise typer.Exit(2)


def _json(areas: tuple[Area, ...]) -> str:
    rows = [
        {
            "name": area.name,
            "serves": area.serves,
            "ready": not area.problems,
            "problems": [{"what": problem.what, "fix": problem.fix} for problem in area.problems],
            "to_build": area.to_build,
        }
        for area in areas
    ]
    return json.dumps({"enough": enough(areas), "areas": rows}, indent=1)


def _text(areas: Sequence[Area]) -> str:
    lines = []
    for area in areas:
        lines.append(f"{area.name} ({area.serves}): {'not yet' if area.problems else 'ready'}")
        lines += [f"  - {problem.what}\n    {problem.fix}" for problem in area.problems]
        if area.to_build:
            lines.append(f"  the first use builds {len(area.to_build)} programs: {', '.join(area.to_build)}")
    return "\n".join(lines)
