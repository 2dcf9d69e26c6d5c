"""Bad input: whatever a client sends, it gets an answer below 500."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_engine import requests
from mock_engine.errors import RequestError

LIMITS = requests.Limits(("m",), 1024, 256, force_include_usage=False)
FIELDS = (
    "model", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens",
    "n", "temperature", "top_p", "ignore_eos",
)  # fmt: skip
NUMBERS = st.integers() | st.floats() | st.integers(-2, 2000)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.text(), "content": VALUES}), max_size=2)


def answer(body: dict[str, Any], *, chat: bool) -> requests.Generation | None:
    """Reads a request as the endpoints do; None when it is refused below 500."""
    try:
        requests.check_shape(body, chat=chat)
        requests.check_model(body, LIMITS)
        prompts = [requests.chat_prompt_tokens(body)] if chat else requests.completion_prompt_tokens(body)
        return requests.check(body, chat=chat, prompts=prompts, limits=LIMITS)
    except RequestError as error:
        refused = error
    assert 400 <= refused.status < 500
    json.dumps(refused.body()).encode()
    return None


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES), MESSAGES, st.booleans())
def test_any_fields(body: dict[str, Any], messages: list[Any], chat: bool) -> None:  # noqa: FBT001 - drawn by name
    """Fields of any type and value are refused, or understood within the engine's limits."""
    if messages:
        body.setdefault("messages", messages)
    generation = answer(body, chat=chat)
    if generation is not None:
        assert 1 <= generation.output_tokens <= generation.max_tokens <= 1024
        assert generation.finish_reason in {"length", "stop"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [10**400, -(10**400), "9" * 5000], ids=["large", "small", "text"])
def test_endless_number(field: str, value: object) -> None:
    """A number that no float holds, or that is too long to be read, is refused or understood in any field."""
    answer({"messages": [{"role": "user", "content": "x"}]} | {field: value}, chat=True)


@pytest.mark.parametrize(
    "body", [b"\xff", b"[" * 100000, b"null", b'"x"', b"1e999", b'{"model":"\\ud800","messages":[]}', b"{" * 3]
)
def test_any_bytes(body: bytes) -> None:
    """A body of any bytes is refused."""
    with pytest.raises(RequestError) as refused:
        requests.check_model(requests.parse_json(body, "application/json"), LIMITS)
    assert 400 <= refused.value.status < 500
    json.dumps(refused.value.body(), ensure_ascii=False).encode()
