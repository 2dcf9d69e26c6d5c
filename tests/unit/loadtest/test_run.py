"""A whole run: its lines, its ends, its honesty about itself."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.loadtest.conftest import Load, Reply


async def whole(reply: Reply) -> None:
    """Answers as it should."""
    await reply.whole()


async def half(reply: Reply) -> None:
    """Begins an answer and stays silent."""
    await reply.head()
    await reply.token()
    await reply.silence()


def test_lines(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line, the progress lines and the last line have the form that other tools read."""
    monkeypatch.setattr("loadgen.run._PROGRESS_SECONDS", 0.2)
    run = load(whole, DURATION_SECONDS="0.5", CONCURRENCY="2")
    lines = run.printed.splitlines()
    assert lines[0] == f"load: 2 streams against {run.engine.url}/v1/chat/completions for 0.5s"
    assert re.fullmatch(r"t=   0s total= *\d+ \{'ok': \d+\}", lines[1])
    total = run.summary.tally.total
    assert lines[-1] == f"final total={total} ok={total} failures=none"


def test_lines_with_failures(load: Load) -> None:
    """The last line names each kind of failure and how often it was counted."""

    async def mixed(reply: Reply) -> None:
        await reply.whole() if reply.number % 2 else reply.close()

    run = load(mixed, requests=4)
    assert run.printed.splitlines()[-1] == "final total=4 ok=2 failures={'RemoteDisconnected': 2}"


def test_events(load: Load) -> None:
    """Each request has its sent, first_token and end events, in order, with the pod's name."""

    async def numbered(reply: Reply) -> None:
        await reply.head()
        await reply.numbered(0, "mock-1")
        await reply.numbered(1, "mock-1", "length")
        await reply.usage(2)
        await reply.done()

    run = load(numbered, requests=2)
    assert [(event["kind"], event["id"]) for event in run.events] == [
        (kind, number) for number in (0, 1) for kind in ("sent", "first_token", "end")
    ]
    times = [event["t"] for event in run.events]
    assert times == sorted(times)
    assert abs(times[0] - time.time()) < 60
    end = run.events[2]
    assert (end["outcome"], end["pod"], end["http"], end["chunks"], end["tokens"]) == (
        "ok",
        "mock-1",
        200,
        2,
        2,
    )
    assert 0 <= end["ttft"] <= end["e2e"]
    assert run.events[1]["pod"] == "mock-1"


def test_never_connected(load: Load, closed_port: int) -> None:
    """A request that found no connection has an end and no sent event."""
    run = load(whole, TARGET=f"http://127.0.0.1:{closed_port}", DURATION_SECONDS="0.1")
    assert {event["kind"] for event in run.events} == {"end"}
    assert run.events[0]["ttft"] is None


def test_refusals_do_not_spin(load: Load, closed_port: int) -> None:
    """A loop whose connections are refused waits longer and longer instead of counting thousands."""
    run = load(whole, TARGET=f"http://127.0.0.1:{closed_port}", DURATION_SECONDS="1", CONCURRENCY="1")
    assert 3 <= run.summary.tally.total <= 7  # at 0, 20, 60, 140, 300, 620 ms


def test_hard_end(load: Load) -> None:
    """No run outlives duration, grace and one second; what is still open then is counted as unfinished."""
    began = time.monotonic()
    run = load(half, DURATION_SECONDS="0.2", END_GRACE_SECONDS="0.2", CONCURRENCY="3")
    assert run.counts == {"unfinished": 3}
    assert time.monotonic() - began < 0.2 + 0.2 + 1
    assert run.summary.exit_code() == 1


def test_open_streams_may_finish(load: Load) -> None:
    """Streams that are open when the duration is over are waited for."""

    async def slow(reply: Reply) -> None:
        await reply.head()
        await asyncio.sleep(0.3)
        await reply.token("stop")
        await reply.done()

    run = load(slow, DURATION_SECONDS="0.1", CONCURRENCY="3")
    assert run.counts == {"ok": 3}


