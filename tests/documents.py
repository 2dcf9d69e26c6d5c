"""Commands that documents tell people to type, read from the documents and run as they stand there."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from inferctl.checks.files import of_checkout
from inferctl.checks.programs import environment
from inferctl.paths import ROOT
from inferctl.process.command import run as output_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Whose commands are run, all of them but for those below.
DOCUMENTS = ("README.md", "docs/serve-a-model.md")
#: Commands that are not run, each with the reason.
LEFT_OUT = {
    "./just check": "it runs the tests that run these commands",
    "./just rollout-test-control": "tests/e2e/test_rollout.py runs the same for a shorter time",
    "./just cluster-down": "the tests need their cluster longer, and end with the command behind it",
    "helm uninstall my-model": "the tests look at the model afterwards, and then remove it so themselves",
    "inferctl rollout-test --release my-model": "./just rollout-test, which is run, is the same on another release",
    "inferctl drain-test --release my-model": "tests/e2e/test_scenarios.py runs the same drain on a release of its own",
}
#: How commands begin that touch neither a cluster nor the machine; others wait for the tests with a cluster.
WITHOUT_CLUSTER = ("inferctl values ", "./just doctor", "export PATH=")
#: What ./just makes in a checkout, which git does not track.
_MADE = (".tools", ".venv")


def commands(text: str) -> list[str]:
    """The command lines of a document's code blocks, in their order, then further recipes that its text names.

    A block with a language other than the shell's is no commands. Comments are left out.
    """
    blocks, named = [], []
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.strip() in {"", "sh", "bash"}:
            blocks += token.content.replace("\\\n", " ").splitlines()
        named += [inner.content for inner in token.children or () if inner.type == "code_inline"]
    lines = [line.partition("  #")[0].strip() for line in blocks]
    lines += [line for line in named if line.startswith("./just ")]
    return [line for line in dict.fromkeys(lines) if line and not line.startswith("#")]


def needs_cluster(command: str) -> bool:
    """Whether this command is for the tests that have a cluster."""
    return not command.startswith(WITHOUT_CLUSTER)


def lay_out(folder: Path, root: Path = ROOT) -> None:
    """Make an empty folder look like a fresh checkout: copies of what git tracks, and what ./just has made there.

    Files of a person's own are left out, so that no command can write to one; their names are printed.
    """
    tracked = set(output_of(["git", "ls-files", "-z"], cwd=root).split("\0"))
    for name in of_checkout(root):
        if name not in tracked:
            print(f"left out, because git does not track it: {name}")
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, folder / name)
    for name in _MADE:
        if (root / name).exists():
            (folder / name).symlink_to(root / name)


def run(
    lines: Sequence[str], folder: Path, variables: Mapping[str, str], *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run these lines in one shell, which ends at the first that fails, and show what it says.

    Args:
        lines: command lines.
        folder: an empty folder, which is made to look like a checkout; files that the commands write stay there.
        variables: of the environment, beside those that checks run in.
        seconds: how long all of it may take.
    """
    lay_out(folder)
    # What ./just does once it has made the environment that the tests run in.
    (folder / "just").write_text('#!/bin/sh\nexec just "$@"\n')
    (folder / "just").chmod(0o755)
    script = folder / "commands.sh"
    script.write_text("\n".join(["set -euo pipefail", *lines, ""]))
    done = subprocess.run(
        ["bash", "-v", script.name],
        cwd=folder,
        env={**environment(), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=seconds,
    )
    print(done.stdout)
    return done
