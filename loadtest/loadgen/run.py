"""One run: sends requests as the settings say, ends when they say, and never later."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine, Iterator
from itertools import count

from loadgen.arrival import offsets, wait_after_failures
from loadgen.journal import Journal, JournalError
from loadgen.lag import MEASURING_LIMIT_SECONDS, LagMonitor
from loadgen.outcome import OK
from loadgen.sender import Sender
from loadgen.settings import Settings
from loadgen.summary import Summary

_PROGRESS_SECONDS = 5.0
_FLUSH_SECONDS = 0.02
_LAST_WORDS_SECONDS = 1.0  # for cancelled requests to be counted; the run's hard end is grace plus this


class Run:
    """Sends load until the duration is over, or until told to stop; `execute` returns the summary."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        """Sends nothing yet; must be made where a loop runs."""
        self._settings = settings
        self._journal = journal
        self._sender = Sender(settings, journal)
        self._lag = LagMonitor()
        self._stopping = asyncio.Event()  # the duration is over, or we were told to stop
        self._told_to_stop = asyncio.Event()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._problem: BaseException | None = None
        self._dropped = 0
        self._left = settings.requests if settings.requests is not None else -1  # -1: no limit
        self._in_flight = asyncio.Semaphore(settings.concurrency)
        self._started = 0.0

    def stop(self) -> None:
        """Sends nothing new; a second call does not wait for open streams either."""
        if self._told_to_stop.is_set():
            self._over.set()
        self._told_to_stop.set()
        self._stopping.set()

    async def execute(self) -> Summary:
        """Runs to the end: at most duration, grace and one second.

        Raises:
            JournalError: something that was asked for could not be written.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self._journal.say(self._headline())
        self._started = time.monotonic()
        self._lag.start()
        background = [loop.create_task(self._report_progress()), loop.create_task(self._flush_events())]
        self._spawn(self._open_loop() if self._settings.arrival != "closed" else self._closed_loop())
        await self._wait(self._stopping, self._settings.duration_seconds)
        self._stopping.set()
        await self._finish()
        self._lag.stop()
        self._sender.pool.close()
        for task in background:
            task.cancel()
        finished = await asyncio.gather(*background, return_exceptions=True)
        for problem in (self._problem, *finished):
            if isinstance(problem, Exception):
                raise problem
        return self._summary()

    def _headline(self) -> str:
        settings = self._settings
        who = (
            f"{settings.concurrency} streams"
            if settings.arrival == "closed"
            else f"{settings.arrival} arrivals at {settings.rate:g}/s"
        )
        return f"load: {who} against {settings.url} for {settings.duration_seconds:g}s"

    async def _closed_loop(self) -> None:
        settings = self._settings
        for index in range(settings.concurrency):
            due = self._started + index * settings.start_spread_seconds / settings.concurrency
            if await self._wait(self._stopping, due - time.monotonic()):
                return
            self._spawn(self._stream())

    async def _stream(self) -> None:
        failures = 0
        while self._may_send():
            outcome = await self._sender.send(time.monotonic())
            failures = 0 if outcome == OK else failures + 1
            if failures:
                await self._wait(self._stopping, wait_after_failures(failures))

    def _may_send(self) -> bool:
        """Takes one from the requests that may still be sent; after the last of them the run ends."""
        if self._stopping.is_set() or not self._left:
            return False
        self._left -= 1
        if not self._left:
            self._stopping.set()
        return True

    async def _open_loop(self) -> None:
        settings = self._settings
        assert settings.rate is not None  # noqa: S101 - settings are checked
        schedule = offsets(settings.arrival, settings.rate, burst_size=settings.burst_size, seed=settings.seed)
        for offset in schedule:
            due = self._started + offset
            if offset >= settings.duration_seconds or self._left == 0:
                return
            if await self._wait(self._told_to_stop, due - time.monotonic()):
                self._dropped += self._missed(offset, schedule)
                return
            self._left -= 1
            self._spawn(self._arrive(due))

    def _missed(self, offset: float, schedule: Iterator[float]) -> int:
        """Counts arrivals that were due before we were told to stop and were not sent any more."""
        end = min(self._settings.duration_seconds, time.monotonic() - self._started)
        missed = 0
        while offset < end:
            missed += 1
            offset = next(schedule)
        return missed

    async def _arrive(self, due: float) -> None:
        """One arrival of the open loop; waiting for a place among those in flight is schedule delay.

        An arrival that finds no place before the run stops is dropped; one that is merely late is sent.
        """
        must_wait = self._in_flight.locked()
        try:
            async with self._in_flight:
                if not (must_wait and self._stopping.is_set()):
                    await self._sender.send(due)
                    return
        except asyncio.CancelledError:
            self._dropped += 1
            raise
        self._dropped += 1

    async def _finish(self) -> None:
        """Waits for open streams, then counts what is still open as unfinished."""
        if self._tasks:
            await self._wait(self._over, self._settings.end_grace_seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORDS_SECONDS)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks and (self._stopping.is_set() or not self._left):
            self._stopping.set()
            self._over.set()
        if not task.cancelled() and task.exception() is not None:
            self._problem = self._problem or task.exception()
            self._stopping.set()
            self._over.set()

    async def _report_progress(self) -> None:
        for tick in count(1):
            due = self._started + tick * _PROGRESS_SECONDS
            await asyncio.sleep(due - time.monotonic())
            tally, elapsed = self._sender.tally, tick * _PROGRESS_SECONDS
            self._journal.say(f"t={elapsed:4.0f}s total={tally.total:5d} {tally.counts()}")

    async def _flush_events(self) -> None:
        try:
            while True:
                await asyncio.sleep(_FLUSH_SECONDS)
                self._journal.flush()
        except JournalError:
            self._stopping.set()
            self._over.set()
            raise

    @staticmethod
    async def _wait(event: asyncio.Event, seconds: float) -> bool:
        """Waits for the event, at most so long; returns whether it happened."""
        if seconds > 0 and not event.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
        return event.is_set()

    def _summary(self) -> Summary:
        late = self._lag.lags.percentile(99) or 0.0
        return Summary(
            target=self._settings.target,
            arrival=self._settings.arrival,
            started=self._journal.unix(self._started),
            ended=self._journal.unix(time.monotonic()),
            tally=self._sender.tally,
            dropped=self._dropped,
            opened=self._sender.pool.opened,
            reuses=self._sender.pool.reuses,
            pods_per_connection=self._sender.pool.pods_per_connection,
            lag=self._lag.lags,
            lag_limit=self._settings.lag_limit_seconds,
            cpu_share=self._lag.cpu_share,
            overloaded=int(late > self._settings.lag_limit_seconds),
            late=int(late > MEASURING_LIMIT_SECONDS),
        )
