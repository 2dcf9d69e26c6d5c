"""The files of a checkout that checks look at: what git tracks, and what it would if it were added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.process.command import run

if TYPE_CHECKING:
    from pathlib import Path


def of_checkout(root: Path) -> list[str]:
    """Paths relative to ``root``, sorted; files that were deleted but not yet committed are left out.

    Raises:
        EnvironmentProblem: ``root`` is no git checkout.
    """
    try:
        listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root)
    except CommandFailed as error:
        raise EnvironmentProblem(f"{root} is no git checkout, so its files are not known; clone it again") from error
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})
