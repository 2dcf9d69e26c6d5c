"""What a chat completion's event stream has said so far, and when."""

from json import JSONDecoder
from typing import Any

from loadgen.http1 import ProtocolError
from loadgen.sse import Event

_parse_prefix = JSONDecoder().raw_decode  # json.loads guesses encodings first; it costs as much as parsing
_CONTENT_KEYS = ("content", "reasoning", "reasoning_content", "tool_calls", "refusal")


class Answer:
    """Reads events; keeps what decides the outcome and the times that latency is made of.

    Attributes:
        events: data events seen, [DONE] included.
        content_chunks: events that carried content.
        arrivals: when each content chunk arrived, seconds on the monotonic clock.
        finish_reason: the last one given, or None.
        done_at: when [DONE] arrived, or None.
        error: the message of an error object inside the stream, or None.
        completion_tokens: from the usage chunk, or None where the server sends none.
        pod: the pod that says it answered, or "".
        lost_chunk: a gap in the engine's own chunk numbers ("expected 3, got 5"), or "".
    """

    __slots__ = (
        "_next_number",
        "arrivals",
        "completion_tokens",
        "done_at",
        "error",
        "events",
        "finish_reason",
        "lost_chunk",
        "pod",
    )

    def __init__(self) -> None:
        """Starts with nothing heard."""
        self.events = 0
        self.arrivals: list[float] = []
        self.finish_reason: str | None = None
        self.done_at: float | None = None
        self.error: str | None = None
        self.completion_tokens: int | None = None
        self.pod = ""
        self.lost_chunk = ""
        self._next_number = 0

    @property
    def content_chunks(self) -> int:
        """How many events carried content."""
        return len(self.arrivals)

    def hear(self, event: Event, now: float) -> None:
        """Takes one event that arrived at `now`.

        Raises:
            ProtocolError: the event is not a JSON object of the expected shape.
        """
        self.events += 1
        if event.data == b"[DONE]":
            self.done_at = now
            return
        message = _json_object(event.data)
        if message.get("error") is not None or event.name == b"error":
            self.error = _error_text(message)
            return
        try:
            self._chunk(message, now)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise ProtocolError(f"an event is not a completion chunk: {event.data[:60]!r}") from error

    def _chunk(self, message: dict[str, Any], now: float) -> None:
        number = message.get("x_seq")
        if number is not None:
            if number != self._next_number and not self.lost_chunk:
                self.lost_chunk = f"expected chunk {self._next_number}, got {number}"
            self._next_number = number + 1
            self.pod = message.get("x_pod") or self.pod
        for choice in message.get("choices") or ():
            delta = choice.get("delta") or {}
            if any(delta.get(key) for key in _CONTENT_KEYS):
                self.arrivals.append(now)
            reason = choice.get("finish_reason")
            if reason is not None:
                self.finish_reason = str(reason)
        usage = message.get("usage")
        if usage:
            tokens = usage.get("completion_tokens")
            if isinstance(tokens, int):
                self.completion_tokens = tokens


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode().strip()
        message, end = _parse_prefix(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"an event is not JSON: {data[:60]!r}") from error
    if end != len(text) or not isinstance(message, dict):
        raise ProtocolError(f"an event is not a JSON object: {data[:60]!r}")
    return message


def _error_text(message: dict[str, Any]) -> str:
    error = message.get("error", message)
    text = error.get("message") if isinstance(error, dict) else error
    return str(text or error)[:200]
