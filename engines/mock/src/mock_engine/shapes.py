"""The JSON of answers: the fields that vLLM sends, in its order, for chats and for completions.

Chunks that carry only text are put together from bytes made once per stream; the rest goes through `json`.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

DONE = b"data: [DONE]\n\n"
Kind = Literal["chat", "completion"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Lengths in tokens of a prompt and of all the answers to it."""

    prompt: int
    output: int

    def fields(self, *, streamed: bool) -> dict[str, Any]:
        """Returns the `usage` object."""
        fields: dict[str, Any] = {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.output,
            "completion_tokens": self.output,
        }
        if not streamed:
            fields["prompt_tokens_details"] = None
        return fields


def dump(value: object) -> bytes:
    """Returns a value as JSON without spaces, as vLLM sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def event(value: object) -> bytes:
    """Returns a value as one server-sent event."""
    return b"data: %b\n\n" % dump(value)


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of one request's answer."""

    kind: Kind
    id: str
    created: int
    model: str
    role: str
    pod: str

    def _chunk(self, choices: list[dict[str, Any]], sequence: int, **more: object) -> bytes:
        name = "chat.completion.chunk" if self.kind == "chat" else "text_completion"
        fields = {
            "id": self.id,
            "object": name,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        return event(fields | more | {"x_pod": self.pod, "x_seq": sequence})

    def opening(self, index: int, sequence: int) -> bytes:
        """Returns the event that names the role; only chats have it."""
        if self.kind == "completion":
            return b""
        delta = {"role": self.role, "content": ""}
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        return self._chunk([choice], sequence, prompt_token_ids=None)

    def text_parts(self, index: int) -> tuple[bytes, bytes]:
        """Returns what goes before the text and what goes between the text and the sequence number."""
        chunk = self._chunk([self._choice(index, "\0", None)], 0)
        before, after = chunk.split(b"\\u0000")
        return before, after.removesuffix(b"0}\n\n")

    def _choice(self, index: int, text: str, finish_reason: str | None) -> dict[str, Any]:
        if self.kind == "completion":
            return {
                "index": index,
                "text": text,
                "logprobs": None,
                "finish_reason": finish_reason,
                "stop_reason": None,
                "prompt_token_ids": None,
                "token_ids": None,
            }
        choice: dict[str, Any] = {
            "index": index,
            "delta": {"content": text},
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        if finish_reason is not None:
            choice["stop_reason"] = None
        return choice | {"token_ids": None}

    def closing(self, index: int, text: bytes, finish_reason: str, sequence: int) -> bytes:
        """Returns the event with the last tokens of a choice."""
        return self._chunk([self._choice(index, text.decode(), finish_reason)], sequence)

    def usage(self, usage: Usage, sequence: int) -> bytes:
        """Returns the event that reports the usage."""
        return self._chunk([], sequence, usage=usage.fields(streamed=True))

    def whole(self, texts: list[tuple[bytes, str]], usage: Usage) -> dict[str, Any]:
        """Returns the answer that is not streamed; `texts` has text and finish_reason of each choice."""
        choices: list[dict[str, Any]] = []
        for index, (text, finish_reason) in enumerate(texts):
            if self.kind == "completion":
                choice = self._choice(index, text.decode(), finish_reason) | {"prompt_logprobs": None}
            else:
                message = {
                    "role": self.role,
                    "content": text.decode(),
                    "refusal": None,
                    "annotations": None,
                    "audio": None,
                    "function_call": None,
                    "reasoning": None,
                }
                choice = {
                    "index": index,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": finish_reason,
                    "stop_reason": None,
                    "token_ids": None,
                }
            choices.append(choice)
        fields = {
            "id": self.id,
            "object": "chat.completion" if self.kind == "chat" else "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": None,
            "usage": usage.fields(streamed=False),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        }
        if self.kind == "completion":
            del fields["prompt_logprobs"], fields["prompt_token_ids"]
        return fields
