"""One recorded answer, cut everywhere: only the whole of it is ok, however the network delivered it."""

import asyncio
from collections.abc import Iterable

from loadgen.connection import Connection
from loadgen.exchange import Exchange
from loadgen.outcome import classify

STREAM = (
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant",'
    '"content":""},"logprobs":null,"finish_reason":null}]}\n\n'
    'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"zwölf 😀"},"finish_reason":null}]}\n\n'
    'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"length"}]}\n\n'
    'data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2}}\n\n'
    "data: [DONE]\n\n"
).encode()
HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
# One HTTP chunk per event, as uvicorn sends them.
EVENTS = [event + b"\n\n" for event in STREAM.split(b"\n\n")[:-1]]
RESPONSE = HEAD + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in EVENTS) + b"0\r\n\r\n"
DONE_BY = RESPONSE.index(b"data: [DONE]\n\n") + len(b"data: [DONE]\n\n")


class Wire(asyncio.Transport):
    """A transport that sends nothing anywhere."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Takes the request."""

    def abort(self) -> None:
        """Is closed."""


async def outcome(pieces: Iterable[bytes], ending: BaseException | None) -> tuple[str, int, int | None]:
    """Returns the outcome, the content chunks and the tokens of an answer in these pieces, then closed or reset."""
    connection = Connection()
    connection.connection_made(Wire())
    exchange = Exchange(connection, stall_seconds=60, first_token=lambda *_: None)
    exchange.start(b"")
    for piece in pieces:
        exchange.bytes_came(piece, 0.0)
    exchange.ended(ending)
    evidence = await exchange.over
    return classify(evidence).outcome, evidence.answer.content_chunks, evidence.answer.completion_tokens


def test_two_pieces() -> None:
    """Cut into two anywhere, the answer is ok, with its two chunks and two tokens."""

    async def every_cut() -> set[tuple[str, int, int | None]]:
        cuts = range(len(RESPONSE) + 1)
        return {await outcome((RESPONSE[:cut], RESPONSE[cut:]), None) for cut in cuts}

    assert asyncio.run(every_cut()) == {("ok", 2, 2)}


def test_single_bytes() -> None:
    """Byte by byte it is the same answer."""
    assert asyncio.run(outcome((bytes([byte]) for byte in RESPONSE), None)) == ("ok", 2, 2)


def test_cut_short() -> None:
    """Closed or reset anywhere before the end of [DONE], it is never ok, and says which of the two it was."""

    async def every_prefix(ending: BaseException | None) -> list[str]:
        return [(await outcome((RESPONSE[:length],), ending))[0] for length in range(1, len(RESPONSE))]

    for ending, name in ((None, "truncated"), (ConnectionResetError("reset"), "truncated_reset")):
        outcomes = asyncio.run(every_prefix(ending))
        assert set(outcomes[: DONE_BY - 1]) == {name}
        assert set(outcomes[DONE_BY - 1 :]) == {"ok"}
