"""What the options of several commands have in common."""

from __future__ import annotations

import math

import typer

from inferctl.report.records import LONGEST_RUN

#: A longer run would have a timeline that nothing reads.
MOST_SECONDS = int(LONGEST_RUN)


def number(value: float) -> float:
    """Refuse what no limit refuses, as it is neither below nor above any.

    Raises:
        BadParameter: it is not a number.
    """
    if math.isnan(value):
        raise typer.BadParameter("'nan' is no number of seconds; write one, such as 150")
    return value
