"""How the mock starts and stops where it differs from vLLM or has a choice."""

from __future__ import annotations

import json
import re
import resource
import signal
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from engines.mock.tests.conftest import Engine


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


def keep_alive_chat(**fields: object) -> bytes:
    """Returns a chat on a connection that only the engine ends."""
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]} | fields).encode()
    head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return f"POST /v1/chat/completions HTTP/1.1\r\n{head}".encode() + body


def told_to_stop(engine: Engine, request: bytes) -> bytes:
    """Sends a request, SIGTERM when it has its first tokens, and returns all that came until the connection's end."""
    with engine.connect() as connection:
        connection.sendall(request)
        engine.wait_for(lambda: engine.sample("vllm:generation_tokens_total") > 1)
        engine.process.send_signal(signal.SIGTERM)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_503_while_loading(start: Callable[..., Engine]) -> None:
    """While the model loads every path answers 503, as llama.cpp's server does; then it serves."""
    engine = start(STARTUP_DELAY_SECONDS="1")
    engine.wait_for(lambda: engine.status("/health") is not None)
    head, body = engine.ask("GET", "/health")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert json.loads(body)["error"]["message"] == "Loading model"
    assert engine.status("/metrics") == 503
    assert engine.chat()[0].startswith(b"HTTP/1.1 503 ")
    engine.serving()


def test_closed_while_loading(start: Callable[..., Engine]) -> None:
    """On demand the port is closed while the model loads, as vLLM's is."""
    begun = time.monotonic()
    engine = start(STARTUP_DELAY_SECONDS="0.5", STARTUP_MODE="closed")
    seen = set()
    while (status := engine.status("/health")) != 200:
        seen.add(status)
    assert seen == {None}
    assert time.monotonic() - begun > 0.5


