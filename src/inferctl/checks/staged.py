"""Checks of what is staged: the content that a commit would have, whatever the working tree holds."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from inferctl.errors import UsageError
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How a hook that was made here is known.
_MARK = "Made by just hooks"
_HOOK = f"""\
#!/bin/sh
# {_MARK}: checks what is staged. Remove this file to be rid of it.
exec "$(git rev-parse --show-toplevel)/just" _staged
"""


@contextmanager
def content(root: Path) -> Iterator[Path]:
    """A folder with every file as the index of the checkout at ``root`` has it, for as long as the block runs.

    Every file, not the changed ones alone: linters read configuration and look at what lies beside a file.
    """
    with TemporaryDirectory(prefix="staged-") as folder:
        run(["git", "checkout-index", "--all", "--force", f"--prefix={folder}/"], cwd=root)
        yield Path(folder)


def changed(root: Path) -> list[str]:
    """Paths that the next commit adds or changes, relative to ``root``; a renamed file counts under its new name."""
    listed = run(
        ["git", "diff", "--cached", "--name-only", "--no-renames", "--diff-filter=AMT", "--no-ext-diff", "-z"],
        cwd=root,
    )
    return [name for name in listed.split("\0") if name]


def install(root: Path) -> Path:
    """Write the pre-commit hook to where git looks for it, and return its path.

    Raises:
        UsageError: there is another hook of that name, which is left as it is.
    """
    folder = run(["git", "rev-parse", "--git-path", "hooks"], cwd=root).rstrip("\n")
    hook = root / folder / "pre-commit"
    if hook.exists() and _MARK not in hook.read_text(errors="replace"):
        raise UsageError(f"{hook} is there already and was not made here; move it away, then run this again")
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(_HOOK)
    hook.chmod(0o755)
    return hook
