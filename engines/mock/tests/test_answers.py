"""What the mock adds to vLLM's answers, and how its text and timing can be set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from engines.mock.tests.conftest import Engine


def events(body: bytes, unchunk: Callable[[bytes], tuple[list[bytes], bytes]]) -> list[dict[str, Any]]:
    """Returns the JSON objects of a stream."""
    chunks = unchunk(body)[0]
    return [json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks if b"[DONE]" not in chunk]


def test_identity(breakable: Engine, unchunk: Callable[[bytes], tuple[list[bytes], bytes]]) -> None:
    """Responses name the pod; every chunk does too and carries a number that goes up by one."""
    head, body = breakable.chat(max_tokens=5, n=2, stream_options={"include_usage": True})
    assert b"\r\nx-served-by: pod-7\r\n" in head
    got = events(body, unchunk)
    assert [chunk["x_seq"] for chunk in got] == list(range(len(got)))
    assert {chunk["x_pod"] for chunk in got} == {"pod-7"}
    assert b"\r\nx-served-by: pod-7\r\n" in breakable.ask("GET", "/health")[0] + b"\r\n"


def test_answer_that_ends_by_itself(
    start: Callable[..., Engine], unchunk: Callable[[bytes], tuple[list[bytes], bytes]]
) -> None:
    """An answer longer than ANSWER_TOKENS ends by itself with `stop`, unless the client ignores the end."""
    engine = start(ANSWER_TOKENS="4").serving()
    natural = events(engine.chat(max_tokens=50)[1], unchunk)
    assert natural[-1]["choices"][0]["finish_reason"] == "stop"
    assert len(natural) == 5
    ignored = events(engine.chat(max_tokens=8, ignore_eos=True)[1], unchunk)
    assert ignored[-1]["choices"][0]["finish_reason"] == "length"
    assert len(ignored) == 9


def test_tokens_per_chunk(start: Callable[..., Engine], unchunk: Callable[[bytes], tuple[list[bytes], bytes]]) -> None:
    """A chunk may hold several tokens; the usage still counts tokens."""
    engine = start(TOKENS_PER_CHUNK="4").serving()
    got = events(engine.chat(max_tokens=10, stream_options={"include_usage": True})[1], unchunk)
    words = [chunk["choices"][0]["delta"]["content"].split() for chunk in got[1:-1]]
    assert [len(some) for some in words] == [4, 4, 2]
    assert got[-1]["usage"]["completion_tokens"] == 10


def test_full_queue_refuses(start: Callable[..., Engine]) -> None:
    """Above --max-num-queued-reqs a request is a 503 that is counted."""
    engine = start("--max-num-queued-reqs", "0").serving()
    head, body = engine.chat()
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["error"]["type"] == "Service Unavailable"
    assert engine.sample('vllm:admission_rejections_total{model_name="mock/mock-8b",reason="max_num_queued_reqs"}') == 1


def test_flags_that_change_answers(
    start: Callable[..., Engine], unchunk: Callable[[bytes], tuple[list[bytes], bytes]]
) -> None:
    """Request ids, forced usage, CORS origins and other names of the model work as in vLLM."""
    engine = start(
        "--enable-request-id-headers", "--enable-force-include-usage", "--allowed-origins", '["http://a"]',
        "--served-model-name", "one", "two", "--response-role", "helper",
    ).serving()  # fmt: skip
    head, body = engine.chat(model="two")
    assert b"x-request-id: " in head
    got = events(body, unchunk)
    assert (got[-1]["model"], got[-1]["choices"]) == ("two", [])
    assert got[0]["choices"][0]["delta"]["role"] == "helper"
    head, _ = engine.ask("GET", "/v1/models", Origin="http://a", X_Request_Id="abc")
    assert b"access-control-allow-origin: http://a" in head
    assert b"x-request-id: abc" in head


def test_load_is_tracked_on_demand(start: Callable[..., Engine]) -> None:
    """With --enable-server-load-tracking /load counts the requests under way."""
    engine = start("--enable-server-load-tracking", TTFT_SECONDS="60").serving()
    with engine.connect() as connection:
        body = b'{"messages":[{"role":"user","content":"x"}]}'
        head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}".encode() + body)
        engine.wait_for(lambda: engine.ask("GET", "/load")[1] == b'{"server_load":1}')
    engine.wait_for(lambda: engine.ask("GET", "/load")[1] == b'{"server_load":0}')


def test_slow_reader_gets_every_token(start: Callable[..., Engine]) -> None:
    """A client that does not read for a while gets the tokens that it missed, several in one chunk as in vLLM."""
    engine = start("--max-model-len", "100k", INTER_TOKEN_SECONDS="0", TTFT_SECONDS="0").serving()  # noqa: S106 - a time
    with engine.connect() as connection:
        body = b'{"messages":[{"role":"user","content":"x"}],"max_tokens":60000,"stream":true,"ignore_eos":true}'
        head = f"Host: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}".encode() + body)
        engine.wait_for(lambda: engine.sample("vllm:generation_tokens_total") >= 60000)
        got = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    words = 0
    for line in got.split(b"\n"):
        if line.startswith(b"data: {"):
            words += len(json.loads(line[6:])["choices"][0]["delta"]["content"].split())
    assert words == 60000
    assert got.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert got.count(b"data: ") < 60000
