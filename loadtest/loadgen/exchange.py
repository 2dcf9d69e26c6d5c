"""One request on one connection, from its first byte out to the end of its answer."""

import asyncio
import time
from collections.abc import Callable

from loadgen.answer import Answer
from loadgen.connection import Connection
from loadgen.http1 import ProtocolError, ResponseParser
from loadgen.outcome import Ending, Evidence
from loadgen.sse import EventParser, EventTooLongError

_HTTP_OK = 200
_SERVER_ERROR = 500
_AFTER_DONE_SECONDS = 1.0  # how long the body's end may follow [DONE]; the outcome stands by then
_ERROR_BODY_BYTES = 2000
_LAST_BYTES = 160  # about one event of vLLM, its end included


class Exchange:
    """Listens to a connection until the answer is over, whichever way; then `over` holds the evidence.

    Attributes:
        sent_at: when the request was handed to the socket, monotonic seconds.
        answer: what the events said.
        response: the HTTP side.
        error_body: the beginning of the body of a response that is not 200.
        last_bytes: the end of what came, as it came, framing included; at most 160 bytes.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        stall_seconds: float,
        first_token: Callable[["Exchange", float], None],
    ) -> None:
        """Takes the connection over; `first_token` is called with the time of the first content."""
        self.answer = Answer()
        self.response = ResponseParser()
        self.sent_at = 0.0
        self.error_body = b""
        self.last_bytes = b""
        self.over: asyncio.Future[Evidence] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._reused = connection.requests > 0
        self._events = EventParser()
        self._first_token = first_token
        self._stall_seconds = stall_seconds
        self._progress_at = 0.0
        self._bytes = 0
        self._body_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, request: bytes) -> None:
        """Sends the request."""
        self._connection.listener = self
        self.sent_at = self._progress_at = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(self._stall_seconds, self._look_for_progress)
        self._connection.send(request)
        if self._connection.closed:  # closed between two requests, and not yet known
            self.ended(None)

    @property
    def pod(self) -> str:
        """The pod that says it answers, "" where the engine says nothing."""
        return self.answer.pod or self.response.headers.get("x-served-by", "")

    @property
    def reusable(self) -> bool:
        """The connection may carry another request; not after a server error, which the next would meet too."""
        return self.response.reusable and self.response.status < _SERVER_ERROR

    def bytes_came(self, data: bytes, now: float) -> None:
        """Takes bytes from the connection."""
        if self.over.done():
            return
        self._bytes += len(data)
        self.last_bytes = (self.last_bytes + data[-_LAST_BYTES:])[-_LAST_BYTES:]
        try:
            for piece in self.response.feed(data):
                self._body(piece, now)
        except (ProtocolError, EventTooLongError) as error:
            self._end(Ending.MALFORMED, error)
            return
        if self.response.complete:
            self._end(Ending.ORDERLY)

    def ended(self, error: BaseException | None) -> None:
        """Hears that nothing more will come."""
        if error is not None:
            self._end(Ending.RESET, error)
        elif self.response.end_of_input():
            self._end(Ending.ORDERLY)
        else:
            self._end(Ending.CLOSED)

    def give_up(self) -> Evidence:
        """Ends an exchange that the run cannot wait for any longer; returns what was seen of it."""
        if self.over.done() and not self.over.cancelled():
            return self.over.result()
        if self._timer is not None:
            self._timer.cancel()
        return self._evidence(Ending.RUN_OVER)

    def _body(self, piece: bytes, now: float) -> None:
        self._body_bytes += len(piece)
        if self.response.status != _HTTP_OK:
            self.error_body = (self.error_body + piece)[:_ERROR_BODY_BYTES]
            return
        answer = self.answer
        if answer.done_at is not None:
            return
        for event in self._events.feed(piece):
            self._progress_at = now
            had_content = bool(answer.arrivals)
            answer.hear(event, now)
            if not had_content and answer.arrivals:
                self._first_token(self, now)
            if answer.done_at is not None:
                self._await_body_end()
                break

    def _await_body_end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_AFTER_DONE_SECONDS, self._end, Ending.ORDERLY)

    def _look_for_progress(self) -> None:
        left = self._progress_at + self._stall_seconds - time.monotonic()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._look_for_progress)
        else:
            self._end(Ending.SILENT, TimeoutError(f"no event for {self._stall_seconds:g} s"))

    def _end(self, ending: Ending, error: BaseException | None = None) -> None:
        if self.over.done():
            return
        if self._timer is not None:
            self._timer.cancel()
        self.over.set_result(self._evidence(ending, error))

    def _evidence(self, ending: Ending, error: BaseException | None = None) -> Evidence:
        content_type = self.response.headers.get("content-type", "")
        return Evidence(
            ending=ending,
            reused=self._reused,
            bytes_seen=self._bytes,
            body_bytes=self._body_bytes,
            status=self.response.status,
            event_stream=content_type.lower().startswith("text/event-stream"),
            answer=self.answer,
            error=error,
        )
