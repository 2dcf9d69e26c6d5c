"""Completions: the fields of whole answers and of chunks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.edges.conftest import Answer, Engine


def complete(engine: Engine, **fields: object) -> Answer:
    """Sends a completion."""
    return engine.ask("POST", "/v1/completions", {"prompt": "hi there", "ignore_eos": True} | fields)


def test_whole_answer(engine: Engine) -> None:
    """A completion that is not streamed has vLLM's fields, and 16 tokens unless more are asked for."""
    body = complete(engine).json()
    assert list(body) == [
        "id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage",
        "kv_transfer_params", "ec_transfer_params", "metrics",
    ]  # fmt: skip
    assert re.fullmatch(r"cmpl-[0-9a-f]{16}", body["id"])
    assert body["object"] == "text_completion"
    (choice,) = body["choices"]
    assert list(choice) == [
        "index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs",
        "prompt_token_ids", "routed_experts",
    ]  # fmt: skip
    assert choice["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 16


def test_stream(engine: Engine) -> None:
    """A stream has no role chunk; its last chunk has finish_reason, and the end mark follows."""
    answer = complete(engine, max_tokens=4, stream=True)
    assert answer.events[-1] == "[DONE]"
    for chunk in answer.chunks:
        assert chunk["object"] == "text_completion"
        assert list(chunk["choices"][0]) == [
            "index", "text", "logprobs", "finish_reason", "stop_reason", "prompt_token_ids", "token_ids",
        ]  # fmt: skip
    assert answer.finish_reasons == ["length"]
    assert "system_fingerprint" in answer.chunks[-1]
    assert not any("usage" in chunk for chunk in answer.chunks)


def test_stream_with_usage(engine: Engine) -> None:
    """Usage comes when asked for, in a chunk without choices."""
    last = complete(engine, max_tokens=4, stream=True, stream_options={"include_usage": True}).chunks[-1]
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 4)


def test_several_prompts(engine: Engine) -> None:
    """Each prompt has its choices; usage is over all of them."""
    body = complete(engine, prompt=["a", "b"], n=2, max_tokens=2).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert body["usage"]["completion_tokens"] == 8


def test_prompt_of_token_ids(engine: Engine) -> None:
    """A prompt may be given as token ids."""
    assert complete(engine, prompt=[1, 2, 3], max_tokens=1).json()["usage"]["prompt_tokens"] == 3
