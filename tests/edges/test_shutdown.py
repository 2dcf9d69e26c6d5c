"""SIGTERM: each cell of the table, from one run of each kind of shutdown.

A run is made once and recorded; the tests read the record. How vLLM ends a stream that it gives up differs from run
to run (an error event before [DONE], [DONE] alone, silence); what never comes is a finish_reason of a good end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from tests.edges.conftest import Answer, Engine

DEAD = {
    "message": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "type": "InternalServerError",
    "param": None,
    "code": 500,
}
SHUT = {
    "message": "cannot schedule new futures after shutdown",
    "type": "InternalServerError",
    "param": None,
    "code": 500,
}


# How each engine ends what is left when the time to drain is over. vLLM: [DONE] without a finish_reason when it was
# recorded by hand; in a run on a machine that starved it, all twelve streams fell silent until their clients left.
OUT_OF_TIME = {"mock": {"done"}, "vllm": {"done", "silent"}}


@dataclass
class Run:
    """What was seen of one shutdown; times are in seconds after the signal."""

    streams: list[Answer] = field(default_factory=list)
    wholes: list[Answer] = field(default_factory=list)
    refused_after: float | None = None
    answered_after: float = 0.0
    exit_after: float = 0.0
    exit_code: int | None = None
    during: dict[str, Answer] = field(default_factory=dict)
    running_during: float = 0.0
    kept_alive: str = ""


def ending(stream: Answer) -> str:
    """Names how a stream ended."""
    if "length" in stream.finish_reasons and stream.events[-1] == "[DONE]":
        return "finished"
    if "abort" in stream.finish_reasons:
        return "abort"
    if any("error" in chunk for chunk in stream.chunks) and stream.events[-1] == "[DONE]":
        return "error"
    if stream.events and stream.events[-1] == "[DONE]":
        return "done"
    return stream.ended


def wait_for_exit(engine: Engine, run: Run, signalled: float, seconds: float) -> None:
    """Records that every answer has ended, then the end of the process; fails when the process stays."""
    run.answered_after = time.monotonic() - signalled
    engine.wait_for(lambda: engine.process.poll() is not None, seconds)
    run.exit_after = time.monotonic() - signalled
    run.exit_code = engine.process.returncode


def busy(engine: Engine, timeout: float, tokens: int) -> tuple[list[Future[Answer]], list[Future[Answer]]]:
    """Sends nine long streams and one other request, and waits until four of them run and six wait."""
    assert engine.chat(60.0).status == 200, "the first answer of a real model is slow"
    streams = [engine.begin(timeout, stream=True, max_tokens=tokens) for _ in range(3)]
    wholes = [engine.begin(timeout, max_tokens=tokens)]
    streams += [engine.begin(timeout, stream=True, max_tokens=tokens) for _ in range(6)]

    engine.wait_for(lambda: engine.load() == (4, 6))
    return streams, wholes


@pytest.fixture(scope="module")
def abort(start: Callable[..., Engine]) -> Run:
    """A shutdown with vLLM's default, while streams and one other request run and streams wait."""
    engine, run = start(), Run()
    kept = engine.client()
    assert kept.ask("GET", "/version").status == 200
    streams, wholes = busy(engine, 30.0, engine.ENDLESS)
    engine.signal()
    signalled = time.monotonic()
    engine.wait_for(lambda: engine.get("/health").ended == "refused", 5.0)
    run.refused_after = time.monotonic() - signalled
    run.during["new"] = engine.chat()
    engine.wait_for(lambda: kept.ask("GET", "/version").ended != "complete", 5.0)
    run.kept_alive = kept.ask("GET", "/version").ended
    kept.close()
    run.streams = [stream.result() for stream in streams]
    run.wholes = [whole.result() for whole in wholes]
    wait_for_exit(engine, run, signalled, 15.0)
    return run


