"""The process: when it listens, and how it ends after SIGTERM.

vLLM has two ways to end. By default it gives up what it is doing: streams get an error and `[DONE]`, new
connections are refused, the process exits. With `--shutdown-timeout N` it finishes what it has begun for up
to N seconds, and what is left then ends with `[DONE]` alone; the listener stays open and /health stays 200, but
new work gets a 500. A second signal changes nothing. ABORT_STYLE chooses another end for what is given up.
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Coroutine, Iterator

import uvicorn

from mock_engine.engine import Engine
from mock_engine.environment import StartupMode

logger = logging.getLogger("uvicorn.error")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class EngineServer(uvicorn.Server):
    """uvicorn's server with vLLM's start and stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        engine: Engine,
        *,
        startup_delay: float,
        startup_mode: StartupMode,
        shutdown_timeout: int,
        teardown: float,
    ) -> None:
        """Prepares the server; times are in seconds, `shutdown_timeout` 0 aborts."""
        super().__init__(config)
        self._engine = engine
        self._startup_delay = startup_delay
        self._startup_mode = startup_mode
        self._shutdown_timeout = shutdown_timeout
        self._teardown = teardown
        self._stopping = False
        self._stop = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles the signals on the loop, so that they work at once and do not change the exit code."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until a signal has been dealt with."""
        with self.capture_signals():
            logger.info("Loading the model takes %g s.", self._startup_delay)
            if self._startup_mode == "closed":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), self._startup_delay)
                self._engine.ready = True
            else:
                asyncio.get_running_loop().call_later(self._startup_delay, self._loaded)
            if self._stop.is_set():
                return
            self._engine.refuse = lambda seconds: self._spawn(self._refuse(seconds))
            if refuse := self._engine.faults.plan.get("refuse"):
                await self._refused(refuse.argument)
            await self._serve(sockets)

    def _loaded(self) -> None:
        self._engine.ready = True
        logger.info("Model loaded after %g s.", self._startup_delay)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _refused(self, seconds: float) -> None:
        """Waits out a time without a listener; a signal ends it."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _refuse(self, seconds: float) -> None:
        """Closes the listener for some seconds; open connections go on."""
        for server in self.servers:
            server.close()
        await self._refused(seconds)
        if not self._stop.is_set():
            await self.startup()

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._stopping:
            logger.info("%s ignored: already stopping.", name)
            return
        self._stopping = True
        self._stop.set()
        self._spawn(self._end(name))

    async def _end(self, name: str) -> None:
        engine = self._engine
        engine.draining = True
        scheduler = engine.scheduler
        open_jobs = len(scheduler.running) + len(scheduler.waiting)
        logger.info("%s: %d requests open, draining for up to %d s.", name, open_jobs, self._shutdown_timeout)
        if self._shutdown_timeout:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(scheduler.drained(), self._shutdown_timeout)
            if scheduler.idle:
                await asyncio.sleep(self._teardown)
        for server in getattr(self, "servers", []):
            server.close()
        scheduler.fail_all(_DEAD)
        engine.over.set()
        self.should_exit = True
