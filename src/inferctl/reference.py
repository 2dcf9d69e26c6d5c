"""Writes docs/commands.md: the recipes and every command's help, as they are now.

Run it as ``python -m inferctl.reference``; a test compares the file with what this prints.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol

from typer.core import TyperGroup
from typer.main import get_command

from inferctl.application import app
from inferctl.checks.programs import environment
from inferctl.paths import ROOT
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Iterator
PAGE = ROOT / "docs" / "commands.md"
_WIDTH = 100
_HEAD = """\
# Commands

Made by `./just docs` from the recipes and from `inferctl --help`; do not edit it by hand.

`./just RECIPE` makes what is missing first. `inferctl` is on the PATH of the recipes: in a shell of your own it is
`.venv/bin/inferctl`. `inferctl --version` says which version it is.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done; a test: proven; a control: loss was found, as it must be |
| 1 | a test: requests were lost; a check: it failed; `status`: the cluster is not up |
| 2 | a test: not measured; anything else: something must be put right first, and the message says what |
| 130 | interrupted; what was half done has been undone, or the message says what is left |

## Environment

| variable | meaning |
| --- | --- |
| INFERCTL_BACKEND | `embedded`, `kind` or `existing`; by default what fits the machine |
| INFERCTL_CLUSTER_NAME | the cluster's name, or an existing cluster's context |
| INFERCTL_STATE | the folder of embedded clusters, and of locks; by default `/var/lib/inferctl` |
| INFERCTL_REGISTRY, INFERCTL_REGISTRY_PULL | an existing cluster's registry, as this machine and as nodes reach it |
| INFERCTL_REGISTRY_PLAIN_HTTP | `1` if that registry speaks no TLS |
| INFERCTL_DEBUG | anything: errors come with a traceback |
| NO_COLOR | anything: no colours; without a terminal there are none anyway |

## Shell completion

`inferctl --install-completion` adds completion to the shell that you use; `inferctl --show-completion` prints it.
To remove what it added, delete:

- bash: `~/.bash_completions/inferctl.sh`, and the line of `~/.bashrc` that names it
- zsh: `~/.zfunc/_inferctl`; the lines with `compinit` and `zstyle` in `~/.zshrc` may serve other programs too
- fish: `~/.config/fish/completions/inferctl.fish`
"""


class Helpful(Protocol):
    """What a command knows when it runs."""

    def get_help(self) -> str:
        """The text of ``--help``."""


class Command(Protocol):
    """A command or a group of them, as typer makes it."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        *,
        resilient_parsing: bool,
        terminal_width: int,
        max_content_width: int,
    ) -> Helpful:
        """Begin a run of it under this name, without doing anything."""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Recipes\n", _block(recipes()), "## inferctl\n"]
    for name, command in _commands("inferctl", get_command(app)):
        parts += [f"### {name}\n", _block(_help(name, command))]
    return "\n".join(parts)


def recipes() -> str:
    """What ``just --list`` prints."""
    just = shutil.which("just", path=environment()["PATH"]) or "just"
    return run([just, "--list", "--unsorted", "--color=never"], cwd=ROOT)


def _commands(name: str, command: Command) -> Iterator[tuple[str, Command]]:
    yield name, command
    if isinstance(command, TyperGroup):
        for word, inner in command.commands.items():
            yield from _commands(f"{name} {word}", inner)


def _help(name: str, command: Command) -> str:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=_WIDTH, max_content_width=_WIDTH)
    return context.get_help()


def _block(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(["```text", *lines, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page())
