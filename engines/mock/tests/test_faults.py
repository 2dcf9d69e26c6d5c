"""Faults: what each does to the bytes of an answer, and that none strikes unasked."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from mock_engine import faults

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from engines.mock.tests.conftest import Engine

    Unchunk = Callable[[bytes], tuple[list[bytes], bytes]]

DONE = b"data: [DONE]\n\n"
LAST = b"0\r\n\r\n"
TOKENS = [b'"role":"assistant"', b'"content":" ', b'"content":" ', b'"finish_reason":"length"']
_OWN = re.compile(rb'^((?:: keep-alive\r?\n\r?\n)?data: {"id":"chatcmpl-)[0-9a-f]{16}(",.*?,"created":)[0-9]{10},')


def common(events: list[bytes]) -> list[bytes]:
    """Returns events without what is each stream's own: the digits of its id, and when it was created."""
    return [_OWN.sub(rb"\1\2,", event) for event in events]


def until_silent(connection: socket.socket) -> bytes:
    """Reads until nothing comes for 0.3 s; the connection must still be open then."""
    connection.settimeout(0.3)
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except TimeoutError:
        return got
    pytest.fail(f"the connection was closed after {got!r}")


def test_no_fault(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """Without a fault a stream is whole, and the same in every engine."""
    head, body = untouched.chat()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    chunks, rest = unchunk(body)
    assert (common(chunks), rest) == (common(whole), LAST)
    *events, done = chunks
    for event, part in zip(events, TOKENS, strict=True):
        assert part in event
        assert event.startswith(b"data: {")
        assert event.endswith(b"}\n\n")
    assert done == DONE


def test_cut(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`cut` ends the response as if it were complete, after as many events as it says."""
    chunks, rest = unchunk(untouched.chat("cut=2")[1])
    assert (common(chunks), rest) == (common(whole[:2]), LAST)


def test_cut_before_the_first_event(breakable: Engine) -> None:
    """`cut=0` is an empty response."""
    head, body = breakable.chat("cut=0")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == LAST


def test_fin(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`fin` closes the connection in mid-response: no last chunk."""
    chunks, rest = unchunk(untouched.chat("fin=2")[1])
    assert (common(chunks), rest) == (common(whole[:2]), b"")


def test_rst(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`rst` resets the connection, after the events that it lets through."""
    with pytest.raises(ConnectionResetError) as reset:
        untouched.chat("rst=2")
    (got,) = reset.value.args
    chunks, rest = unchunk(got.partition(b"\r\n\r\n")[2])
    assert (common(chunks), rest) == (common(whole[:2]), b"")


def test_error(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`error` sends an error object as an event, then [DONE]."""
    chunks, rest = unchunk(untouched.chat("error=2")[1])
    assert common(chunks[:-2]) == common(whole[:2])
    error = {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}
    assert chunks[-2] == b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
    assert (chunks[-1], rest) == (DONE, LAST)


def test_stall(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`stall` says nothing more on an open connection; the request goes on running until its client leaves."""
    with untouched.connect() as connection:
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3, "stream": True}
        data = json.dumps(body).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
        kind = "Content-Type: application/json\r\nx-mock-fault: stall=2\r\n\r\n"
        connection.sendall((head + kind).encode() + data)
        untouched.wait_for(lambda: untouched.sample("vllm:time_to_first_token_seconds_count") == 1)
        got = until_silent(connection)
        assert untouched.sample("vllm:num_requests_running") == 1
    chunks, rest = unchunk(got.partition(b"\r\n\r\n")[2])
    assert (common(chunks), rest) == (common(whole[:2]), b"")
    untouched.wait_for(lambda: untouched.sample("vllm:num_requests_running") == 0)


def test_crlf(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`crlf` ends every line of the stream with CRLF."""
    chunks, rest = unchunk(untouched.chat("crlf")[1])
    expected = [event.replace(b"\n", b"\r\n") for event in common(whole)]
    assert (common(chunks), rest) == (expected, LAST)


def test_comments(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`comments` puts vLLM's keep-alive comment before each event."""
    chunks, rest = unchunk(untouched.chat("comments")[1])
    expected = [b": keep-alive\n\n" + event for event in common(whole)]
    assert (common(chunks), rest) == (expected, LAST)


def test_bytes(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """`bytes` sends the same bytes one at a time."""
    chunks, rest = unchunk(untouched.chat("bytes")[1])
    assert {len(chunk) for chunk in chunks} == {1}
    events = re.findall(rb".*?\n\n", b"".join(chunks), re.DOTALL)
    assert b"".join(events) == b"".join(chunks)
    assert (common(events), rest) == (common(whole), LAST)


def test_faults_combine(untouched: Engine, unchunk: Unchunk, whole: list[bytes]) -> None:
    """Several faults strike one stream."""
    chunks, rest = unchunk(untouched.chat("crlf, comments, fin=1")[1])
    expected = [(b": keep-alive\n\n" + event).replace(b"\n", b"\r\n") for event in common(whole[:1])]
    assert (common(chunks), rest) == (expected, b"")


@pytest.mark.parametrize("stream", [False, True])
def test_status(breakable: Engine, *, stream: bool) -> None:
    """`status` answers with an error object instead."""
    head, body = breakable.chat("status=503", stream=stream)
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    error = {"message": "Service Unavailable", "type": "Service Unavailable", "param": None, "code": 503}
    assert json.loads(body) == {"error": error}


def test_hang(breakable: Engine) -> None:
    """`hang` sends nothing, not even a status, for as long as it says."""
    begun = time.monotonic()
    head, _ = breakable.chat("hang=0.3")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert time.monotonic() - begun >= 0.3


def test_bad_header(breakable: Engine) -> None:
    """A header that cannot be read is a 400 that says what to write."""
    head, body = breakable.chat("nonsense=1")
    assert head.startswith(b"HTTP/1.1 400 ")
    message = json.loads(body)["error"]["message"]
    assert message.startswith("fault 'nonsense' does not exist; write one of refuse, status, hang")


@pytest.mark.parametrize("fault", ["cut=2", "error=2@0.5", "stall", "crlf", "comments", "bytes"])
def test_whole_answer_refuses_faults_of_streams(breakable: Engine, fault: str) -> None:
    """By header, a fault that only a stream can have is a 400 on any other request, whatever its rate."""
    head, body = breakable.chat(f"rst@0,{fault}", stream=False)
    assert head.startswith(b"HTTP/1.1 400 ")
    error = json.loads(body)["error"]
    assert error["message"] == (
        f"fault '{faults.parse(fault).popitem()[1]}' strikes streams only; "
        "ask for a stream, or write fin, rst, status or hang"
    )
    assert error["param"] == "x-mock-fault"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["refuse=1", "health=1", "exit=1"])
def test_request_refuses_faults_of_the_engine(breakable: Engine, fault: str, *, stream: bool) -> None:
    """By header, a fault of the whole engine is a 400 that says where to write it."""
    head, body = breakable.chat(fault, stream=stream)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["message"] == (
        f"fault '{fault}' strikes the engine, not a request; write it to FAULTS or PUT it to /mock/faults"
    )
    assert breakable.process.poll() is None


def test_plan_of_streams_leaves_whole_answers_alone(
    start: Callable[..., Engine], unchunk: Unchunk, whole: list[bytes]
) -> None:
    """In the engine's plan, a fault of streams strikes those and lets what is not streamed pass whole."""
    engine = start(FAULTS="cut=1").serving()
    head, body = engine.chat(stream=False)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(body)["choices"][0]["finish_reason"] == "length"
    assert common(unchunk(engine.chat()[1])[0]) == common(whole[:1])


def test_nothing_strikes_unless_enabled(start: Callable[..., Engine], unchunk: Unchunk) -> None:
    """Without FAULT_CONTROL the header changes nothing and the admin call does not exist."""
    engine = start().serving()
    assert unchunk(engine.chat("fin=1")[1])[0][-1] == DONE
    assert engine.status("/mock/faults") == 404


def test_admin_call(start: Callable[..., Engine]) -> None:
    """The admin call shows and replaces the plan; /health can hang while work goes on."""
    engine = start(FAULT_CONTROL="1", FAULTS="comments").serving()
    assert engine.ask("GET", "/mock/faults")[1] == b"comments=0\n"
    assert engine.ask("PUT", "/mock/faults", b"health=0.4,status=500@0")[1] == b"health=0.4,status=500@0\n"
    begun = time.monotonic()
    assert engine.chat()[0].startswith(b"HTTP/1.1 200 OK\r\n")
    worked = time.monotonic()
    assert engine.status("/health") == 200
    assert time.monotonic() - worked >= 0.4 > worked - begun
    assert engine.ask("PUT", "/mock/faults", b"boom")[0].startswith(b"HTTP/1.1 400 ")
    assert engine.ask("PUT", "/mock/faults", b"")[1] == b"\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff", "byte 0xff at 0); write a plan such as rst=5@0.1,crlf"),
        (b"rst=5,\xc3", "byte 0xc3 at 6)"),
        (b"hang=inf", "fault 'hang=inf' is out of range; write an argument from 0 to 1000000"),
        (b"refuse=1e300", "out of range"),
        (b"memory=nan", "out of range"),
        (b"\0", "does not exist; write one of refuse"),
        (b"cut=0.5", "fault 'cut=0.5' counts events; write a whole number, e.g. cut=2"),
        (b"exit=1.5", "fault 'exit=1.5' counts requests; write a whole number, e.g. exit=2"),
        ("cut=\u0663".encode(), "has no number; write e.g. cut=2@0.5"),
        (b"rst=1@@", "has no number; write e.g. rst=2@0.5"),
    ],
)
def test_plan_that_cannot_be_read_changes_nothing(breakable: Engine, body: bytes, said: str) -> None:
    """Whatever bytes the admin call is given, it answers 400 and says what to write, and the plan stays."""
    head, answer = breakable.ask("PUT", "/mock/faults", body)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert said in json.loads(answer)["error"]["message"]
    assert breakable.ask("GET", "/mock/faults")[1] == b"\n"


def test_refuse(start: Callable[..., Engine]) -> None:
    """`refuse` closes the listener for as long as it says and then opens it again."""
    engine = start(FAULT_CONTROL="1").serving()
    engine.ask("PUT", "/mock/faults", b"refuse=0.5")
    engine.wait_for(lambda: engine.status("/health") is None)
    engine.wait_for(lambda: engine.status("/health") == 200)


def test_rate(start: Callable[..., Engine]) -> None:
    """A rate strikes about as many requests as it says, the same ones with the same seed."""

    def struck(seed: str) -> list[bool]:
        engine = start(FAULTS="status=500@0.5", SEED=seed).serving()
        return [engine.chat()[0].startswith(b"HTTP/1.1 500") for _ in range(40)]

    first = struck("7")
    assert 10 <= sum(first) <= 30
    assert struck("7") == first
    assert struck("8") != first


def test_memory(start: Callable[..., Engine]) -> None:
    """`memory` keeps as much as it says per request."""
    engine = start(FAULTS="memory=20").serving()
    before = engine.sample("process_resident_memory_bytes")
    for _ in range(3):
        engine.chat()
    assert engine.sample("process_resident_memory_bytes") - before > 55 * 2**20


def test_exit(start: Callable[..., Engine], unchunk: Unchunk) -> None:
    """`exit` ends the process with code 1 after as many requests as it says; the last of them is whole."""
    engine = start(FAULTS="exit=2").serving()
    for _ in range(2):
        assert unchunk(engine.chat()[1])[0][-1] == DONE
    assert engine.process.wait(5) == 1


def test_whole_answers_break_too(breakable: Engine) -> None:
    """What is not streamed is closed or reset before its answer."""
    assert breakable.chat("fin", stream=False) == (b"", b"")
    with pytest.raises(ConnectionResetError):
        breakable.chat("rst", stream=False)


@pytest.mark.parametrize(
    "text",
    [
        "rst=x", "rst@x", "rst=-1", "rst@2", "boom", "status=200", "status=499", "rst=nan", "cut=\u0663", "cut@\u0661",
        "hang=\u0663", "rst=1_0", "cut=0.5", "fin=0.5", "rst=1.5", "error=0.1", "stall=2.5", "exit=0.5",
    ],
)  # fmt: skip
def test_plans_that_cannot_be_read(text: str) -> None:
    """A plan with a wrong kind or number is refused."""
    with pytest.raises(faults.FaultError):
        faults.parse(text)


def test_plan_is_written_as_it_is_read() -> None:
    """A plan survives being written and read."""
    plan = faults.parse(" rst=5@0.1 ,crlf,, exit=100")
    assert faults.parse(faults.describe(plan)) == plan
