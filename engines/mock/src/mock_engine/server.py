"""The process: when it listens, and how it ends after SIGTERM.

vLLM has two ways to end. By default it gives up what it is doing: streams get an error and `[DONE]`, new
connections are refused, the process exits. With `--shutdown-timeout N` it finishes what it has begun for up
to N seconds; the listener stays open and /health stays 200, but new work gets a 500. A second signal changes
nothing.
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator

import uvicorn

from mock_engine.application import Engine
from mock_engine.environment import StartupMode

logger = logging.getLogger("uvicorn.error")


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
    ) -> None:
        """Prepares the server; times are in seconds, `shutdown_timeout` 0 aborts."""
        super().__init__(config)
        self._engine = engine
        self._startup_delay = startup_delay
        self._startup_mode = startup_mode
        self._shutdown_timeout = shutdown_timeout
        self._stopping: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    @property
    def stopped_while_loading(self) -> bool:
        """Whether a signal came before the server listened."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles the signals on the loop, so that they work at once and do not change the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until a signal has been dealt with."""
        with self.capture_signals():
            if self._startup_mode == "closed":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), self._startup_delay)
                self._engine.ready = True
            else:
                asyncio.get_running_loop().call_later(self._startup_delay, self._loaded)
            if not self._stop.is_set():
                await self._serve(sockets)

    def _loaded(self) -> None:
        self._engine.ready = True
        logger.info("Model loaded after %g s.", self._startup_delay)

    def _on_signal(self, number: int) -> None:
        if self._stopping is not None:
            logger.info("%s ignored: already stopping.", signal.Signals(number).name)
            return
        self._stop.set()
        self._stopping = asyncio.get_running_loop().create_task(self._end(signal.Signals(number).name))

    async def _end(self, name: str) -> None:
        engine = self._engine
        engine.draining = True
        scheduler = engine.scheduler
        open_jobs = len(scheduler.running) + len(scheduler.waiting)
        logger.info("%s: %d requests open, draining for up to %d s.", name, open_jobs, self._shutdown_timeout)
        if self._shutdown_timeout:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(scheduler.drained(), self._shutdown_timeout)
        for server in getattr(self, "servers", []):
            server.close()
        scheduler.fail_all("EngineCore encountered an issue. See stack trace (above) for the root cause.")
        self.should_exit = True
