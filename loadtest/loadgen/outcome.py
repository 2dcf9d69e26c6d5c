"""The one place that decides how a request ended.

The decision reads evidence about bytes, not the name of whatever was raised: the same ConnectionResetError
is a cut answer when a byte of it had come, a stale connection when none had and it had been used before,
and a failed request otherwise.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from loadgen.answer import Answer

OK = "ok"
UNFINISHED = "unfinished"
STALE_KEEPALIVE = "stale_keepalive"
_GOOD_REASONS = frozenset({"stop", "length", "tool_calls"})
_HTTP_OK = 200


class Ending(Enum):
    """What stopped the exchange, as seen on the connection."""

    ORDERLY = "the response ended as its framing announced"
    CLOSED = "the connection was closed"
    RESET = "the connection was reset"
    SILENT = "nothing came for too long"
    MALFORMED = "the bytes made no sense"
    NOT_CONNECTED = "no connection"
    RUN_OVER = "the run was over"


@dataclass(slots=True)
class Evidence:
    """Everything the decision may look at.

    Attributes:
        ending: what stopped it.
        reused: the connection had carried a request before.
        bytes_seen: bytes of this response that came.
        body_bytes: bytes of its body among them.
        status: HTTP status, 0 when no complete head came.
        event_stream: the response's content type is text/event-stream.
        answer: what the events said.
        error: the exception behind the ending, where there was one.
    """

    ending: Ending
    reused: bool = False
    bytes_seen: int = 0
    body_bytes: int = 0
    status: int = 0
    event_stream: bool = False
    answer: Answer = field(default_factory=Answer)
    error: BaseException | None = None


class Verdict(NamedTuple):
    """An outcome and, for people, what it was decided from."""

    outcome: str
    detail: str


def classify(evidence: Evidence) -> Verdict:
    """Returns exactly one outcome for the evidence."""
    if evidence.status and evidence.status != _HTTP_OK:
        return Verdict(f"http_{evidence.status}", "")
    answer = evidence.answer
    if answer.error is not None:
        return Verdict("error_event", answer.error)
    if answer.finish_reason == "abort":
        return Verdict("aborted", "finish_reason abort")
    return _said_done(answer) if answer.done_at is not None else _never_said_done(evidence)


def _said_done(answer: Answer) -> Verdict:
    """[DONE] came; that alone proves nothing."""
    reason = answer.finish_reason
    if reason is None:
        return Verdict("no_finish_reason", f"[DONE] after {answer.content_chunks} content chunks")
    if reason not in _GOOD_REASONS:
        word = re.sub(r"[^A-Za-z0-9_]", "_", reason)[:32] or "empty"
        return Verdict(f"finish_{word}", f"finish_reason {reason!r}")
    if answer.lost_chunk:
        return Verdict("lost_chunk", answer.lost_chunk)
    if not answer.content_chunks:
        return Verdict("empty", "finish_reason and [DONE], but no content")
    return Verdict(OK, "")


def _never_said_done(evidence: Evidence) -> Verdict:
    """What stopped the exchange decides, and whether any byte of the response had come by then."""
    heard = f"after {evidence.answer.content_chunks} content chunks"
    match evidence.ending:
        case Ending.RUN_OVER:
            verdict = Verdict(UNFINISHED, f"the run was over {heard}")
        case Ending.MALFORMED:
            verdict = Verdict("ProtocolError", str(evidence.error))
        case Ending.NOT_CONNECTED:
            verdict = Verdict(type(evidence.error).__name__, str(evidence.error))
        case Ending.SILENT:
            verdict = Verdict("stall", f"{evidence.error} {heard}")
        case Ending.ORDERLY:
            verdict = _ended_early(evidence)
        case _ if not evidence.bytes_seen:
            verdict = _no_answer(evidence)
        case Ending.RESET:
            verdict = Verdict("truncated_reset", f"connection reset {heard}")
        case Ending.CLOSED:
            verdict = Verdict("truncated", f"connection closed {heard}, before the body's end")
    return verdict


def _ended_early(evidence: Evidence) -> Verdict:
    """A complete 200 response whose stream was not complete."""
    if evidence.body_bytes and not evidence.event_stream:
        return Verdict("ProtocolError", "HTTP 200, but not a text/event-stream")
    if not evidence.answer.events:
        return Verdict("empty", "HTTP 200 and an orderly end, but no event")
    return Verdict("truncated", f"orderly end after {evidence.answer.content_chunks} content chunks, no [DONE]")


def _no_answer(evidence: Evidence) -> Verdict:
    """The request was sent, and not one byte came back."""
    if evidence.reused:
        return Verdict(STALE_KEEPALIVE, f"reused connection: {evidence.ending.value} before the first byte")
    if evidence.ending is Ending.RESET:
        return Verdict(type(evidence.error).__name__, str(evidence.error))
    return Verdict("RemoteDisconnected", "new connection closed before the first byte")
