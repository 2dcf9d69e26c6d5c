"""Every way a stream can end, played by an engine on a real connection, and the one outcome that it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.loadtest.conftest import Load, Reply, Script


async def whole(reply: Reply) -> None:
    """Answers as it should."""
    await reply.whole()


async def tool_call(reply: Reply) -> None:
    """Answers with a tool call instead of text."""
    await reply.head()
    call = b'{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"tool_calls"}]}'
    await reply.event(call)
    await reply.done()


async def one_token_after_comments(reply: Reply) -> None:
    """Begins with comments and a role chunk, as proxies and engines do."""
    await reply.head()
    await reply.chunk(b": a\n")
    await reply.chunk(b": b\r\n\n")
    await reply.token(content="")
    await reply.token("stop")
    await reply.done()


async def awkward_framing(reply: Reply) -> None:
    """Sends CRLF, a comment, no space after the colon, and a character cut by a chunk's end, byte by byte."""
    chunk = '{"choices":[{"delta":{"content":"é😀"},"finish_reason":"stop"}]}'
    await reply.head()
    for byte in f": x\r\n\r\ndata:{chunk}\r\n\r\ndata:[DONE]\r\n\r\n".encode():
        await reply.chunk(bytes([byte]))
        await asyncio.sleep(0)
    await reply.raw(b"0\r\n\r\n")


