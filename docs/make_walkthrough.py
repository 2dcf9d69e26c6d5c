"""Writes docs/walkthrough.md from its template: every command in it is run, and its output put below it.

A command that fails ends everything, and the page stays as it was.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).resolve().parent
TEMPLATE, PAGE = FOLDER / "walkthrough.template.md", FOLDER / "walkthrough.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = "$ "
# A terminal's screen: what comes before and after is what a person would look at.
_KEPT_LINES = 16
_SECONDS = 3600


def main() -> None:
    """Run all commands of the template, in order, in the root of the checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    PAGE.write_text(_BLOCK.sub(_with_output, TEMPLATE.read_text()))


def without_output(page: str) -> str:
    """The template that a page was made from."""
    return _BLOCK.sub(lambda block: _console(line for line in _lines(block) if line.startswith(_COMMAND)), page)


def _with_output(block: re.Match[str]) -> str:
    lines = []
    for line in _lines(block):
        lines += [line, *_run(line.removeprefix(_COMMAND))]
    return _console(lines)


def _lines(block: re.Match[str]) -> list[str]:
    return block[1].splitlines()


def _console(lines: Iterable[str]) -> str:
    return "\n".join(["```console", *lines, "```"])


def _run(command: str) -> list[str]:
    print(f"$ {command}", file=sys.stderr, flush=True)
    # Words without quotes or variables: what stands in the page is what runs.
    ended = subprocess.run(
        command.split(),
        cwd=FOLDER.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{command}: exit code {ended.returncode}\n{ended.stdout}")
    lines = [line.rstrip() for line in ended.stdout.replace(str(FOLDER.parent), "…").splitlines()]
    left_out = len(lines) - 2 * _KEPT_LINES
    if left_out > 1:
        lines[_KEPT_LINES:-_KEPT_LINES] = [f"[{left_out} lines left out]"]
    return lines


if __name__ == "__main__":
    main()
