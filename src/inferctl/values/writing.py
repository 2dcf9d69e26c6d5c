"""Writes a file whole or not at all: what was there before is kept until the new content is safe."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from inferctl.errors import UsageError


def create(file: Path, text: str) -> None:
    """Write a file that is not there yet; a link that leads nowhere counts as there.

    Raises:
        UsageError: something has this name, or it cannot be written; then nothing is left of it.
    """
    try:
        _write_new(file, text)
    except FileExistsError as error:
        raise UsageError(f"{shown(file)} is there already; choose another name, or replace it with --force") from error
    except OSError as error:
        raise _refusal(file, error) from error


def replace(file: Path, text: str) -> None:
    """Write a file in the place of one that may be there; behind a link, what the link leads to.

    Raises:
        UsageError: it is no regular file, or cannot be written; then the old one is untouched.
    """
    try:
        target = Path(os.path.realpath(file))
        if target.exists() and not target.is_file():
            raise UsageError(f"{shown(file)} is no regular file; choose another name, or - for standard output")
        beside = target.with_name(f".inferctl-{secrets.token_hex(8)}")
        _write_new(beside, text)
        try:
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refusal(file, error) from error


def shown(file: Path) -> str:
    """A path for a message: on one line, and printable whatever bytes its name has."""
    name = str(file)
    return name if name.isprintable() else ascii(name)


def _write_new(file: Path, text: str) -> None:
    with file.open("x", encoding="utf-8", newline="") as stream:
        try:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                stream.close()  # would write what is left once more
            raise


def _refusal(file: Path, error: OSError) -> UsageError:
    return UsageError(f"{shown(file)}: {error.strerror}; choose a place that can be written")