async def not_chunked(reply: Reply) -> None:
    """Ends the body by closing the connection, as HTTP/1.0 servers do."""
    await reply.raw(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
    await reply.raw(b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    reply.close()


async def aborted(reply: Reply) -> None:
    """Ends as older vLLM does at SIGTERM."""
    await reply.head()
    await reply.token()
    await reply.token("abort", content="")
    await reply.done()


async def aborted_without_done(reply: Reply) -> None:
    """Says abort and goes."""
    await reply.head()
    await reply.token("abort")
    reply.close()


async def error_then_done(reply: Reply) -> None:
    """Ends as vLLM does at SIGTERM: an error object, then [DONE]."""
    await reply.head()
    await reply.token()
    await reply.event(b'{"error":{"message":"EngineCore died","type":"InternalServerError","code":500}}')
    await reply.done()


async def error_after_the_reason(reply: Reply) -> None:
    """Gives a finish_reason, and then an error all the same."""
    await reply.head()
    await reply.token("length")
    await reply.event(b'{"error":"late"}')
    await reply.done()


async def error_by_name(reply: Reply) -> None:
    """Marks the error by the event's name alone."""
    await reply.head()
    await reply.chunk(b'event: error\ndata: {"x":1}\n\n')
    await reply.done()


async def done_alone(reply: Reply) -> None:
    """Says [DONE] without a finish_reason, as vLLM does when its drain time is over."""
    await reply.head()
    await reply.token()
    await reply.done()


async def odd_reason(reply: Reply) -> None:
    """Gives a reason that is no success."""
    await reply.head()
    await reply.token("content-filter")
    await reply.done()


async def no_content(reply: Reply) -> None:
    """Ends well without having said anything."""
    await reply.head()
    await reply.token("stop", content="")
    await reply.done()


async def no_events(reply: Reply) -> None:
    """Sends an empty body."""
    await reply.head()
    await reply.raw(b"0\r\n\r\n")


async def ended_without_done(reply: Reply) -> None:
    """Ends the body in order, but never says [DONE]."""
    await reply.head()
    await reply.token("length")
    await reply.raw(b"0\r\n\r\n")


async def closed(reply: Reply) -> None:
    """Closes the connection inside the body."""
    await reply.head()
    await reply.token()
    reply.close()


async def closed_inside_an_event(reply: Reply) -> None:
    """Closes the connection inside an event."""
    await reply.head()
    await reply.raw(b"10\r\ndata: {")
    reply.close()


async def closed_after_status(reply: Reply) -> None:
    """Closes the connection inside the head."""
    await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-ty")
    reply.close()


async def reset(reply: Reply) -> None:
    """Resets the connection inside the body, once the client has read what came before."""
    await reply.head()
    await reply.token()
    await reply.heard()  # a reset throws away what the client has not read yet
    reply.reset()


async def stalled(reply: Reply) -> None:
    """Goes silent in mid-stream without closing."""
    await reply.head()
    await reply.token()
    await reply.silence()


async def stalled_with_comments(reply: Reply) -> None:
    """Goes silent behind a proxy that keeps the connection busy with comments."""
    await reply.head()
    await reply.token()
    while True:
        await reply.chunk(b":\n\n")
        await asyncio.sleep(0.02)


async def never_answered(reply: Reply) -> None:
    """Takes the request and says nothing."""
    await reply.silence()


async def refused_in_drain(reply: Reply) -> None:
    """Refuses as vLLM does in its drain."""
    body = b'{"error":{"message":"cannot schedule new futures after shutdown","code":500}}'
    await reply.raw(b"HTTP/1.1 500 X\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))


async def overloaded_proxy(reply: Reply) -> None:
    """Answers for an engine that is not there."""
    await reply.head(503, "text/html")
    await reply.chunk(b"<p>no engine</p>")
    await reply.raw(b"0\r\n\r\n")


async def cut_error(reply: Reply) -> None:
    """Sends an error status and closes before the body's end."""
    await reply.raw(b"HTTP/1.1 502 X\r\ncontent-length: 100\r\n\r\nhalf")
    reply.close()


async def closed_unanswered(reply: Reply) -> None:
    """Closes a new connection without a byte."""
    reply.close()


async def reset_unanswered(reply: Reply) -> None:
    """Resets a new connection without a byte."""
    reply.reset()


async def not_http(reply: Reply) -> None:
    """Speaks another protocol."""
    await reply.raw(b"220 mail.example ESMTP\r\n")


async def not_json(reply: Reply) -> None:
    """Sends an event that is not JSON."""
    await reply.head()
    await reply.event(b'{"choices": [')
    await reply.done()


async def not_a_chunk(reply: Reply) -> None:
    """Sends JSON of another shape."""
    await reply.head()
    await reply.event(b'{"choices": [1]}')
    await reply.done()


async def not_a_stream(reply: Reply) -> None:
    """Answers whole, though a stream was asked for."""
    await reply.head(content_type="application/json")
    await reply.chunk(b"{}")
    await reply.raw(b"0\r\n\r\n")


async def lost_chunk(reply: Reply) -> None:
    """Loses one numbered chunk on the way."""
    await reply.head()
    await reply.numbered(0, "pod-a")
    await reply.numbered(2, "pod-a", "length")
    await reply.done()


CASES: list[tuple[str, Script]] = [
    ("ok", whole),
    ("ok", tool_call),
    ("ok", one_token_after_comments),
    ("ok", awkward_framing),
    ("ok", not_chunked),
    ("aborted", aborted),
    ("aborted", aborted_without_done),
    ("error_event", error_then_done),
    ("error_event", error_after_the_reason),
    ("error_event", error_by_name),
    ("no_finish_reason", done_alone),
    ("finish_content_filter", odd_reason),
    ("empty", no_content),
    ("empty", no_events),
    ("truncated", ended_without_done),
    ("truncated", closed),
    ("truncated", closed_inside_an_event),
    ("truncated", closed_after_status),
    ("truncated_reset", reset),
    ("stall", stalled),
    ("stall", stalled_with_comments),
    ("stall", never_answered),
    ("http_500", refused_in_drain),
    ("http_503", overloaded_proxy),
    ("http_502", cut_error),
    ("RemoteDisconnected", closed_unanswered),
    ("ConnectionResetError", reset_unanswered),
    ("ProtocolError", not_http),
    ("ProtocolError", not_json),
    ("ProtocolError", not_a_chunk),
    ("ProtocolError", not_a_stream),
    ("lost_chunk", lost_chunk),
]


@pytest.mark.parametrize("connection", ["new", "keepalive"])
@pytest.mark.parametrize(("outcome", "script"), CASES, ids=[script.__name__ for _, script in CASES])
def test_outcome(load: Load, outcome: str, script: Script, connection: str) -> None:
    """The stream is counted as exactly this outcome, whichever way connections are used."""
    run = load(script, requests=1, CONNECTION=connection, STALL_SECONDS="0.2")
    assert run.counts == {outcome: 1}
    assert run.summary.exit_code() == (0 if outcome == "ok" else 1)


def test_only_ok_is_measured(load: Load) -> None:
    """Latencies are those of ok requests and of no others."""

    async def mixed(reply: Reply) -> None:
        await (whole, aborted, closed)[reply.number % 3](reply)

    run = load(mixed, requests=9)
    assert run.counts == {"ok": 3, "aborted": 3, "truncated": 3}
    assert {run.summary.tally.latencies[name].count for name in ("ttft", "e2e", "tpot")} == {3}


def test_error_text(load: Load) -> None:
    """The end event tells what the engine said about its error."""
    assert "EngineCore died" in load(error_then_done, requests=1).ends()[0]["detail"]
    assert "after shutdown" in load(refused_in_drain, requests=1).ends()[0]["detail"]


def test_last_bytes_of_a_lost_answer_are_kept(load: Load) -> None:
    """The end event of an answer that was not ok has the raw end of what came; that of a whole one has nothing."""
    cut = load(closed, requests=1).ends()[0]
    assert cut["last_bytes"].endswith("\r\n")
    assert "data: {" in cut["last_bytes"]
    assert len(cut["last_bytes"]) <= 160
    assert load(never_answered, requests=1, STALL_SECONDS="0.1").ends()[0]["last_bytes"] == ""
    assert "last_bytes" not in load(whole, requests=1).ends()[0]


def test_nobody_listens(load: Load, closed_port: int) -> None:
    """A refused connection is counted by the exception's name."""
    run = load(whole, TARGET=f"http://127.0.0.1:{closed_port}", DURATION_SECONDS="0.1")
    assert set(run.counts) == {"ConnectionRefusedError"}


def test_unknown_name(load: Load) -> None:
    """A name that does not resolve is counted, not a crash."""
    run = load(whole, TARGET="http://no-such-name.invalid:80", DURATION_SECONDS="0.1")
    assert set(run.counts) == {"gaierror"}
