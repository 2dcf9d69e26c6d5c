"""The OpenAI SDK, unchanged, against the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openai
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.edges.conftest import Engine

HELLO = "hello there"


@pytest.fixture
def sdk(engine: Engine) -> Iterator[openai.OpenAI]:
    """A client as its documentation makes one, without retries that would hide a failure."""
    url = f"http://127.0.0.1:{engine.port}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def test_models(sdk: openai.OpenAI) -> None:
    """The models can be listed."""
    assert [model.id for model in sdk.models.list()] == ["mock/mock-8b"]


def test_chat(sdk: openai.OpenAI) -> None:
    """A chat can be had."""
    answer = sdk.chat.completions.create(
        model="mock/mock-8b", messages=[{"role": "user", "content": HELLO}], max_tokens=5
    )
    assert answer.choices[0].finish_reason in {"length", "stop"}
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 5


def test_chat_stream_with_usage(sdk: openai.OpenAI) -> None:
    """A streamed chat can be read to its usage."""
    stream = sdk.chat.completions.create(
        model="mock/mock-8b",
        messages=[{"role": "user", "content": HELLO}],
        max_tokens=5,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    chunks = list(stream)
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["length"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


def test_completion_stream(sdk: openai.OpenAI) -> None:
    """A streamed completion can be read."""
    chunks = list(sdk.completions.create(model="mock/mock-8b", prompt=HELLO, max_tokens=5, stream=True))
    assert chunks[-1].choices[0].finish_reason in {"length", "stop"}


def test_errors(sdk: openai.OpenAI) -> None:
    """Refusals become the SDK's exceptions."""
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        sdk.chat.completions.create(model="nope", messages=[{"role": "user", "content": HELLO}])
    with pytest.raises(openai.BadRequestError, match="temperature must be non-negative"):
        sdk.chat.completions.create(model="mock/mock-8b", messages=[{"role": "user", "content": HELLO}], temperature=-1)
