"""Draws docs/report.png: the upper part of a run's report, down to the key of its pods, in a light scheme."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from subprocess import SubprocessError

from inferctl.errors import InferctlError
from inferctl.report import html
from tests import browser

PICTURE = Path(__file__).resolve().parent / "report.png"
_WIDTH = 1100
_MARGIN = 16
#: The height down to the end of the key, in pixels.
_HEIGHT = "(window) => Math.ceil(window.document.querySelector('.key').getBoundingClientRect().bottom)"


def main() -> None:
    """Draw the picture of the timeline that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("timeline", type=Path, help="the timeline.jsonl of a run")
    timeline = parser.parse_args().timeline
    if browser.find() is None:
        sys.exit(f"error: {browser.MISSING}")
    try:
        draw(timeline)
    except (InferctlError, SubprocessError) as error:
        sys.exit(f"error: {error}")


def draw(timeline: Path, picture: Path = PICTURE) -> None:
    """Draw a run's report and write what a person sees of it first.

    Raises:
        UsageError: the timeline cannot be read.
        SubprocessError: the browser failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = folder / "report.html"
        html.write(timeline, page)
        (height,) = browser.look([(page, _WIDTH)], _HEIGHT, folder=folder).pages
        size = f"--window-size={_WIDTH},{height + _MARGIN}"
        browser.run(size, f"--screenshot={picture}", page.as_uri(), folder=folder)


if __name__ == "__main__":
    main()
