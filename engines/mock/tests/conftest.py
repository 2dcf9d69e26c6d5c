"""Starts the mock engine as a process and talks to it byte by byte."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MOCK = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(MOCK / "src"))  # the package is installed in the image only
DEADLINE_SECONDS = 60.0  # a busy machine may start an engine slowly; what is timed has limits of its own
FAST = {"TTFT_SECONDS": "0.01", "INTER_TOKEN_SECONDS": "0.002", "POD_NAME": "pod-7"}


class Engine:
    """A mock engine's process."""

    def __init__(self, flags: tuple[str, ...], environment: Mapping[str, str]) -> None:
        """Starts it on a free port; it may not listen yet."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mock_engine", "--port", str(self.port), *flags],
            env=os.environ | {"PYTHONPATH": str(MOCK / "src")} | FAST | dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def connect(self) -> socket.socket:
        """Opens a connection."""
        return socket.create_connection(("127.0.0.1", self.port), DEADLINE_SECONDS)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[bytes, bytes]:
        """Sends a request and returns head and body as they came, up to the end of the connection.

        Raises:
            ConnectionResetError: the connection was reset; its `args` hold what came before, joined.
        """
        with self.connect() as connection:
            connection.sendall(request(method, path, body, **headers))
            got = b""
            try:
                while part := connection.recv(65536):
                    got += part
            except ConnectionResetError as error:
                raise ConnectionResetError(got) from error
        head, _, rest = got.partition(b"\r\n\r\n")
        return head, rest

    def status(self, path: str) -> int | None:
        """Returns the status of a GET, or None without one: refused, or left in the queue of a listener that closes."""
        try:
            return int(self.ask("GET", path)[0].split()[1])
        except (ConnectionRefusedError, ConnectionResetError):
            return None

    def chat(self, fault: str | None = None, **fields: object) -> tuple[bytes, bytes]:
        """Sends a streamed chat of three tokens, with a fault if one is named."""
        short = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True}
        headers = {} if fault is None else {"x_mock_fault": fault}
        return self.ask("POST", "/v1/chat/completions", short | fields, **headers)

    def sample(self, name: str) -> float:
        """Returns the first sample of a metric."""
        body = self.ask("GET", "/metrics")[1].decode()
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", body, re.MULTILINE)
        assert found, name
        return float(found.group(1))

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Waits until something holds.

        Raises:
            AssertionError: it did not in time.
        """
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not what():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.01)

    def serving(self) -> Engine:
        """Waits until the engine is healthy."""
        self.wait_for(lambda: self.status("/health") == 200)
        return self

    def stop(self) -> None:
        """Ends the process."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.communicate()


def request(method: str, path: str, body: object = None, **headers: str) -> bytes:
    """Returns a request that asks for the connection to be closed behind its response."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(data)}"]
    if body is not None:
        lines.append("Content-Type: application/json")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    """Starts engines with flags and environment variables; all of them are stopped at the end."""
    engines: list[Engine] = []

    def starter(*flags: str, **environment: str) -> Engine:
        engines.append(Engine(flags, environment))
        return engines[-1]

    yield starter
    for engine in engines:
        engine.stop()


@pytest.fixture(scope="session")
def breakable() -> Iterator[Engine]:
    """An engine that does what the header of a request says."""
    engine = Engine((), {"FAULT_CONTROL": "1"})
    try:
        yield engine.serving()
    finally:
        engine.stop()


@pytest.fixture
def untouched(start: Callable[..., Engine]) -> Engine:
    """An engine that does what the header of a request says and has answered none: its first answer is `whole`."""
    return start(FAULT_CONTROL="1").serving()


@pytest.fixture(scope="session")
def whole(unchunk: Callable[[bytes], tuple[list[bytes], bytes]]) -> list[bytes]:
    """The events of the first stream of three tokens that an engine without faults answers."""
    engine = Engine((), {})
    try:
        return unchunk(engine.serving().chat()[1])[0]
    finally:
        engine.stop()


@pytest.fixture(scope="session")
def unchunk() -> Callable[[bytes], tuple[list[bytes], bytes]]:
    """Splits a chunked body into its chunks and what follows them: the last chunk, or nothing."""

    def splitter(body: bytes) -> tuple[list[bytes], bytes]:
        chunks = []
        while body and not body.startswith(b"0\r\n"):
            size, _, rest = body.partition(b"\r\n")
            length = int(size, 16)
            chunks.append(rest[:length])
            body = rest[length + 2 :]
        return chunks, body

    return splitter
