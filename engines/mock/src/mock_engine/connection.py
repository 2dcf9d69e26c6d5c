"""The HTTP connection: uvicorn's own, with a short way out for the chunks of a stream.

ASGI's `send` costs a coroutine, a dictionary and several checks per chunk; with 1,000 streams that is the
limit. Headers, errors and the end of a response go through ASGI; only the chunks between are written here.
"""

import asyncio
import socket
import struct
from typing import Any, Protocol, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_EXTENSION = "mock_engine.connection"
_FLUSH_SECONDS = 0.005
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Watcher(Protocol):
    """Wants to know that the client has gone, or reads again."""

    def client_gone(self) -> None:
        """The connection was lost."""

    def writable(self) -> None:
        """The client reads again after its buffers were full."""


class Connection(HttpToolsProtocol):
    """One client's connection; the request's scope leads to it, see `connection_of`."""

    watcher: Watcher | None = None
    gone: asyncio.Event

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Prepares the mark that is set when the connection is lost."""
        super().connection_made(transport)
        self.gone = asyncio.Event()

    def on_message_begin(self) -> None:
        """Makes the connection known to the request that begins."""
        super().on_message_begin()
        cast("dict[str, Any]", self.scope)["extensions"] = {_EXTENSION: self}

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the watcher at once, so that the slot of a client that has gone is free at once."""
        super().connection_lost(exc)
        self.gone.set()
        watcher, self.watcher = self.watcher, None
        if watcher is not None:
            watcher.client_gone()

    def resume_writing(self) -> None:
        """Lets the watcher write what it held back."""
        super().resume_writing()
        if self.watcher is not None:
            self.watcher.writable()

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly: more bytes would only pile up here."""
        return self.flow.write_paused

    def write_chunk(self, data: bytes) -> None:
        """Writes one chunk of a chunked response whose headers went out through ASGI."""
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def break_off(self, *, reset: bool) -> None:
        """Ends the connection with a FIN or a RST, once the kernel has taken what was written."""
        self.loop.call_later(_FLUSH_SECONDS, self._reset if reset else self.transport.close)

    def _reset(self) -> None:
        if not self.transport.is_closing():
            raw = cast("socket.socket", self.transport.get_extra_info("socket"))
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()


def connection_of(scope: Any) -> Connection:  # noqa: ANN401  # Starlette's Scope is a mapping to anything
    """Returns the connection on which a request came in."""
    return cast("Connection", scope["extensions"][_EXTENSION])
