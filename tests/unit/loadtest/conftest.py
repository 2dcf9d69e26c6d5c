"""An engine that does exactly what a test's script says, and the load generator run against it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import struct
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

LOADTEST = Path(__file__).resolve().parents[3] / "loadtest"
sys.path.insert(0, str(LOADTEST))

from loadgen.journal import Journal  # noqa: E402 - the package lies outside the installed ones
from loadgen.run import Run  # noqa: E402
from loadgen.settings import read  # noqa: E402

if TYPE_CHECKING:
    from loadgen.summary import Summary

LINGER = struct.Struct("ii")
DEADLINE_SECONDS = 20.0


class Reply:
    """What a script says on the connection that the request came on.

    Attributes:
        number: of the request, from 0, over the whole engine.
        connection: number of the connection it came on, from 0.
        nth: how many requests came on this connection before.
        body: of the request.
    """

    def __init__(
        self, engine: Engine, connection: int, nth: int, body: dict[str, Any], writer: asyncio.StreamWriter
    ) -> None:
        """Says nothing yet."""
        self._engine = engine
        self.number = engine.requests
        self.connection = connection
        self.nth = nth
        self.body = body
        self._writer = writer

    async def raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int = 200, content_type: str = "text/event-stream", more: str = "") -> None:
        """Sends a head that announces a chunked body."""
        lines = [f"HTTP/1.1 {status} Reason", f"content-type: {content_type}", "transfer-encoding: chunked"]
        await self.raw(("\r\n".join(lines) + "\r\n" + more + "\r\n").encode())

    async def chunk(self, data: bytes) -> None:
        """Sends one HTTP chunk."""
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(self, data: bytes) -> None:
        """Sends one event in one HTTP chunk."""
        await self.chunk(b"data: " + data + b"\n\n")

    async def token(self, reason: str | None = None, content: str = "word ", **more: object) -> None:
        """Sends one completion chunk."""
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
        await self.event(json.dumps({"choices": [choice]} | more).encode())

    async def numbered(self, number: int, pod: str, reason: str | None = None) -> None:
        """Sends one completion chunk that names its pod and carries its number."""
        await self.token(reason, x_pod=pod, x_seq=number)

    async def usage(self, tokens: int) -> None:
        """Sends the usage event, which has no choices."""
        counts = {"prompt_tokens": 1, "completion_tokens": tokens}
        await self.event(json.dumps({"choices": [], "usage": counts}).encode())

    async def done(self) -> None:
        """Sends [DONE] and ends the body."""
        await self.event(b"[DONE]")
        await self.raw(b"0\r\n\r\n")

    async def whole(self, tokens: int = 2, *, pod: str = "") -> None:
        """Sends a complete answer."""
        await self.head(more=f"x-served-by: {pod}\r\n" if pod else "")
        for _ in range(tokens - 1):
            await self.token()
        await self.token("length")
        await self.usage(tokens)
        await self.done()

    def close(self) -> None:
        """Closes the connection in order (FIN)."""
        self._writer.close()

    def reset(self) -> None:
        """Resets the connection (RST)."""
        peer: socket.socket = self._writer.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER.pack(1, 0))
        self._writer.transport.abort()

    async def heard(self) -> None:
        """Waits until the load generator has seen this answer's first token (one stream: numbers agree)."""
        await self._engine.first_tokens[self.number].wait()

    async def silence(self) -> None:
        """Says nothing more, for as long as the engine runs."""
        await asyncio.Event().wait()


Script = Callable[[Reply], Awaitable[None]]


class Engine:
    """Answers every request by the script.

    Attributes:
        url: base address.
        requests: how many have come.
        connections: how many were opened.
        first_tokens: set once the load generator has seen a request's first token, by number.
    """

    def __init__(self, script: Script) -> None:
        """Listens to nothing yet."""
        self.script = script
        self.url = ""
        self.requests = 0
        self.connections = 0
        self.first_tokens: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        connection, nth = self.connections, 0
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length:")[2].split()[0])
                body = json.loads(await reader.readexactly(length))
                reply = Reply(self, connection, nth, body, writer)
                self.requests += 1
                await self.script(reply)
                nth += 1
                if "connection: close" in head:
                    break
        writer.close()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Engine]:
        """Listens on a free port while the context lasts."""
        server = await asyncio.start_server(self._tracked, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._open: set[asyncio.Task[None]] = set()
        try:
            yield self
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _tracked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._open.discard(task)


class WatchedJournal(Journal):
    """Tells the engine about first tokens."""

    def __init__(self, events_file: str, output: io.StringIO, engine: Engine) -> None:
        """Opens the events file."""
        super().__init__(events_file, output)
        self._engine = engine

    def event(self, kind: str, at: float, number: int | None = None, **more: Any) -> None:  # noqa: ANN401 - as there
        """Keeps the event, as always, and tells."""
        super().event(kind, at, number, **more)
        if kind == "first_token" and number is not None:
            self._engine.first_tokens[number].set()


class Outcome:
    """What a run gave: its summary, its events, its printed lines, and the engine it ran against."""

    def __init__(self, summary: Summary, events: list[dict[str, Any]], printed: str, engine: Engine) -> None:
        """Keeps what the run gave."""
        self.summary = summary
        self.events = events
        self.printed = printed
        self.engine = engine
        self.counts = summary.tally.counts()

    def ends(self) -> list[dict[str, Any]]:
        """Returns the end events, by request number."""
        return sorted((event for event in self.events if event["kind"] == "end"), key=lambda end: end["id"])


class Load:
    """Runs the load generator in this process against a scripted engine."""

    def __init__(self, folder: Path) -> None:
        """Keeps events files in `folder`."""
        self._folder = folder

    def __call__(self, script: Script, *, requests: int | None = None, **environment: str) -> Outcome:
        """Runs until the engine was sent `requests` requests (or for DURATION_SECONDS) and all have ended."""
        return asyncio.run(self._run(script, requests, environment))

    async def _run(self, script: Script, requests: int | None, environment: dict[str, str]) -> Outcome:
        printed = io.StringIO()
        events = self._folder / "events.jsonl"
        stops: list[Run] = []

        async def counted(reply: Reply) -> None:
            if reply.number + 1 == requests:
                stops[0].stop()
            await script(reply)

        async with Engine(counted).running() as engine, contextlib.AsyncExitStack() as resources:
            defaults = {
                "TARGET": engine.url,
                "DURATION_SECONDS": "15",
                "CONCURRENCY": "1",
                "START_SPREAD_SECONDS": "0",
                "LAG_LIMIT_SECONDS": "10",
                "EVENTS_FILE": str(events),
            }
            settings = read(defaults | environment)
            journal = resources.enter_context(WatchedJournal(settings.events_file, printed, engine))
            stops.append(Run(settings, journal))
            async with asyncio.timeout(DEADLINE_SECONDS):
                summary = await stops[0].execute()
            for line in summary.lines():
                journal.say(line)
        kept = [json.loads(line) for line in events.read_text().splitlines()]
        return Outcome(summary, kept, printed.getvalue(), engine)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Runs the load generator against a script: `load(script, requests=3, CONNECTION="keepalive")`."""
    return Load(tmp_path)


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
