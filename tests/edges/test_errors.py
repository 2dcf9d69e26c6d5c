"""Refusals: status, type, parameter and message of every kind of bad request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.edges.conftest import Engine

MESSAGES = [{"role": "user", "content": "hi"}]
CHAT = "/v1/chat/completions"


NO_MODEL = "The model `nope` does not exist. Valid aliases: mock/mock-8b."
NO_MESSAGES = "Cannot apply chat template to an empty conversation. Provide at least one message."
TOO_LONG = "max_tokens=100000 cannot be greater than max_model_len=1024. Please request fewer output tokens."


def error(status: int, kind: str, param: str | None, message: str) -> dict[str, object]:
    """Returns an error object as it is sent."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def refused(param: str | None, message: str) -> dict[str, object]:
    """Returns the error for a value that is refused."""
    return error(400, "BadRequestError", param, message)


def invalid(location: str, kind: str, message: str, **more: object) -> dict[str, object]:
    """Returns the error for a body that has not the shape of a request."""
    detail = {"type": kind, "loc": location, "msg": message} | more
    return error(400, "Bad Request", location, f"1 validation error:\n  {detail}")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"model": "nope"}, error(404, "NotFoundError", "model", NO_MODEL)),
        ({"model": "nope", "max_tokens": 0}, error(404, "NotFoundError", "model", NO_MODEL)),
        (
            {"max_tokens": 100000},
            refused("max_tokens", f"{TOO_LONG} (parameter=max_tokens, value=100000)"),
        ),
        (
            {"max_tokens": 0},
            refused("max_tokens", "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"),
        ),
        (
            {"temperature": -1},
            refused(
                "temperature",
                "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
            ),
        ),
        ({"top_p": 2}, refused("top_p", "top_p must be in (0, 1], got 2.0. (parameter=top_p, value=2.0)")),
        ({"n": 0}, refused(None, "n must be at least 1, got 0.")),
        (
            {"min_tokens": 5, "max_tokens": 2},
            refused(None, "min_tokens must be less than or equal to max_tokens=2, got 5."),
        ),
        ({"messages": []}, refused(None, NO_MESSAGES)),
        (
            {"messages": "x"},
            invalid("body.messages", "list_type", "Input should be a valid list", input="x"),
        ),
        (
            {"max_tokens": "x"},
            invalid(
                "body.max_tokens",
                "int_parsing",
                "Input should be a valid integer, unable to parse string as an integer",
                input="x",
            ),
        ),
        (
            {"max_tokens": 1.5, "model": "nope"},
            invalid(
                "body.max_tokens",
                "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
                input="1.5",
            ),
        ),
        (
            {"temperature": "x"},
            invalid(
                "body.temperature",
                "float_parsing",
                "Input should be a valid number, unable to parse string as a number",
                input="x",
            ),
        ),
        ({"model": 5}, invalid("body.model", "string_type", "Input should be a valid string", input="5")),
    ],
    ids=str,
)
def test_refused_value(
    engine: Engine, more: dict[str, object], expected: dict[str, dict[str, object]], *, stream: bool
) -> None:
    """A bad value is refused, streamed or not, with an error object that names it."""
    answer = engine.ask("POST", CHAT, {"messages": MESSAGES, "stream": stream} | more)
    assert answer.status == expected["error"]["code"]
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b"{bad",
            invalid(
                "body.1",
                "json_invalid",
                "JSON decode error",
                input="<dict of 0 items>",
                ctx={"error": "Expecting property name enclosed in double quotes"},
            ),
        ),
        (
            b"[1]",
            invalid(
                "body",
                "model_attributes_type",
                "Input should be a valid dictionary or object to extract fields from",
                input="<list of 1 items>",
            ),
        ),
        (b"{}", invalid("body.messages", "missing", "Field required", input="<dict of 0 items>")),
        (b"", invalid("body", "missing", "Field required", input="None")),
        (
            b'{"messages":[],"stream":"x"}',
            invalid(
                "body.stream",
                "bool_parsing",
                "Input should be a valid boolean, unable to interpret input",
                input="x",
            ),
        ),
    ],
    ids=str,
)
def test_refused_body(engine: Engine, body: bytes, expected: dict[str, object]) -> None:
    """A body that is not a request is refused before its values are looked at."""
    answer = engine.ask("POST", CHAT, body)
    assert (answer.status, answer.json()) == (400, expected)


def test_content_type_is_required(engine: Engine) -> None:
    """A body that is not declared as JSON is refused."""
    answer = engine.ask("POST", CHAT, {"messages": MESSAGES}, {"Content-Type": "text/plain"})
    assert answer.status == 400
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    assert answer.json() == error(400, "Bad Request", None, message)


def test_content_type_may_have_parameters(engine: Engine) -> None:
    """A charset behind the content type changes nothing."""
    kind = {"Content-Type": "application/json; charset=utf-8"}
    assert engine.ask("POST", CHAT, {"messages": MESSAGES, "max_tokens": 1}, kind).status == 200


def test_stream_options_without_stream(engine: Engine) -> None:
    """Options of a stream are refused where there is none."""
    answer = engine.chat(stream_options={"include_usage": True})
    assert answer.status == 400
    assert answer.json()["error"]["param"] == "stream_options"
    assert answer.json()["error"]["type"] == "BadRequestError"


def test_prompt_that_is_too_long(engine: Engine) -> None:
    """A prompt that leaves no room is refused."""
    got = engine.chat(messages=[{"role": "user", "content": "hi " * 1500}]).json()["error"]
    assert (got["type"], got["param"], got["code"]) == ("BadRequestError", "input_tokens", 400)
    assert got["message"].startswith("This model's maximum context length is 1024 tokens.")


@pytest.mark.parametrize(
    ("body", "param"), [({}, "prompt"), ({"prompt": ""}, "prompt"), ({"prompt": []}, None)], ids=str
)
def test_completion_without_a_prompt(engine: Engine, body: dict[str, object], param: str | None) -> None:
    """A completion needs a prompt."""
    answer = engine.ask("POST", "/v1/completions", body)
    assert (answer.status, answer.json()["error"]["type"]) == (400, "BadRequestError")
    assert answer.json()["error"]["param"] == param
