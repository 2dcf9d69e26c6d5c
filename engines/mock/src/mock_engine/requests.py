"""What a client asks for: reads and checks the bodies of /v1/chat/completions and /v1/completions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mock_engine import text
from mock_engine.errors import RequestError, bad_request

_COMPLETION_MAX_TOKENS = 16
_MOST_CHOICES = 16384
# The type of an error in the body's shape; one in a value of it is a BadRequestError.
_SHAPE = "Bad Request"
_TRUE = {"1", "true", "t", "yes", "y", "on"}
_FALSE = {"0", "false", "f", "no", "n", "off"}


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
    prompts: tuple[int, ...]
    max_tokens: int
    output_tokens: int
    finish_reason: str
    choices_per_prompt: int
    stream: bool
    include_usage: bool
    continuous_usage: bool


def parse_json(body: bytes, content_type: str | None) -> dict[str, Any]:
    """Reads a body as a JSON object.

    Raises:
        RequestError: it is not declared as JSON, is not JSON, or not an object.
    """
    if content_type is None or content_type.partition(";")[0].strip().lower() != "application/json":
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise RequestError(400, message, _SHAPE)
    if not body:
        raise _invalid("", "missing", "Field required", input="None")
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        detail = {"input": "<dict of 0 items>", "ctx": {"error": error.msg}}
        raise _invalid(str(error.pos), "json_invalid", "JSON decode error", **detail) from error
    except (ValueError, RecursionError) as error:
        raise bad_request("There was an error parsing the body", None) from error
    if not isinstance(value, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        raise _invalid("", "model_attributes_type", message, input=_summary(value))
    return value


def _summary(value: object) -> str:
    """Returns what vLLM's message shows of a value: containers are counted, not shown."""
    if isinstance(value, list | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    return str(value)


def _invalid(field: str, kind: str, expected: str, **detail: object) -> RequestError:
    location = f"body.{field}" if field else "body"
    shown = {"type": kind, "loc": location, "msg": expected} | detail
    return RequestError(400, f"1 validation error:\n  {shown}", _SHAPE, location)


def _refused(field: str, message: str, value: object) -> RequestError:
    return bad_request(f"{message} (parameter={field}, value={value})", field)


def _number(body: Mapping[str, Any], field: str) -> float | None:
    value = body.get(field)
    if value is None:
        return None
    kind, message = "float_type", "Input should be a valid number"
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise _invalid(field, kind, message) from None
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            kind, message = "float_parsing", f"{message}, unable to parse string as a number"
    raise _invalid(field, kind, message, input=_summary(value))


def _whole(body: Mapping[str, Any], field: str) -> int | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    kind, message = "int_type", "Input should be a valid integer"
    if isinstance(value, float):
        kind, message = "int_from_float", f"{message}, got a number with a fractional part"
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            kind, message = "int_parsing", f"{message}, unable to parse string as an integer"
    raise _invalid(field, kind, message, input=_summary(value))


def _flag(body: Mapping[str, Any], field: str) -> bool:
    value = body.get(field)
    if value is None or isinstance(value, bool):
        return bool(value)
    if str(value).lower() in _TRUE | _FALSE:
        return str(value).lower() in _TRUE
    message = "Input should be a valid boolean, unable to interpret input"
    raise _invalid(field, "bool_parsing", message, input=_summary(value))


def check_model(body: Mapping[str, Any], limits: Limits) -> str:
    """Returns the model that a body asks for, the first one when it names none.

    Raises:
        RequestError: no such model is served.
    """
    model = body.get("model")
    if not model:
        return limits.models[0]
    if model not in limits.models:
        aliases = ", ".join(limits.models)
        message = f"The model `{model}` does not exist. Valid aliases: {aliases}."
        raise RequestError(404, message, "NotFoundError", "model")
    return str(model)


def _check_messages(body: Mapping[str, Any]) -> None:
    if "messages" not in body:
        raise _invalid("messages", "missing", "Field required", input=_summary(body))
    messages = body["messages"]
    if not isinstance(messages, list):
        raise _invalid("messages", "list_type", "Input should be a valid list", input=_summary(messages))
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or "role" not in message:
            raise _invalid(f"messages.{index}.role", "missing", "Field required", input=_summary(message))


def check_shape(body: Mapping[str, Any], *, chat: bool) -> None:
    """Checks that the fields have the types that they must have, which vLLM does before anything else.

    Raises:
        RequestError: one of them has not.
    """
    if chat:
        _check_messages(body)
    model = body.get("model")
    if model is not None and not isinstance(model, str):
        raise _invalid("model", "string_type", "Input should be a valid string", input=_summary(model))
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        message = "Input should be a valid dictionary or instance of StreamOptions"
        raise _invalid("stream_options", "model_type", message, input=_summary(options))
    for field in ("stream", "ignore_eos"):
        _flag(body, field)
    for field in ("max_tokens", "max_completion_tokens", "min_tokens", "n"):
        _whole(body, field)
    for field in ("temperature", "top_p"):
        _number(body, field)


def _check_sampling(body: Mapping[str, Any]) -> None:
    temperature = _number(body, "temperature")
    if temperature is not None and temperature < 0:
        raise _refused("temperature", f"temperature must be non-negative, got {temperature}.", temperature)
    top_p = _number(body, "top_p")
    if top_p is not None and not 0 < top_p <= 1:
        raise _refused("top_p", f"top_p must be in (0, 1], got {top_p}.", top_p)


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
        RequestError: there are no messages.
    """
    messages = body["messages"]
    if not messages:
        raise bad_request("Cannot apply chat template to an empty conversation. Provide at least one message.", None)
    return text.chat_tokens(_content_text(message.get("content")) for message in messages)


def prompt_or_messages(body: Mapping[str, Any]) -> list[str]:
    """Returns the tokens of what a client wants tokenized: a prompt, or the messages of a chat.

    Raises:
        RequestError: it gave neither.
    """
    if isinstance(body.get("prompt"), str):
        return text.split(body["prompt"])
    if "messages" not in body:
        raise _invalid("prompt", "missing", "Field required", input=_summary(body))
    check_shape(body, chat=True)
    number = chat_prompt_tokens(body)
    tokens = [one for message in body["messages"] for one in text.split(_content_text(message.get("content")))]
    return ["<template>"] * (number - len(tokens)) + tokens


def completion_prompt_tokens(body: Mapping[str, Any]) -> list[int]:
    """Checks the prompts of a completion and returns the length in tokens of each.

    Raises:
        RequestError: there is no prompt, or it has no form that vLLM knows.
    """
    prompt = body.get("prompt")
    if prompt == []:
        raise bad_request("You must pass at least one prompt", None)
    if prompt and isinstance(prompt, str):
        return [len(text.split(prompt))]
    if isinstance(prompt, list):
        if all(isinstance(item, int) for item in prompt):
            return [len(prompt)]
        if all(isinstance(item, str) for item in prompt):
            return [len(text.split(item)) for item in prompt]
        if all(isinstance(item, list) for item in prompt):
            return [len(item) for item in prompt]
    message = "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)"
    raise bad_request(message, "prompt")


def _max_tokens(body: Mapping[str, Any], fields: Sequence[str], default: int, room: int, longest: int) -> int:
    """Returns how many tokens were asked for; `room` is what the prompt leaves of `longest`."""
    for field in fields:
        value = _whole(body, field)
        if value is None:
            continue
        if value < 1:
            raise _refused("max_tokens", f"max_tokens must be at least 1, got {value}.", value)
        if value > longest:
            message = f"max_tokens={value} cannot be greater than max_model_len={longest}."
            raise _refused("max_tokens", f"{message} Please request fewer output tokens.", value)
        return min(room, value)
    return min(room, default)


def _check_choices(body: Mapping[str, Any]) -> int:
    choices = _whole(body, "n")
    if choices is None:
        return 1
    if choices < 1:
        raise bad_request(f"n must be at least 1, got {choices}.", None)
    if choices > _MOST_CHOICES:
        raise bad_request(f"n must be at most {_MOST_CHOICES}, got {choices}.", None)
    return choices


def check(body: Mapping[str, Any], *, chat: bool, prompts: Sequence[int], limits: Limits) -> Generation:
    """Checks what chats and completions have in common; `prompts` are the prompts' lengths in tokens.

    Raises:
        RequestError: vLLM would refuse it; the error says which parameter and which value.
    """
    stream = _flag(body, "stream")
    options = body.get("stream_options") or {}
    _check_sampling(body)
    if options and not stream:
        message = "Stream options can only be defined when `stream=True`. (parameter=stream_options)"
        raise bad_request(message, "stream_options")
    model = check_model(body, limits)
    longest = limits.max_model_len
    room = longest - max(prompts)
    if room < 1:
        message = (
            f"This model's maximum context length is {longest} tokens. However, your prompt contains at least"
            f" {longest + 1} input tokens, which exceeds this limit even without any output tokens."
            f" Please reduce the length of the input prompt."
        )
        raise _refused("input_tokens", message, longest + 1)
    fields = ("max_completion_tokens", "max_tokens") if chat else ("max_tokens",)
    max_tokens = _max_tokens(body, fields, longest if chat else _COMPLETION_MAX_TOKENS, room, longest)
    min_tokens = _whole(body, "min_tokens") or 0
    if min_tokens > max_tokens:
        message = f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {min_tokens}."
        raise bad_request(message, None)
    natural = max_tokens if _flag(body, "ignore_eos") else max(limits.answer_tokens, min_tokens)
    return Generation(
        model=model,
        prompts=tuple(prompts),
        max_tokens=max_tokens,
        output_tokens=min(max_tokens, natural),
        finish_reason="length" if max_tokens <= natural else "stop",
        choices_per_prompt=_check_choices(body),
        stream=stream,
        include_usage=limits.force_include_usage or bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )
