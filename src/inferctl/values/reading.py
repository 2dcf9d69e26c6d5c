"""Reads a values file once and within a limit, whatever kind of file it is and whoever writes it."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING

from inferctl.errors import UsageError
from inferctl.values.writing import shown

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes; a release is kept in a Secret, which holds no more: https://kubernetes.io/docs/concepts/configuration/secret/
LARGEST = 1024 * 1024
_CHUNK = 64 * 1024
_PATIENCE = 2000  # milliseconds until it is said what is waited for
_STANDARD_INPUT = 0


def name(file: Path) -> str:
    """What messages call a file."""
    return "standard input" if str(file) == "-" else shown(file)


def text(file: Path) -> str:
    """The content of a regular file, a pipe, or standard input, which ``-`` stands for.

    Raises:
        UsageError: it is of another kind, cannot be read, is larger than ``LARGEST``, or is not UTF-8.
    """
    called = name(file)
    try:
        content = _limited(_STANDARD_INPUT, called) if str(file) == "-" else _opened(file, called)
    except OSError as error:
        raise UsageError(f"{called}: {error.strerror}; name a values file that can be read") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        said = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
        raise UsageError(f"{called}: line {line}: {said}") from error


def _opened(file: Path, called: str) -> bytes:
    _refuse_kind(file.stat(), called)
    # Opening a pipe would wait for its writer where nobody could be told.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _limited(descriptor, called)
    finally:
        os.close(descriptor)


def _refuse_kind(status: os.stat_result, called: str) -> None:
    if stat.S_ISREG(status.st_mode):
        if status.st_size > LARGEST:
            raise _too_large(called)
    elif not stat.S_ISFIFO(status.st_mode) and not _is_standard_input(status):
        kind = "is a folder" if stat.S_ISDIR(status.st_mode) else "is no regular file"
        raise UsageError(f"{called}: {kind}; name a values file, or - for standard input")


def _is_standard_input(status: os.stat_result) -> bool:
    """Whether it is what the shell gave this process to read, as /dev/stdin is."""
    try:
        return os.path.samestat(status, os.fstat(_STANDARD_INPUT))
    except OSError:
        return False


def _limited(descriptor: int, called: str) -> bytes:
    content = bytearray()
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    told = False
    while len(content) <= LARGEST:
        if not ready.poll(None if told else _PATIENCE):
            print(f"waiting for {called}; Ctrl-C gives up", file=sys.stderr)
            told = True
            continue
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:  # another reader was faster
            continue
        if not chunk:
            return bytes(content)
        content += chunk
    raise _too_large(called)


def _too_large(called: str) -> UsageError:
    return UsageError(
        f"{called}: is larger than {LARGEST} bytes, more than a release may hold; "
        "put long texts into a ConfigMap and mount it with extraVolumes"
    )
