"""How late this program itself is: a timer that should fire every 10 ms, and how much later it did.

Every time stamp that the load generator takes can be wrong by about this much. When its p99 exceeds
MEASURING_LIMIT_SECONDS, the client is the bottleneck and its latencies say nothing about the server.
"""

import asyncio
import time

from loadgen.histogram import Histogram

PERIOD_SECONDS = 0.01
MEASURING_LIMIT_SECONDS = 0.005


class LagMonitor:
    """Measures the scheduling lag of the running event loop from `start` to `stop`."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self.lags = Histogram()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._cpu_from = 0.0
        self._from = 0.0
        self.cpu_share = 0.0

    def start(self) -> None:
        """Begins to measure on the running loop."""
        self._from, self._cpu_from = time.monotonic(), time.process_time()
        self._due = self._from + PERIOD_SECONDS
        self._timer = asyncio.get_running_loop().call_at(self._due, self._tick)

    def stop(self) -> None:
        """Ends the measurement; `cpu_share` is then this process's use of one core, from 0 to 1."""
        if self._timer is not None:
            self._timer.cancel()
            elapsed = time.monotonic() - self._from
            self.cpu_share = (time.process_time() - self._cpu_from) / elapsed if elapsed else 0.0

    def _tick(self) -> None:
        now = time.monotonic()
        while self._due <= now:  # one long freeze was late for every tick inside it, not for one
            self.lags.add(now - self._due)
            self._due += PERIOD_SECONDS
        self._timer = asyncio.get_running_loop().call_at(self._due, self._tick)
