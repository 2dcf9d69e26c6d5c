"""Programs that are run to their end."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from inferctl.errors import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TAIL_LINES = 20


def run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    deadline: float = 600,
) -> str:
    """Run a program and return what it printed on standard output.

    Args:
        command: the program and its arguments; no shell is involved.
        stdin: text for its standard input; empty input if absent.
        env: variables added to the environment of this process.
        cwd: the folder to run in.
        deadline: seconds after which it is killed.

    Raises:
        CommandFailed: it is missing, exited with an error, or ran past the deadline.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=deadline,
        )
    except FileNotFoundError as error:
        raise CommandFailed(f"{words[0]} is not installed; run ./just tools to build what this project uses") from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{shlex.join(words)}: not done after {deadline:.0f} s, ended") from error
    if done.returncode:
        said = tail(done.stderr.strip() or done.stdout.strip())
        raise CommandFailed(f"{shlex.join(words)}: exit code {done.returncode}\n{said}")
    return done.stdout


def tail(text: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of a text, which is where programs say why they stopped."""
    return "\n".join(text.splitlines()[-lines:])