def test_sigterm(load: Load) -> None:
    """SIGTERM ends the run early, without a request lost, and the second one at once."""

    async def terminates(reply: Reply) -> None:
        if reply.number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        await reply.whole()

    assert load(terminates).counts == {"ok": 3}

    async def terminates_twice(reply: Reply) -> None:
        await reply.head()
        await reply.token()
        await reply.heard()
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.01)
        await reply.silence()

    assert load(terminates_twice).counts == {"unfinished": 1}


def test_nothing_measured(load: Load) -> None:
    """A run in which no request ended says so and does not count as a success."""
    run = load(whole, ARRIVAL="poisson", RATE="0.001", DURATION_SECONDS="0.1")
    assert run.summary.exit_code() == 2
    assert "nothing measured" in run.printed


def test_open_loop_counts_every_arrival(load: Load) -> None:
    """Of the arrivals that a schedule holds, each is sent and counted once, however late we are."""
    run = load(whole, ARRIVAL="constant", RATE="100", DURATION_SECONDS="0.5", CONCURRENCY="100")
    assert (run.summary.tally.total, run.summary.dropped) == (50, 0)


def test_open_loop_says_what_it_dropped(load: Load) -> None:
    """Arrivals that found no place in flight before the end are dropped, reported, and no success."""
    run = load(
        half,
        ARRIVAL="burst",
        RATE="20",
        BURST_SIZE="10",
        CONCURRENCY="3",
        DURATION_SECONDS="0.4",
        END_GRACE_SECONDS="0.1",
    )
    assert run.counts == {"unfinished": 3}
    assert run.summary.dropped == 7
    assert "dropped 7 intended requests were never sent" in run.printed
    assert run.summary.exit_code() == 1


def test_open_loop_told_to_stop(load: Load) -> None:
    """Told to stop, an open loop counts what was due by then and not sent, and nothing beyond."""

    async def stops_in_second_burst(reply: Reply) -> None:
        if reply.number == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        await reply.whole()

    run = load(stops_in_second_burst, ARRIVAL="burst", RATE="10", BURST_SIZE="3", CONCURRENCY="1")
    assert run.summary.tally.total + run.summary.dropped == 6
    assert run.counts == {"ok": run.summary.tally.total}


def test_frozen_engine(load: Load) -> None:
    """What a freeze costs shows in latencies from the intended time, though later answers come at once."""

    async def freezes_once(reply: Reply) -> None:
        if reply.number == 0:
            await asyncio.sleep(0.5)
        await reply.whole()

    run = load(freezes_once, ARRIVAL="constant", RATE="50", CONCURRENCY="1", REQUESTS="20")
    latencies = run.summary.tally.latencies
    from_send, from_intended = latencies["ttft"].percentile(50), latencies["ttft_intended"].percentile(50)
    assert from_send is not None
    assert from_intended is not None
    assert from_intended > 0.1
    assert from_send < from_intended / 2
    assert latencies["schedule_delay"].greatest > 0.4


def test_overloaded(load: Load) -> None:
    """A client that is itself held up for longer than its limit says so: not measured."""

    async def holds_up(reply: Reply) -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - engine and load generator share this loop: this is the overload
        await reply.whole()

    run = load(holds_up, requests=5, LAG_LIMIT_SECONDS="0.005")
    assert run.counts == {"ok": 5}
    assert run.summary.exit_code() == 2
    assert re.search(r"client overloaded: own lag p99 is \d+\.\dms, above 5ms", run.printed)
    assert run.printed.splitlines()[-1].startswith("final total=5")
    assert "latency ttft" not in run.printed


