"""The JSON of answers: the fields that vLLM sends, in its order, for chats and for completions.

Chunks that carry only text are put together from bytes made once per stream; the rest goes through `json`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mock_engine import VLLM_VERSION

DONE = b"data: [DONE]\n\n"
Kind = Literal["chat", "completion"]
# vLLM puts a hash of its configuration behind its version.
FINGERPRINT = f"vllm-{VLLM_VERSION}-00000000"


@dataclass(frozen=True, slots=True)
class Usage:
    """Lengths in tokens of all prompts and of all the answers to them."""

    prompt: int
    output: int

    def fields(self) -> dict[str, Any]:
        """Returns the counts of the `usage` object."""
        return {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.output,
            "completion_tokens": self.output,
        }


def event(value: object) -> bytes:
    """Returns a value as one server-sent event, its JSON without spaces as vLLM sends it."""
    return b"data: %b\n\n" % json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def error_event(value: object) -> bytes:
    """Returns an error object as a server-sent event; vLLM leaves the spaces in this one's JSON."""
    return b"data: %b\n\n" % json.dumps(value).encode()


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of one request's answer. `created` is in Unix seconds."""

    kind: Kind
    id: str
    created: int
    model: str
    role: str
    pod: str

    def _chunk(self, choices: list[dict[str, Any]], sequence: int, more: dict[str, Any]) -> bytes:
        name = "chat.completion.chunk" if self.kind == "chat" else "text_completion"
        fields = {"id": self.id, "object": name, "created": self.created, "model": self.model, "choices": choices}
        return event(fields | more | {"x_pod": self.pod, "x_seq": sequence})

    def opening(self, index: int, sequence: int, usage: Usage | None) -> bytes:
        """Returns the event that names the role; only chats have it."""
        delta = {"role": self.role, "content": ""}
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        more = _running(usage) | {"prompt_token_ids": None, "prompt_text": None}
        return self._chunk([choice], sequence, more)

    def text(self, index: int, text: bytes, sequence: int, usage: Usage | None) -> bytes:
        """Returns an event with tokens that are not the last."""
        return self._chunk([self._choice(index, text.decode(), None)], sequence, _running(usage))

    def text_parts(self, index: int) -> tuple[bytes, bytes]:
        """Returns what goes before the text and what goes between the text and the sequence number."""
        before, after = self.text(index, b"\0", 0, None).split(b"\\u0000")
        return before, after.removesuffix(b"0}\n\n")

    def closing(
        self, index: int, text: bytes, finish_reason: str, sequence: int, *, usage: Usage | None, fingerprint: bool
    ) -> bytes:
        """Returns the event with the last tokens of a choice."""
        more = _running(usage) | ({"system_fingerprint": FINGERPRINT} if fingerprint else {})
        return self._chunk([self._choice(index, text.decode(), finish_reason)], sequence, more)

    def usage(self, usage: Usage, sequence: int) -> bytes:
        """Returns the event that reports the usage."""
        return self._chunk([], sequence, {"usage": usage.fields(), "system_fingerprint": FINGERPRINT})

    def _choice(self, index: int, text: str, finish_reason: str | None) -> dict[str, Any]:
        content = {"text": text} if self.kind == "completion" else {"delta": {"content": text}}
        choice = {"index": index} | content | {"logprobs": None, "finish_reason": finish_reason}
        if self.kind == "completion":
            return choice | {"stop_reason": None, "prompt_token_ids": None, "token_ids": None}
        if finish_reason is not None:
            choice["stop_reason"] = None
        return choice | {"token_ids": None}

    def whole(self, texts: Sequence[tuple[bytes, str]], usage: Usage) -> dict[str, Any]:
        """Returns the answer that is not streamed; `texts` has text and finish_reason of each choice."""
        chat = self.kind == "chat"
        make = self._chat_choice if chat else _completion_choice
        of_prompt = {"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None}
        details = {"prompt_tokens_details": None, "completion_tokens_details": None}
        return (
            {
                "id": self.id,
                "object": "chat.completion" if chat else "text_completion",
                "created": self.created,
                "model": self.model,
                "choices": [make(index, text.decode(), reason) for index, (text, reason) in enumerate(texts)],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": usage.fields() | details,
            }
            | (of_prompt if chat else {})
            | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
        )

    def _chat_choice(self, index: int, text: str, finish_reason: str) -> dict[str, Any]:
        unused = ("refusal", "annotations", "audio", "function_call", "reasoning")
        return {
            "index": index,
            "message": {"role": self.role, "content": text} | dict.fromkeys(unused),
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": None,
            "token_ids": None,
            "routed_experts": None,
        }


def _completion_choice(index: int, text: str, finish_reason: str) -> dict[str, Any]:
    unused = ("stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts")
    choice = {"index": index, "text": text, "logprobs": None, "finish_reason": finish_reason}
    return choice | dict.fromkeys(unused)


def _running(usage: Usage | None) -> dict[str, Any]:
    """Returns the usage so far, for streams that asked for it in every chunk."""
    return {} if usage is None else {"usage": usage.fields() | {"completion_tokens_details": None}}