@pytest.fixture(scope="module")
def drain(start: Callable[..., Engine]) -> Run:
    """A shutdown with time to drain, while streams and one other request run and streams wait."""
    engine, run = start("--shutdown-timeout", "600"), Run()
    kept = engine.client()
    assert kept.ask("GET", "/version").status == 200
    streams, wholes = busy(engine, 100.0, engine.FINISHED)
    engine.signal()
    signalled = time.monotonic()
    engine.wait_for(lambda: engine.chat(0.5).status == 500, 5.0)
    run.running_during = engine.value("num_requests_running")
    run.during = {
        "health": engine.get("/health"),
        "new": engine.chat(),
        "new stream": engine.chat(stream=True),
        "unknown model": engine.chat(model="nope"),
        "models": engine.get("/v1/models"),
        "kept": kept.ask("GET", "/version"),
    }
    body = {"messages": [{"role": "user", "content": "x"}]}
    run.during["kept new"] = kept.ask("POST", "/v1/chat/completions", body)
    kept.close()
    engine.signal()
    run.during["health after the second signal"] = engine.get("/health")
    run.streams = [stream.result() for stream in streams]
    run.wholes = [whole.result() for whole in wholes]
    wait_for_exit(engine, run, signalled, 20.0)
    return run


@pytest.fixture(scope="module")
def short(start: Callable[..., Engine]) -> Run:
    """A shutdown with too little time to drain: one second for twelve long streams, four at a time."""
    engine, run = start("--shutdown-timeout", "1", "--api-key", "secret"), Run()
    headers = {"Authorization": "Bearer secret"}
    run.during = {
        "no key": engine.chat(),
        "first": engine.ask("POST", "/v1/completions", {"prompt": "x"}, headers),
        "wrong key": engine.ask("GET", "/v1/models", headers={"Authorization": "Bearer other"}),
        "key": engine.ask("GET", "/v1/models", headers=headers),
        "health": engine.get("/health"),
        "metrics": engine.get("/metrics"),
        "tokenize": engine.ask("POST", "/tokenize", {"prompt": "x"}),
    }
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": engine.ENDLESS,
        "ignore_eos": True,
        "stream": True,
    }
    pool = engine._pool
    streams = [pool.submit(engine.ask, "POST", "/v1/chat/completions", body, headers, 30.0) for _ in range(12)]
    engine.wait_for(lambda: engine.value("num_requests_waiting") == 8)
    engine.signal()
    signalled = time.monotonic()
    run.streams = [stream.result() for stream in streams]
    wait_for_exit(engine, run, signalled, 20.0)
    return run


def test_default_gives_streams_up(abort: Run) -> None:
    """By default no stream is finished: each ends with an error, with [DONE] alone, or not at all."""
    assert len(abort.streams) == 9
    assert {ending(stream) for stream in abort.streams} <= {"error", "done", "abort", "silent", "cut"}


def test_default_ends_with_the_error_object(abort: Run, kind: str) -> None:
    """The mock gives every stream up with the error event before [DONE]; where vLLM does so, it is the same event."""
    if kind == "mock":
        assert [ending(stream) for stream in abort.streams] == ["error"] * 9
    if kind == "vllm" and not any(ending(stream) == "error" for stream in abort.streams):
        pytest.skip(f"this run of vLLM ended its streams with {sorted(map(ending, abort.streams))}")
    (error,) = {str(stream.chunks[-1]) for stream in abort.streams if ending(stream) == "error"}
    assert error == str({"error": DEAD})
    assert all(b'data: {"error": {"message": "' in s.body for s in abort.streams if ending(s) == "error")


def test_default_gives_other_requests_up(abort: Run, kind: str) -> None:
    """What is not streamed gets a 500 with the error object; from vLLM also a 200 that says abort, or nothing."""
    (whole,) = abort.wholes
    if kind == "mock" or whole.status == 500:
        assert (whole.ended, whole.status, whole.json()) == ("complete", 500, {"error": DEAD})
    elif whole.ended == "complete":
        assert whole.status == 200
        assert [choice["finish_reason"] for choice in whole.json()["choices"]] == ["abort"]
    else:
        assert whole.ended in {"silent", "cut"}


