"""The engine's HTTP interface: vLLM's paths, headers and errors, from the same parts that vLLM is made of."""

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from mock_engine import VLLM_VERSION, faults, requests, text
from mock_engine.engine import Engine
from mock_engine.errors import RequestError, bad_request
from mock_engine.generate import Generate
from mock_engine.layers import Counted, Keys, Loading, RequestIds

_Endpoint = Callable[[Request], Awaitable[Response]]


def _get(path: str, endpoint: _Endpoint, *more: str) -> Route:
    """Returns a route that, as in FastAPI, does not take HEAD along with GET."""
    route = Route(path, endpoint, methods=["GET", *more])
    route.methods = {"GET", *more}
    return route


def _json(make: Callable[[], object]) -> _Endpoint:
    async def endpoint(_: Request) -> Response:
        return JSONResponse(make())

    return endpoint


async def _empty(_: Request) -> Response:
    return Response()


def _models(engine: Engine) -> dict[str, object]:
    names = engine.limits.models
    cards = [
        {
            "id": name,
            "object": "model",
            "created": engine.started,
            "owned_by": "vllm",
            "root": names[0],
            "parent": None,
            "max_model_len": engine.limits.max_model_len,
            "permission": [_permission(engine.started)],
        }
        for name in names
    ]
    return {"object": "list", "data": cards}


def _permission(created: int) -> dict[str, object]:
    return {
        "id": f"modelperm-{secrets.token_hex(8)}",
        "object": "model_permission",
        "created": created,
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


def _tokenizer_routes(engine: Engine) -> list[Route]:
    async def tokenize(request: Request) -> Response:
        body = requests.parse_json(await request.body(), request.headers.get("content-type"))
        requests.check_model(body, engine.limits)
        tokens = requests.prompt_or_messages(body)
        answer = {
            "count": len(tokens),
            "max_model_len": engine.limits.max_model_len,
            "tokens": [text.token_id(token) for token in tokens],
            "token_strs": tokens if body.get("return_token_strs") else None,
        }
        return JSONResponse(answer)

    async def detokenize(request: Request) -> Response:
        body = requests.parse_json(await request.body(), request.headers.get("content-type"))
        ids = body.get("tokens")
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
            raise bad_request("tokens must be a list of token ids", "tokens")
        return JSONResponse({"prompt": "".join(text.token(one) for one in ids)})

    return [
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
    ]


def _fault_route(engine: Engine) -> Route:
    async def control(request: Request) -> Response:
        if request.method == "PUT":
            try:
                engine.faults.plan = faults.read(await request.body())
            except faults.FaultError as error:
                raise bad_request(str(error), None) from error
            if refuse := engine.faults.plan.get("refuse"):
                engine.refuse(refuse.argument)
        return PlainTextResponse(faults.describe(engine.faults.plan) + "\n")

    return Route("/mock/faults", control, methods=["GET", "PUT"])


async def _request_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestError):
        raise error
    return JSONResponse(error.body(), error.status)


async def _http_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)


def application(engine: Engine, *, api_keys: tuple[str, ...], request_ids: bool, origins: str) -> ASGIApp:
    """Returns the ASGI application of an engine; `origins` is a JSON list of those that CORS allows."""

    async def metrics(_: Request) -> Response:
        body, content_type = engine.metrics.exposition()
        return Response(body, headers={"content-type": content_type})

    routes = [
        _get("/health", _empty),
        _get("/ping", _empty, "POST"),
        _get("/version", _json(lambda: {"version": VLLM_VERSION})),
        _get("/load", _json(lambda: {"server_load": engine.load})),
        _get("/metrics", metrics),
        _get("/v1/models", _json(lambda: _models(engine))),
        Route("/v1/chat/completions", Generate(engine, "chat"), methods=["POST"]),
        Route("/v1/completions", Generate(engine, "completion"), methods=["POST"]),
        *_tokenizer_routes(engine),
    ]
    paths = [(method, route.path) for route in routes for method in route.methods or ()]
    if engine.faults.controllable:
        routes.append(_fault_route(engine))
    cors: dict[str, Any] = {"allow_origins": json.loads(origins), "allow_methods": ["*"], "allow_headers": ["*"]}
    layers = [
        Middleware(Loading, engine=engine),
        *([Middleware(RequestIds)] if request_ids else []),
        Middleware(Keys, keys=api_keys),
        Middleware(CORSMiddleware, **cors),
        Middleware(Counted, paths=paths),
    ]
    handlers = {RequestError: _request_error, HTTPException: _http_error}
    return Starlette(routes=routes, middleware=layers, exception_handlers=handlers)