def test_start_is_quick(start: Callable[..., Engine]) -> None:
    """Starting, the first answers and stopping take less than 0.5 s of processor time, however busy the machine is."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    engine = start().serving()
    engine.process.send_signal(signal.SIGTERM)
    assert engine.process.wait(10) == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert 0 < after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


@pytest.mark.parametrize("mode", ["503", "closed"])
def test_signal_while_loading(start: Callable[..., Engine], mode: str) -> None:
    """SIGTERM ends an engine that is still loading at once and with code 0."""
    engine = start(STARTUP_DELAY_SECONDS="60", STARTUP_MODE=mode)
    assert engine.process.stdout is not None
    while "Loading the model" not in engine.process.stdout.readline():
        assert engine.process.poll() is None
    engine.process.send_signal(signal.SIGTERM)
    assert engine.process.wait(2) == 0


@pytest.mark.parametrize("flags", [(), ("--shutdown-timeout", "30")])
def test_idle_engine_stops_at_once(start: Callable[..., Engine], flags: tuple[str, ...]) -> None:
    """An engine without work stops in well under a second, time to drain or not, probed or not."""
    engine = start(*flags).serving()
    engine.status("/health")
    engine.process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    assert engine.process.wait(5) == 0
    assert time.monotonic() - begun < 1


def test_probes_are_no_work(start: Callable[..., Engine]) -> None:
    """Probes keep no drain waiting: not those on open connections, not one that waits for its answer."""
    engine = start("--shutdown-timeout", "30", FAULTS="health=60")
    engine.wait_for(lambda: engine.status("/metrics") == 200)
    with engine.connect() as kept, engine.connect() as hanging:
        kept.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.recv(65536).startswith(b"HTTP/1.1 200 ")
        hanging.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        engine.wait_for(lambda: engine.status("/metrics") == 200)
        engine.process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert engine.process.wait(5) == 0
        assert time.monotonic() - begun < 1


def test_teardown_is_added_to_the_drain(start: Callable[..., Engine]) -> None:
    """TEARDOWN_SECONDS is how long the engine lives on after its last answer, refusing work."""
    engine = start("--shutdown-timeout", "30", TEARDOWN_SECONDS="0.5").serving()
    engine.process.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    engine.wait_for(lambda: engine.chat()[0].startswith(b"HTTP/1.1 500 "))
    assert engine.process.wait(5) == 0
    assert time.monotonic() - begun >= 0.5


@pytest.mark.parametrize(
    ("style", "tail"),
    [
        ("error", b'"code": 500}}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n'),
        ("done", b"\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"),
        ("abort", b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"),
    ],
)
def test_abort_styles(start: Callable[..., Engine], style: str, tail: bytes) -> None:
    """Each of the ways in which vLLM has been seen to give a stream up can be chosen."""
    engine = start(ABORT_STYLE=style, INTER_TOKEN_SECONDS="0.05").serving()  # noqa: S106 - a time
    got = told_to_stop(engine, keep_alive_chat(max_tokens=200, stream=True))
    assert got.endswith(tail)
    assert (b'"finish_reason":"abort"' in got) == (style == "abort")
    assert (b'data: {"error"' in got) == (style == "error")
    assert engine.process.wait(5) == 0


@pytest.mark.parametrize("style", ["", "error", "abort"])
def test_time_to_drain_runs_out(start: Callable[..., Engine], style: str) -> None:
    """What is left when the time to drain is over ends with [DONE] alone, as in vLLM, unless ABORT_STYLE is set."""
    engine = start("--shutdown-timeout", "1", ABORT_STYLE=style, INTER_TOKEN_SECONDS="0.05").serving()  # noqa: S106 - a time
    got = told_to_stop(engine, keep_alive_chat(max_tokens=200, stream=True))
    assert got.endswith(b"\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    assert (b'data: {"error"' in got) == (style == "error")
    assert re.findall(rb'"finish_reason":"(\w+)"', got) == ([b"abort"] if style == "abort" else [])
    assert engine.process.wait(5) == 0


def test_abort_of_a_stream_that_waits(start: Callable[..., Engine]) -> None:
    """With ABORT_STYLE=abort a stream that waited ends with [DONE] alone, as in vLLM; the one that ran says `abort`."""
    engine = start("--max-num-seqs", "1", ABORT_STYLE="abort", INTER_TOKEN_SECONDS="0.05").serving()  # noqa: S106 - a time
    request = keep_alive_chat(max_tokens=200, stream=True)
    with engine.connect() as running, engine.connect() as waiting:
        running.sendall(request)
        engine.wait_for(lambda: engine.sample("vllm:generation_tokens_total") > 1)
        waiting.sendall(request)
        engine.wait_for(lambda: engine.sample("vllm:num_requests_waiting") == 1)
        engine.process.send_signal(signal.SIGTERM)
        ran = b"".join(iter(lambda: running.recv(65536), b""))
        waited = b"".join(iter(lambda: waiting.recv(65536), b""))
    assert b'"finish_reason":"abort"' in ran
    assert waited.startswith(b"HTTP/1.1 200 ")
    assert waited.endswith(b"\r\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    assert engine.process.wait(5) == 0


@pytest.mark.parametrize("style", ["error", "done", "abort", "silence"])
def test_abort_styles_of_whole_answers(start: Callable[..., Engine], style: str) -> None:
    """What is not streamed is a 500 when it is given up; with ABORT_STYLE=abort it is a 200 with the tokens so far."""
    engine = start(ABORT_STYLE=style, INTER_TOKEN_SECONDS="0.05").serving()  # noqa: S106 - a time
    got = told_to_stop(engine, keep_alive_chat(max_tokens=200))
    answer = json.loads(got.partition(b"\r\n\r\n")[2])
    if style == "abort":
        assert got.startswith(b"HTTP/1.1 200 ")
        assert [choice["finish_reason"] for choice in answer["choices"]] == ["abort"]
        assert 1 < answer["usage"]["completion_tokens"] < 200
    else:
        assert got.startswith(b"HTTP/1.1 500 ")
        assert answer["error"]["type"] == "InternalServerError"
    assert engine.process.wait(5) == 0


def test_silent_abort(start: Callable[..., Engine]) -> None:
    """With ABORT_STYLE=silence nothing more comes, and the process stays until its client leaves."""
    engine = start(ABORT_STYLE="silence").serving()
    with engine.connect() as connection:
        connection.sendall(keep_alive_chat(max_tokens=250, stream=True))
        engine.wait_for(lambda: engine.sample("vllm:generation_tokens_total") > 1)
        engine.process.send_signal(signal.SIGTERM)
        engine.wait_for(lambda: engine.status("/health") is None)
        got = until_silent(connection)
        assert b"[DONE]" not in got
        assert engine.process.poll() is None
    assert engine.process.wait(5) == 0


def test_port_that_is_taken(start: Callable[..., Engine]) -> None:
    """A port that is taken ends the process with code 1 and one line that names it."""
    first = start().serving()
    second = start("--port", str(first.port))
    printed, _ = second.process.communicate(timeout=10)
    assert second.process.returncode == 1
    assert "address already in use" in printed
    assert "Traceback" not in printed


def test_bad_environment_is_listed(start: Callable[..., Engine]) -> None:
    """Every variable that cannot be used is named with its value and what to write; the exit code is 2."""
    engine = start(TTFT_SECONDS="soon", SEED="-1", STARTUP_MODE="open", FAULTS="boom", TIMING_SPREAD="2")
    printed, _ = engine.process.communicate(timeout=10)
    assert engine.process.returncode == 2
    assert "TTFT_SECONDS='soon': write seconds >= 0, e.g. 0.25" in printed
    assert "SEED='-1': write a whole number >= 0" in printed
    assert "STARTUP_MODE='open': write one of 503, closed" in printed
    assert "FAULTS='boom': fault 'boom' does not exist" in printed
    assert "TIMING_SPREAD='2': write a fraction from 0 to 1" in printed
    assert "Traceback" not in printed


def test_numbers_in_the_environment_are_short_and_in_ascii(start: Callable[..., Engine]) -> None:
    """Digits of another script are refused, and a number without end, of which only the beginning is shown."""
    engine = start(SEED="9" * 5000, ANSWER_TOKENS="\u0663", TTFT_SECONDS="\u0663", TIMING_SPREAD="\u0661")
    printed, _ = engine.process.communicate(timeout=10)
    assert engine.process.returncode == 2
    assert f"SEED='{'9' * 80}'... (5000 characters): write a whole number >= 0" in printed
    assert "ANSWER_TOKENS='\u0663': write a whole number >= 1" in printed
    assert "TTFT_SECONDS='\u0663': write seconds >= 0" in printed
    assert "TIMING_SPREAD='\u0661': write a fraction" in printed
    assert "Traceback" not in printed


def test_socket_that_cannot_be_made(start: Callable[..., Engine]) -> None:
    """A socket in a folder that does not exist is refused before anything starts, with code 2."""
    engine = start("--uds", "/nodir/x")
    printed, _ = engine.process.communicate(timeout=10)
    assert engine.process.returncode == 2
    assert printed.splitlines()[-1].startswith("vllm serve: error: argument --uds: '/nodir/x' cannot be made: write ")
    assert "Traceback" not in printed
