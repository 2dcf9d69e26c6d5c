#!/usr/bin/env python3
"""How many streams the mock engine keeps on time on one core.

Starts the engine on one core and reads its streams from another. A chunk's lateness is how much later it came than
its stream's own schedule, which is set by the stream's earliest chunk: first chunk, plus the time between tokens for
each chunk after it. A last column says how long after the request plus the time to first token the first one came.

    python3 bench/engine_scale.py
    python3 bench/engine_scale.py --streams 1000 2000 --seconds 20 --markdown
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

SOURCE = Path(__file__).resolve().parents[1] / "engines/mock/src"
TTFT_SECONDS = 0.1
HEADER = ("streams", "chunks/s", "late p50 ms", "p99 ms", "max ms", "first late p99 ms", "engine CPU", "KiB/stream")
EXPECTED_SHARE = 0.999


class Failed(Exception):
    """The benchmark could not be run; the message says why."""


@dataclass
class Stream(asyncio.Protocol):
    """One stream: sends its request and notes when each of its chunks comes, in seconds on the monotonic clock."""

    request: bytes
    done: asyncio.Future[None]
    sent: float = 0.0
    times: list[float] = field(default_factory=list)
    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the request."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one without being derived from it
        self.sent = time.monotonic()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Counts the token chunks in what came; several at once came at the same time."""
        now = time.monotonic()
        for _ in range(data.count(b'"content":" ')):
            self.times.append(now)
        if b"[DONE]" in data and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends a stream that was cut."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the engine closed the connection"))


def quantile(values: list[float], share: float) -> float:
    """Returns the value below which a share of sorted values lies."""
    return values[min(len(values) - 1, int(share * len(values)))]


def processor_seconds(pid: int) -> float:
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid: int) -> int:
    """Returns the resident memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def start(port: int, inter_token: float, core: int) -> tuple[subprocess.Popen[bytes], float]:
    """Starts the engine on a core; returns it and the seconds until it listened.

    Raises:
        Failed: it did not listen in time.
    """
    begun = time.monotonic()
    timing = {"TTFT_SECONDS": str(TTFT_SECONDS), "INTER_TOKEN_SECONDS": str(inter_token), "ANSWER_TOKENS": "1000000"}
    flags = ["--port", str(port), "--max-num-seqs", "100000", "--max-model-len", "1m", "--disable-uvicorn-access-log"]
    engine = subprocess.Popen(
        [sys.executable, "-m", "mock_engine", *flags],
        env=os.environ | timing | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.sched_setaffinity(engine.pid, {core})
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.005)
        else:
            return engine, time.monotonic() - begun
    engine.kill()
    raise Failed(f"the engine does not listen on port {port} within 20 s; is the port free and the core idle?")


async def measure(engine: subprocess.Popen[bytes], port: int, streams: int, tokens: int, inter: float) -> list[str]:
    """Runs streams side by side and returns one row of the table."""
    body = json.dumps(
        {"messages": [{"role": "user", "content": "x"}], "max_tokens": tokens, "stream": True, "ignore_eos": True}
    )
    head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    request = f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{body}".encode()
    loop = asyncio.get_running_loop()
    before_kib = resident_kib(engine.pid)
    ramp = max(1.0, streams / 500)
    opened: list[Stream] = []
    begun = time.monotonic()
    for number in range(streams):
        await asyncio.sleep(max(0.0, begun + ramp * number / streams - time.monotonic()))
        stream = Stream(request, loop.create_future())
        await loop.create_connection(lambda stream=stream: stream, "127.0.0.1", port)  # type: ignore[misc]  # bound now
        opened.append(stream)
    busy_from, busy_seconds = time.monotonic(), processor_seconds(engine.pid)
    grown = resident_kib(engine.pid) - before_kib
    steady = tokens * inter - ramp
    await asyncio.sleep(max(0.5, steady * 0.8))
    busy = (processor_seconds(engine.pid) - busy_seconds) / (time.monotonic() - busy_from)
    window = (busy_from, time.monotonic())
    await asyncio.wait_for(asyncio.gather(*(stream.done for stream in opened)), 60 + tokens * inter)
    for stream in opened:
        if stream.transport is not None:
            stream.transport.close()
    return [*chunk_cells(opened, window, inter, tokens), f"{busy:.0%}", f"{grown / streams:.0f}"]


def chunk_cells(opened: list[Stream], window: tuple[float, float], inter: float, tokens: int) -> list[str]:
    """Returns the cells on chunks; their rate is that within a window of time."""
    begin, end = window
    late: list[float] = []
    first: list[float] = []
    counted = 0
    for stream in opened:
        if len(stream.times) < EXPECTED_SHARE * (tokens - 1):
            raise Failed(f"a stream of {tokens} tokens had {len(stream.times)} chunks")
        schedule = [came - inter * index for index, came in enumerate(stream.times)]
        earliest = min(schedule)
        late.extend(came - earliest for came in schedule)
        first.append(stream.times[0] - stream.sent - TTFT_SECONDS)
        counted += sum(begin <= came <= end for came in stream.times)
    late.sort()
    first.sort()
    numbers = (quantile(late, 0.5), quantile(late, 0.99), late[-1], quantile(first, 0.99))
    return [
        str(len(opened)),
        f"{counted / (end - begin):,.0f}",
        *(f"{1000 * number:.1f}" for number in numbers),
    ]


def show(cells: tuple[str, ...] | list[str], *, markdown: bool) -> None:
    """Prints one line of the table."""
    if markdown:
        print("| " + " | ".join(cells) + " |", flush=True)
    else:
        print("".join(cell.rjust(len(name) + 2) for cell, name in zip(cells, HEADER, strict=True)), flush=True)


def main() -> int:
    """Measures each number of streams; returns the exit code."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[100, 300, 600, 1000, 1500, 2000])
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each stream (default: 10)")
    parser.add_argument("--inter-token", type=float, default=0.03, help="seconds between tokens (default: 0.03)")
    parser.add_argument("--port", type=int, default=18080, help="port of the engine (default: 18080)")
    parser.add_argument("--markdown", action="store_true", help="print the table for a document")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:  # noqa: PLR2004 - one for the engine, one for its clients
        print("engine_scale.py: needs two cores, one for the engine and one for its clients", file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    print(f"load average before: {load:.1f} on {len(cores)} cores", file=sys.stderr)
    show(HEADER, markdown=options.markdown)
    if options.markdown:
        show(["---"] * len(HEADER), markdown=True)
    os.sched_setaffinity(0, {cores[1]})
    tokens = int(options.seconds / options.inter_token)
    starts: list[float] = []
    for streams in options.streams:
        try:
            engine, seconds = start(options.port, options.inter_token, cores[0])
            starts.append(seconds)
            try:
                cells = uvloop.run(measure(engine, options.port, streams, tokens, options.inter_token))
            finally:
                engine.kill()
                engine.wait()
        except (Failed, OSError, TimeoutError) as error:
            print(f"engine_scale.py: {streams} streams: {error or 'not done in time'}", file=sys.stderr)
            return 1
        show(cells, markdown=options.markdown)
    print(f"start to listening: {sorted(starts)[len(starts) // 2]:.2f} s, the middle one of {len(starts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
