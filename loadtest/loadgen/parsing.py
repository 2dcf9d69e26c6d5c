"""From the text of one environment variable to its value, or to a sentence on what to write instead."""

import math
from collections.abc import Callable
from urllib.parse import urlsplit

MAX_STREAMS = 100_000


class UnusableError(ValueError):
    """Says what to write instead."""


def seconds(*, zero: bool = False, most: float = 7 * 86400) -> Callable[[str], float]:
    """Returns a parser of seconds up to `most`, with or without 0."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (0 <= value <= most) or (value == 0 and not zero):
            least = "0 or more" if zero else "above 0"
            raise UnusableError(f"write a number of seconds, {least} and at most {most:g}, for example 5 or 0.5")
        return value

    return parse


def count(least: int, most: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers in a range."""

    def parse(text: str) -> int:
        try:
            value = int(text) if text.isascii() and text.isdecimal() else least - 1
        except ValueError:  # more digits than Python reads
            value = least - 1
        if not least <= value <= most:
            raise UnusableError(f"write a whole number from {least} to {most}")
        return value

    return parse


def rate(text: str) -> float:
    """Parses requests per second."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_STREAMS:
        raise UnusableError(f"write requests per second, above 0 and at most {MAX_STREAMS}, for example 20 or 0.5")
    return value


def one_of(*choices: str) -> Callable[[str], str]:
    """Returns a parser of one word among several."""

    def parse(text: str) -> str:
        if text not in choices:
            raise UnusableError("write one of " + ", ".join(choices))
        return text

    return parse


def target(text: str) -> str:
    """Parses the base address of a service; returns it without a slash at the end."""
    example = "write the service's base address, for example http://mock-inference-service:8000"
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0
    except ValueError as error:
        raise UnusableError(f"{example} ({error})") from error
    if parts.scheme != "http" or not parts.hostname or not port_is_fine:
        raise UnusableError(f"{example} (http only)")
    if parts.query or parts.fragment or parts.username is not None or not text.isascii() or not text.isprintable():
        raise UnusableError(f"{example}, without query, fragment, user or special characters")
    if " " in text:
        raise UnusableError(f"{example}, without spaces")
    base = text.rstrip("/")
    if base.endswith(("/v1", "/completions")):
        raise UnusableError(f"{example}: /v1/chat/completions is added to it")
    return base


def header_text(text: str) -> str:
    """Parses what can be sent in an HTTP header."""
    if not text.isascii() or not text.isprintable():
        raise UnusableError("write printable ASCII: it becomes an HTTP header")
    return text


def words(text: str) -> str:
    """Parses any text but the empty one."""
    if not text:
        raise UnusableError("write at least one character")
    return text
