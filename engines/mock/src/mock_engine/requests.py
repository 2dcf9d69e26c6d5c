"""What a client asks for: reads and checks the bodies of /v1/chat/completions and /v1/completions."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mock_engine import text
from mock_engine.errors import RequestError, bad_request

_COMPLETION_MAX_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine can do: the names it answers to and its lengths in tokens."""

    models: tuple[str, ...]
    max_model_len: int
    answer_tokens: int
    force_include_usage: bool


@dataclass(frozen=True, slots=True)
class Generation:
    """One request, checked. Lengths are in tokens."""

    model: str
    prompt_tokens: int
    max_tokens: int
    output_tokens: int
    finish_reason: str
    choices: int
    stream: bool
    include_usage: bool
    continuous_usage: bool


def parse_json(body: bytes) -> dict[str, Any]:
    """Reads a body as a JSON object.

    Raises:
        RequestError: it is not JSON, or not an object.
    """
    try:
        value = json.loads(body)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        detail = {"type": "json_invalid", "loc": ("body", at), "msg": "JSON decode error"}
        raise RequestError(400, f"1 validation error:\n  {detail}", "Bad Request", f"body.{at}") from error
    if not isinstance(value, dict):
        raise _invalid(
            "",
            "model_attributes_type",
            "Input should be a valid dictionary or object to extract fields from",
            value,
        )
    return value


def _invalid(field: str, kind: str, expected: str, value: object) -> RequestError:
    location = f"('body', {field!r})" if field else "('body',)"
    detail = {"type": kind, "loc": "", "msg": expected, "input": value}
    shown = str(detail).replace("'loc': ''", f"'loc': {location}", 1)
    return RequestError(
        400, f"1 validation error:\n  {shown}", "Bad Request", f"body.{field}" if field else "body"
    )


def _number(body: Mapping[str, Any], field: str) -> float | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _invalid(field, "float_type", "Input should be a valid number", value)
    return float(value)


def _whole(body: Mapping[str, Any], field: str) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    if isinstance(value, str):
        raise _invalid(
            field,
            "int_parsing",
            "Input should be a valid integer, unable to parse string as an integer",
            value,
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise _invalid(field, "int_type", "Input should be a valid integer", value)
    return int(value)


def _check_model(body: Mapping[str, Any], limits: Limits) -> str:
    model = body.get("model")
    if model is None:
        return limits.models[0]
    if not isinstance(model, str):
        raise _invalid("model", "string_type", "Input should be a valid string", model)
    if model not in limits.models:
        raise RequestError(404, f"The model `{model}` does not exist.", "NotFoundError", "model")
    return model


def _check_sampling(body: Mapping[str, Any]) -> None:
    temperature = _number(body, "temperature")
    if temperature is not None and temperature < 0:
        raise bad_request(f"temperature must be non-negative, got {temperature}.", "temperature")
    top_p = _number(body, "top_p")
    if top_p is not None and not 0 < top_p <= 1:
        raise bad_request(f"top_p must be in (0, 1], got {top_p}.", "top_p")


def _content_text(content: object) -> str:
    """Returns the text of a message's content: a string, or parts some of which hold text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def chat_prompt_tokens(body: Mapping[str, Any]) -> int:
    """Checks the messages of a chat and returns its length in tokens.

    Raises:
        RequestError: there are no messages, or they are not messages.
    """
    messages = body.get("messages")
    if "messages" not in body:
        raise _invalid("messages", "missing", "Field required", dict(body))
    if not isinstance(messages, list):
        raise _invalid("messages", "list_type", "Input should be a valid list", messages)
    if not messages:
        raise bad_request("messages must not be empty.", None)
    return text.chat_tokens(
        _content_text(message.get("content")) for message in messages if isinstance(message, dict)
    )


def completion_prompt_tokens(body: Mapping[str, Any]) -> list[int]:
    """Checks the prompts of a completion and returns the length in tokens of each.

    Raises:
        RequestError: there is no prompt, or it has no form that vLLM knows.
    """
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [len(text.split(prompt))]
    if isinstance(prompt, list) and prompt:
        if all(isinstance(item, int) for item in prompt):
            return [len(prompt)]
        if all(isinstance(item, str) for item in prompt):
            return [len(text.split(item)) for item in prompt]
        if all(isinstance(item, list) for item in prompt):
            return [len(item) for item in prompt]
    raise bad_request("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


def _max_tokens(
    body: Mapping[str, Any], fields: Iterable[str], default: int | None, room: int, limits: Limits
) -> int:
    longest = limits.max_model_len
    for field in fields:
        value = _whole(body, field)
        if value is None:
            continue
        if value < 1:
            raise bad_request(f"max_tokens must be at least 1, got {value}.", "max_tokens")
        if value > room:
            raise bad_request(
                f"'max_tokens' or 'max_completion_tokens' is too large: {value}. This model's maximum context"
                f" length is {longest} tokens and your request has {longest - room} input tokens"
                f" ({value} > {longest} - {longest - room}).",
                "max_tokens",
            )
        return value
    return max(1, min(room, default) if default is not None else room)


def check(body: Mapping[str, Any], *, chat: bool, prompt_tokens: int, limits: Limits) -> Generation:
    """Checks what chats and completions have in common.

    Raises:
        RequestError: vLLM would refuse it; the error says which parameter and which value.
    """
    model = _check_model(body, limits)
    _check_sampling(body)
    stream = bool(body.get("stream"))
    options = body.get("stream_options") or {}
    if options and not stream:
        raise bad_request("Stream options can only be defined when `stream=True`.", "stream_options")
    room = limits.max_model_len - prompt_tokens
    if room < 1:
        raise bad_request(
            f"This model's maximum context length is {limits.max_model_len} tokens. However, your request has"
            f" {prompt_tokens} input tokens. Please reduce the length of the input messages.",
            "input_tokens",
        )
    fields = ("max_completion_tokens", "max_tokens") if chat else ("max_tokens",)
    max_tokens = _max_tokens(body, fields, None if chat else _COMPLETION_MAX_TOKENS, room, limits)
    natural = (
        max_tokens if body.get("ignore_eos") else max(limits.answer_tokens, _whole(body, "min_tokens") or 0)
    )
    choices = _whole(body, "n") or 1
    if choices < 1:
        raise bad_request(f"n must be at least 1, got {choices}.", "n")
    return Generation(
        model=model,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        output_tokens=min(max_tokens, natural),
        finish_reason="length" if max_tokens <= natural else "stop",
        choices=choices,
        stream=stream,
        include_usage=limits.force_include_usage or bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )
