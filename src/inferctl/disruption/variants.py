"""Variants of the engine's image that some runs need, made in the registry itself."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from inferctl.cluster.target import Target

#: What `sh -c engine` does in an image with a shell: process 1 has no handler, so that SIGTERM is dropped, and passes
#: none on to the engine below it.
_SWALLOW = (
    "python3",
    "-c",
    "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'mock_engine', *sys.argv[1:]]))",
)


def labelled(target: Target, name: str, digest: str, label: str) -> str:
    """Push the same image with another label; returns its digest, which no node has yet."""
    return _mutate(target, name, digest, f"--label=inferctl.dev/run={label}")


def swallowing_sigterm(target: Target, name: str, digest: str) -> str:
    """Push an image whose engine runs below a process that swallows SIGTERM; returns its digest."""
    return _mutate(target, name, digest, f"--entrypoint={_comma_separated(_SWALLOW)}")


def _comma_separated(words: tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(words)
    return line.getvalue()


def _mutate(target: Target, name: str, digest: str, change: str) -> str:
    source = f"{target.push}/{name}"
    insecure = ["--insecure"] if target.plain_http else []
    said = run([tool("crane"), "mutate", *insecure, change, f"--tag={source}:variant", f"{source}@{digest}"])
    return said.strip().rpartition("@")[2]