def test_default_closes_the_port_at_once(abort: Run) -> None:
    """New connections are refused long before a second has passed, and stay refused."""
    assert abort.refused_after is not None
    assert abort.refused_after < 1.5
    assert abort.during["new"].ended == "refused"


def test_default_closes_kept_alive_connections(abort: Run) -> None:
    """A connection that was kept alive is closed, and a new one in its place refused."""
    assert abort.kept_alive in {"cut", "refused"}


def test_default_exits_with_code_0(abort: Run, kind: str) -> None:
    """The process ends well once its clients have left; the mock at once."""
    assert abort.exit_code == 0
    if kind == "mock":
        assert abort.exit_after < 1.5


def test_drain_finishes_streams(drain: Run) -> None:
    """With time to drain every stream ends as if nothing had happened, those that waited too."""
    assert [ending(stream) for stream in drain.streams] == ["finished"] * 9


def test_drain_finishes_other_requests(drain: Run) -> None:
    """With time to drain a request that is not streamed is answered."""
    (whole,) = drain.wholes
    assert whole.status == 200
    assert whole.json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("which", ["new", "new stream", "kept new"])
def test_drain_refuses_new_work_with_500(drain: Run, which: str) -> None:
    """While it drains the engine answers new work with a 500, on connections old and new."""
    assert (drain.during[which].status, drain.during[which].json()) == (500, {"error": SHUT})


@pytest.mark.parametrize("which", ["health", "models", "kept", "health after the second signal"])
def test_drain_keeps_the_rest_up(drain: Run, which: str) -> None:
    """While it drains /health and all that needs no engine stay 200, on connections old and new."""
    assert drain.during[which].status == 200


def test_drain_still_checks_requests(drain: Run) -> None:
    """While it drains a request for another model is still a 404."""
    assert drain.during["unknown model"].status == 404


def test_drain_shows_in_the_metrics(drain: Run) -> None:
    """While it drains /metrics goes on counting what runs."""
    assert drain.running_during == 4


def test_drain_exits_with_code_0(drain: Run, kind: str) -> None:
    """The process ends well, soon after its last answer; the mock at once."""
    assert drain.exit_code == 0
    assert drain.exit_after - drain.answered_after < 100
    if kind == "mock":
        assert drain.exit_after - drain.answered_after < 1.0


def test_second_signal_changes_nothing(drain: Run) -> None:
    """A second SIGTERM neither ends streams nor the process."""
    assert drain.during["health after the second signal"].status == 200
    assert all(ending(stream) == "finished" for stream in drain.streams)


def test_time_to_drain_is_bounded(short: Run, kind: str) -> None:
    """No stream is finished in a second; each ends as was recorded, and the mock is then gone at once."""
    endings = [ending(stream) for stream in short.streams]
    assert len(endings) == 12
    assert set(endings) <= OUT_OF_TIME[kind]
    assert short.exit_code == 0
    if kind == "mock":
        assert short.exit_after > 0.8
        assert short.exit_after - short.answered_after < 1.0


def test_no_stream_that_is_given_up_has_a_finish_reason(short: Run, abort: Run) -> None:
    """[DONE] alone is no sign of success: only a finish_reason is."""
    for stream in [*short.streams, *abort.streams]:
        if ending(stream) != "finished":
            assert set(stream.finish_reasons) <= {"abort"}


@pytest.mark.parametrize("which", ["no key", "wrong key"])
def test_api_key_is_asked_for(short: Run, which: str) -> None:
    """With --api-key, /v1 is a 401 without the key."""
    assert (short.during[which].status, short.during[which].json()) == (401, {"error": "Unauthorized"})


@pytest.mark.parametrize("which", ["key", "first", "health", "metrics", "tokenize"])
def test_api_key_opens_v1_and_guards_nothing_else(short: Run, which: str) -> None:
    """With --api-key, the key opens /v1; probes and metrics do not need it."""
    assert short.during[which].status == 200
