"""What every request passes before it reaches an endpoint, from outside to inside."""

import asyncio
import contextlib
import hashlib
import secrets
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from time import perf_counter

from prometheus_client import Counter, Histogram, Summary
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mock_engine.engine import Engine
from mock_engine.errors import error_object

_UNCOUNTED = {"/metrics", "/health", "/load", "/ping", "/version", "/server_info"}
_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5, 10.0,
    30.0, 60.0,
)  # fmt: skip


class Loading:
    """Answers 503 to everything while the model loads, as llama.cpp's server does; and slows /health down."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        """Stands before `app`."""
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if not self._engine.ready:
            body = error_object(HTTPStatus.SERVICE_UNAVAILABLE, "Loading model", "unavailable_error")
            await JSONResponse(body, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
            return
        slow = self._engine.faults.plan.get("health")
        if slow is not None and scope["path"] == "/health":
            # A probe that hangs is no work: it does not keep the process.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._engine.over.wait(), slow.argument)
        await self._app(scope, receive, send)


class Keys:
    """Asks for one of the API keys under the paths that vLLM guards."""

    _GUARDED = ("/v1", "/v2", "/inference", "/cohere")

    def __init__(self, app: ASGIApp, keys: Iterable[str]) -> None:
        """Stands before `app`; without keys everything passes."""
        self._app = app
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        guarded = scope["path"].removeprefix(scope["root_path"]).startswith(self._GUARDED)
        if self._keys and guarded and scope["method"] != "OPTIONS" and not self._allowed(Headers(scope=scope)):
            await JSONResponse({"error": "Unauthorized"}, HTTPStatus.UNAUTHORIZED)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _allowed(self, headers: Headers) -> bool:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(key.encode()).digest()
        return scheme.lower() == "bearer" and any(secrets.compare_digest(digest, one) for one in self._keys)


class RequestIds:
    """Answers with the X-Request-Id that the request has, or with a new one."""

    def __init__(self, app: ASGIApp) -> None:
        """Stands before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and adds the header to the response."""
        identifier = Headers(scope=scope).get("x-request-id") or uuid.uuid4().hex

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("X-Request-Id", identifier)
            await send(message)

        await self._app(scope, receive, marked)


class Counted:
    """Counts requests, sizes and durations under the names that vLLM's HTTP instrumentation uses."""

    def __init__(self, app: ASGIApp, paths: Iterable[tuple[str, str]]) -> None:
        """Stands before `app`; `paths` are the methods and paths that have a label of their own."""
        self._app = app
        self._paths = set(paths)
        self._total = Counter("http_requests", "Total number of requests.", ("method", "status", "handler"))
        self._received = Summary("http_request_size_bytes", "Length of requests.", ("handler",))
        self._sent = Summary("http_response_size_bytes", "Length of responses.", ("handler",))
        self._precise = Histogram("http_request_duration_highr_seconds", "Duration.", buckets=_SECONDS)
        self._duration = Histogram(
            "http_request_duration_seconds", "Duration.", ("method", "handler"), buckets=(0.1, 0.5, 1.0)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and counts it when its response has ended."""
        if scope["path"] in _UNCOUNTED:
            await self._app(scope, receive, send)
            return
        status, length = 500, 0
        begun = perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status, length
            if message["type"] == "http.response.start":
                status = message["status"]
                length = int(Headers(raw=message["headers"]).get("content-length", "0"))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._count(scope, status, length, perf_counter() - begun)

    def _count(self, scope: Scope, status: int, length: int, seconds: float) -> None:
        method = scope["method"]
        handler = scope["path"] if (method, scope["path"]) in self._paths else "none"
        self._total.labels(method=method, status=f"{status // 100}xx", handler=handler).inc()
        received = Headers(scope=scope).get("content-length", "0")
        self._received.labels(handler=handler).observe(int(received) if received.isdigit() else 0)
        self._sent.labels(handler=handler).observe(length)
        self._duration.labels(method=method, handler=handler).observe(seconds)
        self._precise.observe(seconds)
