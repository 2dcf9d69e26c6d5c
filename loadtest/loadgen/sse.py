"""Server-sent events from bytes, however the network cut them.

Follows the event stream format of the WHATWG HTML standard: lines end in CR, LF or CRLF, a colon begins a
comment, one space after the field's colon is dropped, several data lines are one event, an event that the
stream ends inside is not an event. Text stays bytes: a character split over two reads is whole again before
anybody decodes it.
"""

from typing import NamedTuple

MAX_EVENT_BYTES = 4 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """An event grew beyond MAX_EVENT_BYTES without an end."""


class Event(NamedTuple):
    """One dispatched event: its data lines joined by LF, and its `event:` name (empty for most)."""

    data: bytes
    name: bytes = b""


class EventParser:
    """Takes the stream piece by piece, gives back the events that each piece completed."""

    __slots__ = ("_data", "_data_bytes", "_name", "_skip_newline", "_started", "_tail")

    def __init__(self) -> None:
        """Starts at the first byte of a stream."""
        self._tail = b""
        self._skip_newline = False
        self._started = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""

    def feed(self, piece: bytes) -> list[Event]:
        """Returns the events that `piece` completes, in order.

        Raises:
            EventTooLongError: an event is longer than MAX_EVENT_BYTES.
        """
        text = self._tail + piece if self._tail else piece
        if not self._started:
            if len(text) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(text):
                self._tail = text
                return []
            self._started = True
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if self._skip_newline and text:
            self._skip_newline = False
            text = text.removeprefix(b"\n")
        if not text:
            self._tail = b""
            return []
        lines = text.splitlines()
        if text.endswith((b"\r", b"\n")):
            self._tail = b""
            self._skip_newline = text.endswith(b"\r")  # the LF of a CRLF may come with the next piece
        else:
            self._tail = lines.pop()
        if self._data_bytes + len(self._tail) > MAX_EVENT_BYTES:
            raise EventTooLongError(f"an event is longer than {MAX_EVENT_BYTES} bytes")
        events: list[Event] = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                events.append(Event(b"\n".join(self._data), self._name))
                self._data, self._data_bytes, self._name = [], 0, b""
            else:
                self._name = b""
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value)
        elif name == b"event":
            self._name = value.removeprefix(b" ")
