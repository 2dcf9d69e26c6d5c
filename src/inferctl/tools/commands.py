"""``inferctl tools``: build the programs that this project pins."""

from __future__ import annotations

from typing import Annotated

import typer

from inferctl.console import Progress
from inferctl.tools.build import ensure
from inferctl.tools.programs import Purpose


def tools(
    purposes: Annotated[
        list[Purpose] | None,
        typer.Argument(help="What for; by default everything but kind.", show_default=False),
    ] = None,
) -> None:
    """Build what is missing or whose pins have changed.

    Example: inferctl tools check
    """
    ensure(set(purposes or (Purpose.CLUSTER, Purpose.RELEASE, Purpose.CHECK)), Progress())
