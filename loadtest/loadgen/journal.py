"""What is written while the run goes on: lines for people on standard output, JSON Lines for programs."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Self, TextIO


class JournalError(Exception):
    """A file that was asked for cannot be written; says which, why, and what to do."""


class Journal:
    """Writes human lines at once and events when told to flush."""

    def __init__(self, events_file: str, output: TextIO | None = None) -> None:
        """Opens the events file: a path, `-` for standard output, or empty for none.

        Raises:
            JournalError: the file cannot be opened for writing, or there is no standard output.
        """
        self._output = output or _standard_output()
        self._events: TextIO | None = None
        self._path = events_file
        self._pending: list[str] = []
        self._zero = time.time() - time.monotonic()
        if events_file == "-":
            self._events = self._output
        elif events_file:
            self._events = open_for_writing("EVENTS_FILE", events_file)

    def say(self, line: str) -> None:
        """Prints a line for people, after the events that came before it."""
        self.flush()
        self._write(self._output, line + "\n")

    def event(self, kind: str, at: float, number: int | None = None, **more: Any) -> None:  # noqa: ANN401 - JSON values
        """Keeps an event that happened at monotonic time `at` for the next flush."""
        if self._events is not None:
            head: dict[str, Any] = {"t": round(self.unix(at), 6), "kind": kind}
            if number is not None:
                head["id"] = number
            self._pending.append(json.dumps(head | more))

    def unix(self, monotonic: float) -> float:
        """Returns Unix seconds for a time on the monotonic clock."""
        return self._zero + monotonic

    def flush(self) -> None:
        """Writes the events kept so far."""
        if self._pending and self._events is not None:
            text = "\n".join(self._pending) + "\n"
            self._pending.clear()
            self._write(self._events, text)

    def __enter__(self) -> Self:
        """Is what `with` needs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the events file; what could not be written has been told by then."""
        if self._events is not None and self._events is not self._output:
            with contextlib.suppress(OSError):
                self._events.close()

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            if stream is not sys.stdout:
                raise JournalError(f"{self._path}: nobody reads it any more") from None
            # Whoever read our output has gone; the run still goes on to its exit code.
            _discard_output()
        except OSError as error:
            if stream is sys.stdout:
                _discard_output()  # what Python still has to write at its end would change the exit code
            where = "standard output" if stream is self._output else f"EVENTS_FILE is {self._path!r}"
            raise JournalError(f"{where}: {error.strerror}: make room, or write elsewhere") from error


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _standard_output() -> TextIO:
    if sys.stdout is None:  # the process was started without one
        raise JournalError("standard output is closed: leave it open, or write > /dev/null")
    return sys.stdout


def open_for_writing(variable: str, path: str) -> TextIO:
    """Opens a file that an environment variable names.

    Raises:
        JournalError: it cannot be opened.
    """
    try:
        return open(path, "w", encoding="utf-8")  # noqa: PTH123 - Path refuses no NUL byte
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise JournalError(
            f"{variable} is {path!r}: {why}: name a file in a folder that exists and can be written"
        ) from error


def write_summary(path: str, summary: Mapping[str, Any]) -> None:
    """Writes the summary as one line of JSON to a file.

    Raises:
        JournalError: it cannot be written.
    """
    try:
        with open_for_writing("SUMMARY_FILE", path) as stream:
            stream.write(json.dumps(summary) + "\n")
    except OSError as error:
        raise JournalError(f"SUMMARY_FILE is {path!r}: {error.strerror}: make room, or write elsewhere") from error
