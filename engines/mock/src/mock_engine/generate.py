"""The endpoints that generate: chats and completions, streamed and not."""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from mock_engine import requests
from mock_engine.answers import Answer, ClientGone, Stream, Whole
from mock_engine.connection import Connection, connection_of
from mock_engine.engine import Engine
from mock_engine.errors import RequestError, bad_request
from mock_engine.faults import HEADER, Fault, FaultError
from mock_engine.requests import Generation
from mock_engine.shapes import Kind, Shape
from mock_engine.writers import BrokenWriter

_EVENT_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
# Long enough for the kernel to have taken the last bytes, short enough to be at once.
_FLUSH_SECONDS = 0.01


class Exchange(NamedTuple):
    """One request and its response, as ASGI hands them over."""

    scope: Scope
    receive: Receive
    send: Send


class Generate:
    """One of the endpoints, as a bare ASGI application: the chunks of its streams bypass ASGI."""

    def __init__(self, engine: Engine, kind: Kind) -> None:
        """Makes the endpoint for one kind of answer."""
        self._engine = engine
        self._kind: Kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        engine = self._engine
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        struck = self._strike(request)
        connection = connection_of(scope)
        if not await self._survives(struck, connection):
            return
        generation = self._read(body, request.headers.get("content-type"))
        if not generation.stream:
            self._check_whole(request)
        self._admit(generation)
        engine.load += engine.load_tracking
        try:
            await self._answer(generation, struck, Exchange(scope, receive, send))
        finally:
            engine.load -= engine.load_tracking
            self._after(struck)

    def _strike(self, request: Request) -> Mapping[str, Fault]:
        try:
            return self._engine.faults.strike(request.headers.get(HEADER.decode()))
        except FaultError as error:
            raise bad_request(str(error), HEADER.decode()) from error

    def _check_whole(self, request: Request) -> None:
        try:
            self._engine.faults.check_whole(request.headers.get(HEADER.decode()))
        except FaultError as error:
            raise bad_request(str(error), HEADER.decode()) from error

    async def _survives(self, struck: Mapping[str, Fault], connection: Connection) -> bool:
        """Applies what happens to a request before it is read; returns whether it goes on."""
        if status := struck.get("status"):
            code = HTTPStatus(int(status.argument))
            raise RequestError(code, code.phrase, code.phrase)
        if hang := struck.get("hang"):
            try:
                await asyncio.wait_for(connection.gone.wait(), hang.argument)
            except TimeoutError:
                return True
            return False
        return True

    def _read(self, body: bytes, content_type: str | None) -> Generation:
        fields = requests.parse_json(body, content_type)
        chat = self._kind == "chat"
        limits = self._engine.limits
        requests.check_shape(fields, chat=chat)
        requests.check_model(fields, limits)
        prompts = [requests.chat_prompt_tokens(fields)] if chat else requests.completion_prompt_tokens(fields)
        return requests.check(fields, chat=chat, prompts=prompts, limits=limits)

    def _admit(self, generation: Generation) -> None:
        engine = self._engine
        if engine.draining:
            raise RequestError(500, "cannot schedule new futures after shutdown", "InternalServerError")
        scheduler = engine.scheduler
        asked = len(generation.prompts) * generation.choices_per_prompt
        unfinished = len(scheduler.running) + len(scheduler.waiting)
        if engine.max_queued is not None and unfinished + asked > engine.max_queued:
            engine.metrics.rejected("max_num_queued_reqs")
            message = "The engine is currently busy and cannot accept new requests."
            message += " Please try again later or on a different instance."
            raise RequestError(503, message, "Service Unavailable")

    async def _answer(
        self,
        generation: Generation,
        struck: Mapping[str, Fault],
        exchange: Exchange,
    ) -> None:
        engine = self._engine
        connection = connection_of(exchange.scope)
        engine.served += 1
        if not generation.stream and ("fin" in struck or "rst" in struck):
            connection.break_off(reset="rst" in struck)
            await connection.gone.wait()
            return
        answer = self._begin(generation, struck, connection)
        if isinstance(answer, Stream):
            await exchange.send({"type": "http.response.start", "status": 200, "headers": [_EVENT_STREAM]})
        connection.watcher = answer
        answer.submit(engine.served)
        if isinstance(answer, Stream) and isinstance(answer.writer, BrokenWriter):
            answer.writer.start()
        try:
            await answer.ended()
        except ClientGone:
            return
        finally:
            connection.watcher = None
        if isinstance(answer, Whole):
            await JSONResponse(answer.body())(*exchange)
        else:
            await exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    def _begin(self, generation: Generation, struck: Mapping[str, Fault], connection: Connection) -> Answer:
        engine = self._engine
        prefix = "chatcmpl" if self._kind == "chat" else "cmpl"
        shape = Shape(
            kind=self._kind,
            id=f"{prefix}-{secrets.token_hex(8)}",
            created=int(time.time()),
            model=generation.model,
            role=engine.role,
            pod=engine.pod,
        )
        if not generation.stream:
            return Whole(generation, shape, engine.scheduler, engine.abort_style)
        stream = Stream(generation, shape, engine.scheduler, connection, engine.abort_style)
        if struck:
            stream.writer = BrokenWriter(connection, struck, stream.leave)
        return stream

    def _after(self, struck: Mapping[str, Fault]) -> None:
        """Applies the faults that follow a request."""
        engine = self._engine
        engine.ended += 1
        if memory := struck.get("memory"):
            engine.faults.grow(memory.argument)
        limit = engine.faults.plan.get("exit")
        if limit is not None and engine.ended >= limit.argument:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, os._exit, 1)
