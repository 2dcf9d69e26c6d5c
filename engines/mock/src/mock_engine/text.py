"""Made-up text and a made-up tokenizer: a token is a word with the space before it, or a punctuation mark."""

import re
import zlib
from collections.abc import Iterable

# Common words without characters that JSON would escape, so that a chunk can be put together from bytes.
_COMMON = (
    "the of and to in is you that it he was for on are as with his they I at be this have from or one had by"
    " word but not what all were we when your can said there use an each which she do how their if will up"
)
WORDS = tuple(_COMMON.split())
TOKENS = tuple(f" {word}".encode() for word in WORDS)
_TOKEN = re.compile(r"\s?\w+|\s?[^\w\s]|\s+")
_VOCABULARY = 32000
# Tokens that a chat template adds: around each message, and before the answer.
_PER_MESSAGE = 4
_BEFORE_ANSWER = 3


def split(text: str) -> list[str]:
    """Splits a text into its tokens."""
    return _TOKEN.findall(text.encode(errors="replace").decode())


def token_id(token: str) -> int:
    """Returns the number that stands for a token; the same in every run."""
    return zlib.crc32(token.encode()) % _VOCABULARY


def token(number: int) -> str:
    """Returns a token for a number; not the one that it was made from, which nobody has kept."""
    return f" {WORDS[number % len(WORDS)]}"


def chat_tokens(contents: Iterable[str]) -> int:
    """Returns the length in tokens of a chat whose messages have these contents."""
    return _BEFORE_ANSWER + sum(_PER_MESSAGE + len(split(content)) for content in contents)


def answer(seed: int, start: int, number: int) -> bytes:
    """Returns tokens `start` to `start + number` of the answer that belongs to `seed`."""
    if number == 1:
        return TOKENS[(seed + start) % len(TOKENS)]
    return b"".join(TOKENS[(seed + start + i) % len(TOKENS)] for i in range(number))
