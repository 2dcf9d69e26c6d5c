"""The scheduler: who runs, who waits, and when tokens are due."""

from __future__ import annotations

import asyncio
import itertools
from time import monotonic

import pytest
import uvloop
from mock_engine.scheduler import Job, Scheduler, Timing


class Sink:
    """Keeps when tokens came, and when those after them are due."""

    def __init__(self) -> None:
        """Has seen nothing."""
        self.times: list[float] = []
        self.next_due: list[float] = []
        self.numbers: list[int] = []
        self.failed: str | None = None

    def tokens(self, job: Job, number: int) -> None:
        """Keeps the time."""
        assert job.remaining >= 0
        self.times.append(monotonic())
        if job.remaining:
            self.next_due.append(job.due)
        self.numbers.append(number)

    def fail(self, reason: str) -> None:
        """Keeps the reason."""
        self.failed = reason


class Observer:
    """Keeps how jobs finished."""

    def __init__(self) -> None:
        """Has seen nothing."""
        self.reasons: list[str] = []

    def step(self, tokens: int) -> None:
        """Counts nothing."""

    def first_token(self, job: Job, seconds: float) -> None:
        """Counts nothing."""

    def next_tokens(self, number: int, seconds: float) -> None:
        """Counts nothing."""

    def finished(self, job: Job, now: float) -> None:
        """Keeps the reason."""
        assert job.ended
        assert now > 0
        self.reasons.append(job.finish_reason)


def job(tokens: int, prompt: int = 1) -> Job:
    """Returns a job of some tokens."""
    return Job(Sink(), prompt_tokens=prompt, output_tokens=tokens, max_tokens=tokens, finish_reason="length", seed=0)


def scheduler(observer: Observer, running: int = 2, **timing: float) -> Scheduler:
    """Returns a fast scheduler."""
    fast = {"ttft": 0.02, "inter_token": 0.01, "prefill_per_token": 0.0, "spread": 0.0, "tokens_per_chunk": 1}
    return Scheduler(max_running=running, timing=Timing(**(fast | timing)), observer=observer, seed=1)  # type: ignore[arg-type]  # whole numbers among floats


def run(*jobs: Job, observer: Observer | None = None, running: int = 2, **timing: float) -> None:
    """Runs jobs to their ends."""

    async def drain() -> None:
        tested = scheduler(observer or Observer(), running, **timing)
        for one in jobs:
            tested.submit(one)
            assert len(tested.running) <= running
        await asyncio.wait_for(tested.drained(), 10)
        assert tested.idle

    asyncio.run(drain())


def sink(one: Job) -> Sink:
    """Returns a job's sink."""
    assert isinstance(one.sink, Sink)
    return one.sink


def dues(one: Job) -> list[float]:
    """Returns when the tokens of a job but the first were due, after its admission."""
    return [due - one.admitted for due in sink(one).next_due]


def test_tokens_are_due_at_even_intervals() -> None:
    """The first token is due after the time to first token, the others at even intervals that do not drift."""
    one = job(20)
    run(one)
    assert dues(one) == pytest.approx([0.02 + 0.01 * index for index in range(1, 20)])


def test_tokens_do_not_come_early_or_much_later() -> None:
    """Tokens come when they are due: never before, and not so late that it adds up."""
    one = job(20)
    run(one)
    lateness = [came - due for came, due in zip(sink(one).times[1:], sink(one).next_due, strict=True)]
    assert min(lateness) > -0.002
    assert min(lateness[10:]) < 0.01


def test_intervals_are_not_rounded_to_milliseconds() -> None:
    """On the engine's own loop, whose timers know whole milliseconds only, intervals of 1.5 ms average 1.5 ms.

    Tolerance: 0.25 ms of the average, which is 0.25 s of lateness at either end of the 1,000 intervals; rounding
    would make it 1 or 2 ms.
    """
    one = job(1001)

    async def drain() -> None:
        tested = scheduler(Observer(), inter_token=0.0015)
        tested.submit(one)
        await asyncio.wait_for(tested.drained(), 10)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(drain())
    times = sink(one).times
    assert len(times) == 1001
    assert (times[-1] - times[0]) / 1000 == pytest.approx(0.0015, abs=0.00025)


def test_prefill_takes_time_per_token() -> None:
    """A longer prompt delays the first token."""
    short, long = job(2, prompt=1), job(2, prompt=100)
    run(short, long, prefill_per_token=0.001)
    assert dues(long)[0] - dues(short)[0] == pytest.approx(0.099)


def test_tokens_come_in_groups() -> None:
    """Several tokens per chunk come together, at the time of the last of them."""
    one = job(10)
    run(one, tokens_per_chunk=4)
    assert sink(one).numbers == [4, 4, 2]
    assert dues(one) == pytest.approx([0.02 + 0.07, 0.02 + 0.09])


def test_spread_varies_the_intervals() -> None:
    """With a spread the intervals differ, within its bounds."""
    one = job(30)
    run(one, spread=0.5)
    gaps = [after - before for before, after in itertools.pairwise(dues(one))]
    assert max(gaps) - min(gaps) > 0.002
    assert min(gaps) >= 0.005
    assert max(gaps) <= 0.015


def test_jobs_run_in_their_order() -> None:
    """What does not run waits, first come, first served."""
    jobs = [job(5) for _ in range(6)]
    run(*jobs)
    admitted = [one.admitted for one in jobs]
    assert admitted == sorted(admitted)
    assert all(jobs[index + 2].admitted >= jobs[index].last for index in range(4))


def test_aborted_job_frees_its_slot() -> None:
    """A running job that is aborted makes room at once and gets no more tokens; a waiting one just goes."""

    async def scenario() -> None:
        observer = Observer()
        tested = scheduler(observer, running=1)
        first, second, third = job(1000), job(2), job(2)
        for one in (first, second, third):
            tested.submit(one)
        tested.abort(second)
        tested.abort(first)
        tested.abort(first)
        assert list(tested.running) == [third]
        await asyncio.wait_for(tested.drained(), 5)
        assert observer.reasons == ["length"]
        assert sink(first).times == []

    asyncio.run(scenario())


def test_giving_up_tells_every_sink() -> None:
    """When the engine gives up, running and waiting jobs end and their sinks are told why."""

    async def scenario() -> None:
        observer = Observer()
        tested = scheduler(observer, running=1)
        jobs = [job(1000) for _ in range(3)]
        for one in jobs:
            tested.submit(one)
        tested.fail_all("gone")
        assert tested.idle
        assert [sink(one).failed for one in jobs] == ["gone"] * 3
        assert observer.reasons == []

    asyncio.run(scenario())
