"""The queue, and clients that leave it."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.edges.conftest import Engine


QUEUE = (
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_waiting_by_reason",
    "kv_cache_usage_perc",
)


def test_what_does_not_run_waits(start: Callable[..., Engine]) -> None:
    """Of ten streams four run and six wait, for want of capacity; all of them end well."""
    engine = start()
    assert engine.chat(60.0).status == 200, "the first answer of a real model is slow"
    streams = [engine.begin(100.0, stream=True, max_tokens=engine.FINISHED) for _ in range(10)]
    seen: dict[str, list[float]] = {}

    def all_have_come() -> bool:
        samples = engine.metrics(*QUEUE)
        seen.update({name: list(samples[f"vllm:{name}"].values()) for name in QUEUE})
        return sum(seen["num_requests_running"] + seen["num_requests_waiting"]) == 10

    engine.wait_for(all_have_come)
    assert seen["num_requests_running"] == [4]
    assert seen["num_requests_waiting"] == [6]
    assert seen["num_requests_waiting_by_reason"] == [6, 0], "for capacity, deferred"
    assert 0 < seen["kv_cache_usage_perc"][0] <= 1
    for stream in streams:
        answer = stream.result()
        assert (answer.finish_reasons, answer.events[-1]) == (["length"], "[DONE]")
    engine.wait_idle()
    assert engine.value("kv_cache_usage_perc") == 0
    engine.stop()


def test_waiting_is_measured(engine: Engine) -> None:
    """The time in the queue shows in its histogram."""
    before = engine.value("request_queue_time_seconds_sum")
    streams = [engine.begin(stream=True, max_tokens=600) for _ in range(6)]
    for stream in streams:
        stream.result()
    engine.wait_idle()
    assert engine.value("request_queue_time_seconds_sum") - before > 0.3


def open_stream(engine: Engine, **more: object) -> socket.socket:
    """Sends a long chat and reads until its answer begins."""
    long = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000, "ignore_eos": True}
    body = json.dumps(long | more)
    head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    connection = socket.create_connection(("127.0.0.1", engine.port), 10)
    connection.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{body}".encode())
    return connection


def test_client_that_leaves_frees_its_slots(engine: Engine) -> None:
    """A client that disconnects in mid-stream ends its request at once; what it did not get is not counted."""
    before = engine.metrics()["vllm:request_success_total"]
    with open_stream(engine, stream=True, n=24) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        engine.wait_for(lambda: engine.value("num_requests_running") == 4)
    engine.wait_for(lambda: engine.load() == (0, 0), 1.0)
    after = engine.metrics()["vllm:request_success_total"]
    assert after[("finished_reason", "abort"),] == before[("finished_reason", "abort"),]
    assert sum(after.values()) - sum(before.values()) < 24


def test_client_that_leaves_before_its_answer_frees_its_slots(engine: Engine) -> None:
    """A client that does not wait for a whole answer ends its request too."""
    with open_stream(engine, n=24):
        engine.wait_for(lambda: engine.value("num_requests_running") == 4)
    engine.wait_for(lambda: engine.load() == (0, 0), 1.0)


def test_client_that_leaves_the_queue(engine: Engine) -> None:
    """A client that leaves while it waits no longer counts as waiting; those before it go on."""
    with open_stream(engine, stream=True, n=60):
        engine.wait_for(lambda: engine.value("num_requests_running") == 4)
        with open_stream(engine, stream=True, n=100):
            engine.wait_for(lambda: engine.value("num_requests_waiting") >= 100)
        engine.wait_for(lambda: engine.value("num_requests_waiting") <= 56, 1.0)
        assert engine.value("num_requests_running") == 4
