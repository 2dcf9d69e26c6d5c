"""Chats: the fields of whole answers and of every kind of chunk."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.edges.conftest import Engine

# What the mock adds for clients that check; vLLM's clients ignore it.
IDENTITY = {"x_pod", "x_seq"}


def fields(chunk: dict[str, Any]) -> set[str]:
    """Returns a chunk's fields without those that only the mock has."""
    return set(chunk) - IDENTITY


def test_whole_answer(engine: Engine) -> None:
    """A chat that is not streamed has vLLM's fields, in the answer, its choice, its message and its usage."""
    answer = engine.chat(max_tokens=3)
    body = answer.json()
    assert answer.status == 200
    assert list(body) == [
        "id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage",
        "prompt_logprobs", "prompt_token_ids", "prompt_text", "kv_transfer_params", "ec_transfer_params", "metrics",
    ]  # fmt: skip
    assert re.fullmatch(r"chatcmpl-[0-9a-f]{16}", body["id"])
    assert (body["object"], body["model"]) == ("chat.completion", "mock/mock-8b")
    (choice,) = body["choices"]
    expected = ["index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids", "routed_experts"]
    assert list(choice) == expected
    assert (choice["finish_reason"], choice["stop_reason"]) == ("length", None)
    message = ["role", "content", "refusal", "annotations", "audio", "function_call", "reasoning"]
    assert list(choice["message"]) == message
    assert choice["message"]["role"] == "assistant"
    usage = body["usage"]
    assert list(usage) == [
        "prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details",
    ]  # fmt: skip
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3
    assert re.fullmatch(r"vllm-0\.\d+\.\d+\S*-[0-9a-f]{8}", body["system_fingerprint"])


def test_stream(engine: Engine) -> None:
    """A stream is a role chunk, one chunk per token or few, one with finish_reason, and the end mark."""
    answer = engine.chat(max_tokens=5, stream=True)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.events[-1] == "[DONE]"
    first, *middle, last = answer.chunks
    common = {"id", "object", "created", "model", "choices"}
    assert fields(first) == common | {"prompt_token_ids", "prompt_text"}
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert middle
    for chunk in middle:
        assert fields(chunk) == common
        (choice,) = chunk["choices"]
        assert list(choice) == ["index", "delta", "logprobs", "finish_reason", "token_ids"]
        assert (list(choice["delta"]), choice["finish_reason"]) == (["content"], None)
    assert fields(last) == common | {"system_fingerprint"}
    (choice,) = last["choices"]
    assert list(choice) == ["index", "delta", "logprobs", "finish_reason", "stop_reason", "token_ids"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("length", None)
    assert {chunk["id"] for chunk in answer.chunks} == {first["id"]}
    assert {chunk["object"] for chunk in answer.chunks} == {"chat.completion.chunk"}
    assert not any("usage" in chunk for chunk in answer.chunks)


def test_stream_with_usage(engine: Engine) -> None:
    """Usage comes when asked for, in a chunk of its own without choices, before the end mark."""
    answer = engine.chat(max_tokens=5, stream=True, stream_options={"include_usage": True})
    *chunks, last = answer.chunks
    assert fields(last) == {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"}
    assert last["choices"] == []
    assert list(last["usage"]) == ["prompt_tokens", "total_tokens", "completion_tokens"]
    assert last["usage"]["completion_tokens"] == 5
    assert "system_fingerprint" not in chunks[-1]
    assert answer.events[-1] == "[DONE]"


def test_stream_with_continuous_usage(engine: Engine) -> None:
    """Usage comes with every chunk when asked for so."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = engine.chat(max_tokens=4, stream=True, stream_options=options).chunks
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts[0] == 0
    assert counts[-1] == 4
    assert counts == sorted(counts)
    assert all("completion_tokens_details" in chunk["usage"] for chunk in chunks[:-1])


def test_stream_of_two_choices(engine: Engine) -> None:
    """Each choice has its own role chunk and its own finish_reason."""
    answer = engine.chat(max_tokens=3, n=2, stream=True)
    roles = [chunk["choices"][0]["index"] for chunk in answer.chunks if "prompt_token_ids" in chunk]
    assert roles == [0, 1]
    assert answer.finish_reasons == ["length", "length"]
    assert answer.events.count("[DONE]") == 1


def test_whole_answer_of_two_choices(engine: Engine) -> None:
    """Usage is over all choices."""
    body = engine.chat(max_tokens=3, n=2).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert body["usage"]["completion_tokens"] == 6


@pytest.mark.parametrize(
    "more",
    [
        {"model": "mock/mock-8b"},
        {"model": ""},
        {"model": None},
        {"unknown_field": 1},
        {"messages": [{"role": "weird", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"max_tokens": "2"},
        {"max_tokens": 1022},
    ],
    ids=str,
)
def test_accepted(engine: Engine, more: dict[str, Any]) -> None:
    """What vLLM is lenient about is accepted."""
    assert engine.chat(ignore_eos=True, **more).status == 200


def test_max_completion_tokens_wins(engine: Engine) -> None:
    """Of the two names for the longest answer the newer one counts."""
    body = engine.chat(max_tokens=2, max_completion_tokens=3, ignore_eos=True).json()
    assert body["usage"]["completion_tokens"] == 3


def test_first_token_does_not_wait_for_the_last(engine: Engine) -> None:
    """The response begins long before it ends."""
    begun = time.monotonic()
    answer = engine.begin(stream=True).result()
    whole = time.monotonic() - begun
    assert answer.ended == "complete"
    assert answer.first_byte - begun < whole / 2
