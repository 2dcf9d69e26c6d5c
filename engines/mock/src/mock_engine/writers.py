"""How the events of a stream get to the client: as they are, or broken on purpose."""

from collections.abc import Callable
from typing import Protocol

from mock_engine.connection import Connection
from mock_engine.errors import error_object
from mock_engine.faults import ENDINGS, Plan
from mock_engine.shapes import DONE, error_event


class Writer(Protocol):
    """Takes a stream's events; a connection is one."""

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly."""

    def write_chunk(self, data: bytes) -> None:
        """Writes one event."""


class BrokenWriter:
    """Writes events to a connection with the faults of a plan.

    After the number of events that an ending names, nothing more is written; then `leave` is called with whether
    the response has to end cleanly (`cut`, `error`) or must not end by itself (`fin`, `rst`, `stall`).
    """

    def __init__(self, connection: Connection, plan: Plan, leave: Callable[[bool], None]) -> None:
        """Prepares the writer; of several endings the first in the order of the kinds counts."""
        self._connection = connection
        self._plan = plan
        self._leave = leave
        self._ending = next((plan[kind] for kind in ENDINGS if kind in plan), None)
        self._written = 0
        self._silent = False

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly."""
        return self._connection.congested

    def start(self) -> None:
        """Strikes a stream whose ending comes before its first event."""
        if self._ending is not None and self._ending.argument <= 0:
            self._end(self._ending.kind)

    def write_chunk(self, data: bytes) -> None:
        """Writes one event, or what the plan makes of it."""
        if self._silent:
            return
        self._write(data)
        self._written += 1
        if self._ending is not None and self._written >= self._ending.argument:
            self._end(self._ending.kind)

    def _write(self, data: bytes) -> None:
        if "comments" in self._plan:
            data = b": keep-alive\n\n" + data
        if "crlf" in self._plan:
            data = data.replace(b"\n", b"\r\n")
        if "bytes" in self._plan:
            for byte in data:
                self._connection.write_chunk(bytes((byte,)))
        else:
            self._connection.write_chunk(data)

    def _end(self, kind: str) -> None:
        if kind == "error":
            self._write(error_event(error_object(500, "Internal server error", "InternalServerError")))
            self._write(DONE)
        self._silent = True
        self._leave(kind in {"cut", "error"})
        if kind in {"fin", "rst"}:
            self._connection.break_off(reset=kind == "rst")
