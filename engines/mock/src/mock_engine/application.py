"""The engine's HTTP interface: vLLM's paths, headers and errors, from the same parts that vLLM is made of."""

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mock_engine import VLLM_VERSION, requests, text
from mock_engine.answers import Answer, ClientGone, Stream, Whole
from mock_engine.connection import connection_of
from mock_engine.environment import AbortStyle
from mock_engine.errors import RequestError, error_object
from mock_engine.metrics import Metrics
from mock_engine.requests import Generation, Limits
from mock_engine.scheduler import Scheduler
from mock_engine.shapes import Kind, Shape

_EVENT_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]


@dataclass(slots=True)
class Engine:
    """What the endpoints work on, and the two states that change what they answer."""

    limits: Limits
    scheduler: Scheduler
    metrics: Metrics
    role: str
    pod: str
    abort_style: AbortStyle
    api_keys: tuple[str, ...]
    started: int
    ready: bool = False
    draining: bool = False
    served: int = 0


class Gate:
    """Outermost layer: answers 503 to everything while the model loads, 401 to /v1 without a key."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        """Stands before `app`."""
        self._app = app
        self._engine = engine
        self._keys = {hashlib.sha256(key.encode()).digest() for key in engine.api_keys}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if not self._engine.ready:
            body = error_object(HTTPStatus.SERVICE_UNAVAILABLE, "Loading model", "unavailable_error")
            await JSONResponse(body, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
        elif (
            self._keys
            and scope["path"].startswith("/v1")
            and scope["method"] != "OPTIONS"
            and not self._allowed(scope)
        ):
            await JSONResponse({"error": "Unauthorized"}, HTTPStatus.UNAUTHORIZED)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        for name, value in scope["headers"]:
            if name == b"authorization":
                scheme, _, key = value.partition(b" ")
                return scheme.lower() == b"bearer" and hashlib.sha256(key).digest() in self._keys
        return False


class Generate:
    """The endpoint of chats or of completions, as a bare ASGI application: its chunks bypass ASGI."""

    def __init__(self, engine: Engine, kind: Kind) -> None:
        """Makes the endpoint for one kind of answer."""
        self._engine = engine
        self._kind: Kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        try:
            generation = self._read(await Request(scope, receive).body())
        except ClientDisconnect:
            return
        engine = self._engine
        if engine.draining:
            raise RequestError(500, "cannot schedule new futures after shutdown", "InternalServerError")
        prefix = "chatcmpl" if self._kind == "chat" else "cmpl"
        shape = Shape(
            kind=self._kind,
            id=f"{prefix}-{secrets.token_hex(8)}",
            created=int(time.time()),
            model=generation.model,
            role=engine.role,
            pod=engine.pod,
        )
        connection = connection_of(scope)
        answer: Answer
        if generation.stream:
            answer = Stream(generation, shape, engine.scheduler, connection, engine.abort_style)
            await send({"type": "http.response.start", "status": 200, "headers": list(_EVENT_STREAM)})
        else:
            answer = Whole(generation, shape, engine.scheduler)
        connection.watcher = answer
        engine.served += 1
        answer.submit(engine.served)
        try:
            await answer.ended()
        except ClientGone:
            return
        finally:
            connection.watcher = None
        if isinstance(answer, Whole):
            await JSONResponse(answer.body())(scope, receive, send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _read(self, body: bytes) -> Generation:
        fields = requests.parse_json(body)
        limits = self._engine.limits
        if self._kind == "chat":
            return requests.check(
                fields, chat=True, prompt_tokens=requests.chat_prompt_tokens(fields), limits=limits
            )
        prompts = requests.completion_prompt_tokens(fields)
        return requests.check(fields, chat=False, prompt_tokens=sum(prompts), limits=limits)


def _json(make: Callable[[], object]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return JSONResponse(make())

    return endpoint


async def _empty(_: Request) -> Response:
    return Response()


def _models(engine: Engine) -> dict[str, object]:
    permission = {
        "id": "modelperm-" + secrets.token_hex(8),
        "object": "model_permission",
        "created": engine.started,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    cards = [
        {
            "id": name,
            "object": "model",
            "created": engine.started,
            "owned_by": "vllm",
            "root": engine.limits.models[0],
            "parent": None,
            "max_model_len": engine.limits.max_model_len,
            "permission": [permission],
        }
        for name in engine.limits.models
    ]
    return {"object": "list", "data": cards}


async def _request_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise error
    return JSONResponse(error.body(), error.status)


async def _http_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)


def application(engine: Engine) -> ASGIApp:
    """Returns the ASGI application of an engine."""

    async def metrics(_: Request) -> Response:
        body, content_type = engine.metrics.exposition()
        return Response(body, headers={"content-type": content_type})

    async def tokenize(request: Request) -> Response:
        fields = requests.parse_json(await request.body())
        tokens = [text.token_id(token) for token in text.split(str(fields.get("prompt", "")))]
        return JSONResponse(
            {
                "count": len(tokens),
                "max_model_len": engine.limits.max_model_len,
                "tokens": tokens,
                "token_strs": None,
            }
        )

    routes = [
        Route("/health", _empty),
        Route("/ping", _empty, methods=["GET", "POST"]),
        Route("/version", _json(lambda: {"version": VLLM_VERSION})),
        Route("/load", _json(lambda: {"server_load": 0})),
        Route("/metrics", metrics),
        Route("/v1/models", _json(lambda: _models(engine))),
        Route("/v1/chat/completions", Generate(engine, "chat"), methods=["POST"]),
        Route("/v1/completions", Generate(engine, "completion"), methods=["POST"]),
        Route("/tokenize", tokenize, methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"]),
            Middleware(Gate, engine=engine),
        ],
        exception_handlers={RequestError: _request_error, HTTPException: _http_error},
    )
