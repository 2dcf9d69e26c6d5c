"""Connections to the service: opening, keeping, retiring them, and what each one saw."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
import time
from collections import Counter
from typing import Protocol

_RESOLVED_FOR_SECONDS = 5.0
_READ_BYTES = 64 * 1024


class Listener(Protocol):
    """Whoever uses a connection at the moment."""

    def bytes_came(self, data: bytes, now: float) -> None:
        """Takes bytes in the order they came; `now` is monotonic seconds."""

    def ended(self, error: BaseException | None) -> None:
        """Hears, at least once, that nothing more will come: None for a close, the exception for a reset."""


class Connection(asyncio.BufferedProtocol):
    """One connection.

    All connections of a loop read into one buffer: a fresh one for each read costs more than the read itself.

    Attributes:
        opened_at: monotonic seconds.
        requests: how many were sent on it.
        pods: names of the pods that answered on it.
        closed: no further request can be sent.
        listener: the exchange under way, None while idle.
    """

    __slots__ = ("closed", "listener", "opened_at", "pods", "requests", "transport")
    _buffer = memoryview(bytearray(_READ_BYTES))

    def __init__(self) -> None:
        """Waits to be connected."""
        self.opened_at = time.monotonic()
        self.requests = 0
        self.pods: set[str] = set()
        self.closed = False
        self.listener: Listener | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is called by the loop."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_connection promises
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Is called by the loop, which calls `buffer_updated` before any other connection reads."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Is called by the loop; bytes that nobody asked for end the connection."""
        if self.listener is not None:
            self.listener.bytes_came(bytes(self._buffer[:nbytes]), time.monotonic())
        else:
            self.abort()

    def eof_received(self) -> bool:
        """Is called by the loop when the peer has closed its side; we then close ours."""
        self.closed = True
        if self.listener is not None:
            self.listener.ended(None)
        return False

    def connection_lost(self, exc: BaseException | None) -> None:
        """Is called by the loop, last."""
        self.closed = True
        if self.listener is not None:
            self.listener.ended(exc)

    def send(self, request: bytes) -> None:
        """Sends one request."""
        assert self.transport is not None  # noqa: S101 - connected before anybody gets it
        self.requests += 1
        self.transport.write(request)

    def abort(self) -> None:
        """Closes at once, whatever is still on the way."""
        self.closed = True
        if self.transport is not None:
            self.transport.abort()


class Pool:
    """Opens connections and, with keep-alive, keeps the idle ones for reuse up to a maximum age."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        keep: bool,
        max_age_seconds: float | None,
        connect_timeout_seconds: float,
    ) -> None:
        """Opens nothing yet."""
        self._port = port
        self._keep = keep
        self._max_age = max_age_seconds
        self._timeout = connect_timeout_seconds
        self._resolver = _Resolver(host, port)
        self._idle: list[Connection] = []
        self.opened = 0
        self.reuses = 0
        self.pods_per_connection: Counter[int] = Counter()

    def take_idle(self) -> Connection | None:
        """Returns a kept connection that is open and young enough, most recently used first, or None."""
        now = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if connection.closed or (self._max_age is not None and now - connection.opened_at >= self._max_age):
                self._retire(connection)
                continue
            self.reuses += 1
            return connection
        return None

    async def open(self) -> Connection:
        """Returns a new connection.

        Raises:
            OSError: the name does not resolve or every address refused; the last address's error.
            TimeoutError: no connection within the time allowed.
        """
        try:
            async with asyncio.timeout(self._timeout) as limit:
                connection = await self._open_any(await self._resolver.addresses())
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimeoutError(f"no connection within {self._timeout:g} s") from error
        self.opened += 1
        return connection

    async def _open_any(self, addresses: list[str]) -> Connection:
        problem = OSError("the name resolves to no address")
        for address in addresses:
            try:
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, address, self._port)
            except OSError as error:
                problem = error
            else:
                return connection
        raise problem

    def give_back(self, connection: Connection, *, reusable: bool) -> None:
        """Takes a connection whose exchange is over."""
        connection.listener = None
        if self._keep and reusable and not connection.closed:
            self._idle.append(connection)
        else:
            self._retire(connection)

    def close(self) -> None:
        """Retires every idle connection."""
        while self._idle:
            self._retire(self._idle.pop())

    def _retire(self, connection: Connection) -> None:
        self.pods_per_connection[len(connection.pods)] += 1
        connection.abort()


class _Resolver:
    """Asks for addresses in a daemon thread, so that a dead name server cannot hold up the end of a run."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._known: list[str] = []
        self._until = 0.0
        self._asking: asyncio.Future[list[str]] | None = None
        with contextlib.suppress(ValueError):
            self._known, self._until = [str(ipaddress.ip_address(host))], float("inf")

    async def addresses(self) -> list[str]:
        if time.monotonic() < self._until:
            return self._known
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._ask, args=(asyncio.get_running_loop(), self._asking), daemon=True).start()
        self._known = await asyncio.shield(self._asking)
        self._until = time.monotonic() + _RESOLVED_FOR_SECONDS
        return self._known

    def _ask(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]]) -> None:
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as problem:
            error = problem if isinstance(problem, OSError) else OSError(str(problem))
            _deliver(loop, answer, error)
        else:
            _deliver(loop, answer, list(dict.fromkeys(str(entry[4][0]) for entry in found)))


def _deliver(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]], result: list[str] | OSError) -> None:
    def settle() -> None:
        if answer.done():
            return
        if isinstance(result, OSError):
            answer.set_exception(result)
            answer.exception()  # whoever asked may have timed out; that is not an error nobody heard of
        else:
            answer.set_result(result)

    with contextlib.suppress(RuntimeError):  # the run is over, its loop closed
        loop.call_soon_threadsafe(settle)