def test_late_client_shows_no_latency(load: Load) -> None:
    """A higher limit keeps the run from being overloaded, and shows no latency that its own lag has spoiled."""

    async def holds_up(reply: Reply) -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - as above
        await reply.whole()

    run = load(holds_up, requests=5, LAG_LIMIT_SECONDS="10")
    assert (run.counts, run.summary.exit_code()) == ({"ok": 5}, 0)
    assert re.search(r"^latency not shown: client lag p99 \d+\.\dms exceeds 5ms$", run.printed, re.MULTILINE)
    assert run.printed.count("latency ") == 1
    assert "overloaded" not in run.printed
    client = run.summary.to_json()["client"]
    assert (client["overloaded"], client["lag_limit"], client["late"], client["late_limit"]) == (0, 10, 1, 0.005)


def test_number_of_requests(load: Load) -> None:
    """A run of so many requests sends exactly these and ends; none of them is dropped for want of a place."""
    closed = load(whole, REQUESTS="7", CONCURRENCY="3")
    burst = load(whole, REQUESTS="7", CONCURRENCY="3", ARRIVAL="burst", RATE="50", BURST_SIZE="7")
    for run in (closed, burst):
        assert (run.counts, run.summary.dropped, run.engine.requests) == ({"ok": 7}, 0, 7)
        assert run.summary.ended - run.summary.started < 10


def test_no_hidden_limit(load: Load) -> None:
    """As many streams as asked for are open at once: no pool below caps them."""
    streams = 300
    all_open = asyncio.Event()

    async def waits_for_all(reply: Reply) -> None:
        if reply.number + 1 == streams:
            all_open.set()
        await all_open.wait()
        await reply.whole()

    assert load(waits_for_all, requests=streams, CONCURRENCY=str(streams)).counts == {"ok": streams}


def test_broken_stream(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of the load generator that dies of a defect ends the run with that defect, at once."""

    async def dies(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("loadgen.sender.Sender.send", dies)
    with pytest.raises(ZeroDivisionError):
        load(whole)


def test_silent_name_server(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that never answers is a TimeoutError, and does not hold up the run's end."""
    answers = threading.Event()

    def waits(*_: object, **__: object) -> list[object]:
        answers.wait(20)
        return []

    monkeypatch.setattr("socket.getaddrinfo", waits)
    run = load(whole, TARGET="http://mock:80", CONNECT_TIMEOUT_SECONDS="0.1", DURATION_SECONDS="0.3")
    answers.set()
    assert set(run.counts) == {"TimeoutError"}
    assert run.ends()[0]["detail"] == "no connection within 0.1 s"


def test_failures_before_overload(load: Load) -> None:
    """Lost requests are lost whether or not the client was overloaded."""

    async def holds_up(reply: Reply) -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - as above
        reply.close()

    assert load(holds_up, requests=3, LAG_LIMIT_SECONDS="0.005").summary.exit_code() == 1


def test_time_per_output_token(load: Load) -> None:
    """Time per output token comes from usage, not from chunks; one token or no usage has none."""

    async def chunky(reply: Reply) -> None:
        await reply.head()
        await reply.token(content="three tokens here ")
        await asyncio.sleep(0.1)
        await reply.token("stop", content="two more")
        if reply.number == 0:
            await reply.usage(5)
        elif reply.number == 1:
            await reply.usage(1)
        await reply.done()

    ends = load(chunky, requests=3).ends()
    assert 0.1 <= ends[0]["tpot"] * 4 <= ends[0]["e2e"] - ends[0]["ttft"] + 1e-5
    assert [ends[1]["tpot"], ends[2]["tpot"]] == [None, None]


def test_goodput(load: Load) -> None:
    """An answer that misses an objective is ok but not good."""

    async def every_second_is_late(reply: Reply) -> None:
        await asyncio.sleep(1.0 * (reply.number % 2))
        await reply.whole()

    run = load(every_second_is_late, requests=2, SLO_TTFT_SECONDS="0.9", SLO_E2E_SECONDS="5")
    assert run.counts == {"ok": 2}
    assert run.summary.tally.good == 1
    assert "1 of 2 (50.0%) with ttft<=0.9s e2e<=5s" in run.printed
