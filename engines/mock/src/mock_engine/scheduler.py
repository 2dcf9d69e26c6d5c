"""The engine's core: which requests run, which wait, and when each of their tokens is due.

One heap and one timer serve all streams: a coroutine and a timer per stream would cost more than the tokens.
A token's due time follows from the one before it, not from the clock, so lateness does not add up.
"""

import asyncio
import heapq
import random
from collections import deque
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import Protocol

# libuv's timers fire at whole milliseconds; what is due within half of one is due now.
_TOLERANCE = 0.0005


@dataclass(frozen=True, slots=True)
class Timing:
    """When tokens are due. Times in seconds; `spread` is the fraction by which each of them may vary."""

    ttft: float
    inter_token: float
    prefill_per_token: float
    spread: float
    tokens_per_chunk: int


class Sink(Protocol):
    """Where a job's tokens go: a streamed response, or one that is collected."""

    def tokens(self, job: "Job", number: int) -> None:
        """Takes the next `number` tokens of `job`; the last ones when `job.remaining` is 0."""

    def fail(self, reason: str) -> None:
        """Ends the response because the engine gave the job up."""


class Observer(Protocol):
    """What the scheduler tells the metrics."""

    def step(self, tokens: int) -> None:
        """One iteration of the engine produced `tokens` tokens, prompt tokens included."""

    def first_token(self, job: "Job", seconds: float) -> None:
        """A job's first token came `seconds` after the request."""

    def next_tokens(self, number: int, seconds: float) -> None:
        """`number` more tokens came `seconds` after the ones before."""

    def finished(self, job: "Job", now: float) -> None:
        """A job got all its tokens; as in vLLM, one that is aborted is not counted."""


class Job:
    """One sequence to generate: its lengths in tokens and, on the monotonic clock, its times in seconds."""

    __slots__ = (
        "admitted", "arrived", "due", "emitted", "ended", "finish_reason", "first", "last",
        "max_tokens", "output_tokens", "prompt_tokens", "seed", "sink", "stalled", "step",
    )  # fmt: skip

    def __init__(
        self,
        sink: Sink,
        *,
        prompt_tokens: int,
        output_tokens: int,
        max_tokens: int,
        finish_reason: str,
        seed: int,
    ) -> None:
        """Describes a sequence; lengths are in tokens, `seed` picks its text."""
        self.sink = sink
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.max_tokens = max_tokens
        self.finish_reason = finish_reason
        self.seed = seed
        self.emitted = 0
        self.step = 1
        self.ended = False
        self.stalled = False
        self.arrived = self.admitted = self.due = self.first = self.last = 0.0

    @property
    def remaining(self) -> int:
        """Tokens still to come."""
        return self.output_tokens - self.emitted


class Scheduler:
    """Runs at most `max_running` jobs; the rest wait in the order in which they came."""

    def __init__(self, *, max_running: int, timing: Timing, observer: Observer, seed: int) -> None:
        """Makes an idle scheduler; `seed` picks the spread of its timing."""
        self.timing = timing
        self.running: set[Job] = set()
        self.waiting: deque[Job] = deque()
        self._max_running = max_running
        self._observer = observer
        self._random = random.Random(seed)  # noqa: S311  # timing, not secrets
        self._heap: list[tuple[float, int, Job]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        """Whether no job runs or waits."""
        return not self.running and not self.waiting

    async def drained(self) -> None:
        """Waits until no job runs or waits."""
        await self._idle.wait()

    def submit(self, job: Job) -> None:
        """Takes a job; it runs now or when a slot is free."""
        self._idle.clear()
        job.arrived = monotonic()
        self.waiting.append(job)
        self._admit()
        self._arm()

    def abort(self, job: Job) -> None:
        """Frees the slot of a job whose client has gone; does nothing when the job has ended."""
        if job.ended:
            return
        if job in self.running:
            self._end(job)
            self._admit()
            self._arm()
        else:
            self.waiting.remove(job)
            self._end(job)

    def fail_all(self, reason: str) -> None:
        """Gives every job up and tells its sink so."""
        jobs = [*self.running, *self.waiting]
        self.waiting.clear()
        for job in jobs:
            self._end(job)
            job.sink.fail(reason)

    def _vary(self, seconds: float) -> float:
        if not self.timing.spread:
            return seconds
        return seconds * (1 + self.timing.spread * (2 * self._random.random() - 1))

    def _interval(self, tokens: int) -> float:
        if not self.timing.spread:
            return tokens * self.timing.inter_token
        return sum(self._vary(self.timing.inter_token) for _ in range(tokens))

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._max_running:
            job = self.waiting.popleft()
            job.admitted = monotonic()
            job.step = min(self.timing.tokens_per_chunk, job.output_tokens)
            self.running.add(job)
            wait = self._vary(self.timing.ttft) + self.timing.prefill_per_token * job.prompt_tokens
            job.due = job.admitted + wait + self._interval(job.step - 1)
            heapq.heappush(self._heap, (job.due, next(self._order), job))

    def _arm(self) -> None:
        while self._heap and self._heap[0][2].ended:
            heapq.heappop(self._heap)
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - monotonic()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        heap = self._heap
        now = monotonic()
        produced = 0
        while heap and heap[0][0] <= now + _TOLERANCE:
            job = heap[0][2]
            if job.ended or job.stalled:
                heapq.heappop(heap)
                continue
            number = job.step
            if job.emitted == 0:
                produced += job.prompt_tokens
                job.first = now
                self._observer.first_token(job, now - job.arrived)
            else:
                self._observer.next_tokens(number, now - job.last)
            produced += number
            job.last = now
            job.emitted += number
            remaining = job.output_tokens - job.emitted
            if remaining:
                job.step = min(number, remaining)
                job.due += self._interval(job.step)
                heapq.heapreplace(heap, (job.due, next(self._order), job))
            else:
                heapq.heappop(heap)
                self._end(job)
                self._observer.finished(job, now)
            job.sink.tokens(job, number)
        if produced:
            self._observer.step(produced)
        self._admit()
        self._arm()

    def _end(self, job: Job) -> None:
        job.ended = True
        self.running.discard(job)
        if self.idle:
            self._idle.set()
