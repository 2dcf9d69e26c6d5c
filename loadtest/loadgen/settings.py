"""The environment, read once, checked whole, and explained by `--help` from the same table."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

MAX_STREAMS = 100_000


class SettingsError(Exception):
    """One line for each variable that cannot be used: its name, its value, what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one run does. Names are those of the environment variables; times are seconds."""

    target: str
    duration_seconds: float
    concurrency: int
    model_name: str
    max_tokens: int
    prompt: str
    api_key: str
    connection: str
    connection_max_age_seconds: float | None
    arrival: str
    rate: float | None
    burst_size: int
    seed: int
    start_spread_seconds: float
    connect_timeout_seconds: float
    stall_seconds: float
    end_grace_seconds: float
    lag_limit_seconds: float
    slo_ttft_seconds: float | None
    slo_chunk_gap_seconds: float | None
    slo_tpot_seconds: float | None
    slo_e2e_seconds: float | None
    events_file: str
    summary_file: str

    @property
    def host(self) -> str:
        """The target's host name or address."""
        return urlsplit(self.target).hostname or ""

    @property
    def port(self) -> int:
        """The target's port, 80 where none is written."""
        return urlsplit(self.target).port or 80

    @property
    def url(self) -> str:
        """Where requests go."""
        return self.target + "/v1/chat/completions"


class _UnusableError(ValueError):
    """Says what to write instead."""


def _seconds(*, zero: bool = False, most: float = 7 * 86400) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (0 <= value <= most) or (value == 0 and not zero):
            least = "0 or more" if zero else "above 0"
            raise _UnusableError(
                f"write a number of seconds, {least} and at most {most:g}, for example 5 or 0.5"
            )
        return value

    return parse


def _count(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
            raise _UnusableError(f"write a whole number from {least} to {most}")
        return int(text)

    return parse


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_STREAMS:
        raise _UnusableError(
            f"write requests per second, above 0 and at most {MAX_STREAMS}, for example 20 or 0.5"
        )
    return value


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise _UnusableError("write one of " + ", ".join(words))
        return text

    return parse


def _target(text: str) -> str:
    example = "write the service's base address, for example http://mock-inference-service:8000"
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0
    except ValueError as error:
        raise _UnusableError(f"{example} ({error})") from error
    if parts.scheme != "http" or not parts.hostname or not port_is_fine:
        raise _UnusableError(f"{example} (http only)")
    if (
        parts.query
        or parts.fragment
        or parts.username is not None
        or not text.isascii()
        or not text.isprintable()
    ):
        raise _UnusableError(f"{example}, without query, fragment, user or special characters")
    if " " in text:
        raise _UnusableError(f"{example}, without spaces")
    base = text.rstrip("/")
    if base.endswith(("/v1", "/completions")):
        raise _UnusableError(f"{example}: /v1/chat/completions is added to it")
    return base


def _header_text(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise _UnusableError("write printable ASCII: it becomes an HTTP header")
    return text


def _words(text: str) -> str:
    if not text:
        raise _UnusableError("write at least one character")
    return text


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: how it is read, what it is when not set, and what it means."""

    name: str
    default: str | None
    parse: Callable[[str], Any]
    meaning: str


VARIABLES = (
    Variable("TARGET", None, _target, "base address of the service; required"),
    Variable("DURATION_SECONDS", "120", _seconds(), "how long new requests are sent"),
    Variable(
        "CONCURRENCY",
        "4",
        _count(1, MAX_STREAMS),
        "closed loop: streams; open loop: most requests in flight (default there 1000)",
    ),
    Variable("MODEL_NAME", "mock/mock-8b", _words, "the model asked for"),
    Variable("MAX_TOKENS", "20", _count(1, 1_000_000), "max_tokens of every request"),
    Variable("PROMPT", "Count upwards in words.", _words, "the user message of every request"),
    Variable("API_KEY", "", _header_text, "sent as a bearer token when set"),
    Variable(
        "CONNECTION", "new", _one_of("new", "keepalive"), "new: one connection per request; keepalive: reused"
    ),
    Variable(
        "CONNECTION_MAX_AGE_SECONDS", "", _seconds(), "keepalive: an older connection is not used again"
    ),
    Variable(
        "ARRIVAL",
        "closed",
        _one_of("closed", "constant", "poisson", "burst"),
        "closed: next request after the last answer; others: at RATE",
    ),
    Variable("RATE", "", _rate, "open loop: requests per second (over bursts: on average)"),
    Variable("BURST_SIZE", "10", _count(1, MAX_STREAMS), "ARRIVAL=burst: requests that are sent together"),
    Variable("SEED", "0", _count(0, 2**63), "of random arrivals; a Job's completion index is added"),
    Variable(
        "START_SPREAD_SECONDS", "0.5", _seconds(zero=True), "closed loop: streams start evenly over this time"
    ),
    Variable("CONNECT_TIMEOUT_SECONDS", "5", _seconds(), "longest wait for a connection"),
    Variable(
        "STALL_SECONDS",
        "30",
        _seconds(),
        "longest silence before a stream counts as stall; comments are silence",
    ),
    Variable(
        "END_GRACE_SECONDS",
        "20",
        _seconds(zero=True, most=3600),
        "after the duration or SIGTERM: wait for open streams, then unfinished",
    ),
    Variable(
        "LAG_LIMIT_SECONDS",
        "0.005",
        _seconds(),
        "own scheduling lag (p99) above which latencies are not measured",
    ),
    Variable("SLO_TTFT_SECONDS", "", _seconds(), "objective: time to first content token"),
    Variable("SLO_CHUNK_GAP_SECONDS", "", _seconds(), "objective: longest gap between two content chunks"),
    Variable("SLO_TPOT_SECONDS", "", _seconds(), "objective: time per output token after the first"),
    Variable("SLO_E2E_SECONDS", "", _seconds(), "objective: the whole answer"),
    Variable("EVENTS_FILE", "", str, "JSON Lines, one per event; - is standard output"),
    Variable("SUMMARY_FILE", "", str, "the JSON summary; - is standard output"),
)


def read(environment: Mapping[str, str]) -> Settings:
    """Returns the settings that the environment asks for; an empty variable counts as not set.

    Raises:
        SettingsError: one line per variable that cannot be used.
    """
    problems: list[str] = []
    values: dict[str, Any] = {}
    for variable in VARIABLES:
        text = environment.get(variable.name, "")
        key = variable.name.lower()
        given = text or variable.default
        if given is None:
            problems.append(f"{variable.name} is not set: {_explain(variable)}")
        elif not given:
            values[key] = "" if variable.parse in (str, _header_text) else None
        else:
            try:
                values[key] = variable.parse(given)
            except _UnusableError as error:
                problems.append(f"{variable.name} is {text!r}: {error}")
    if not problems:
        problems = _contradictions(values, environment)
    if problems:
        raise SettingsError("\n".join(problems))
    if values["arrival"] != "closed" and not environment.get("CONCURRENCY"):
        values["concurrency"] = 1000
    values["seed"] += _completion_index(environment)
    return Settings(**{field.name: values[field.name] for field in fields(Settings)})


def _explain(variable: Variable) -> str:
    try:
        variable.parse("")
    except _UnusableError as error:
        return str(error)
    return variable.meaning


def _completion_index(environment: Mapping[str, str]) -> int:
    """An indexed Job numbers its pods; each then draws its own arrivals."""
    index = environment.get("JOB_COMPLETION_INDEX", "")
    return int(index) if index.isascii() and index.isdecimal() else 0


def _contradictions(values: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    problems = []
    arrival = values["arrival"]
    if arrival == "closed" and values["rate"] is not None:
        problems.append(
            f"RATE is {environment['RATE']!r}, but ARRIVAL is 'closed': write ARRIVAL=constant, poisson or burst, or leave RATE out"
        )
    if arrival != "closed" and values["rate"] is None:
        problems.append(
            f"RATE is not set, but ARRIVAL is {arrival!r}: write requests per second, for example RATE=20"
        )
    if arrival != "burst" and environment.get("BURST_SIZE"):
        problems.append(
            f"BURST_SIZE is {environment['BURST_SIZE']!r}, but ARRIVAL is {arrival!r}: write ARRIVAL=burst, or leave BURST_SIZE out"
        )
    if values["connection"] == "new" and values["connection_max_age_seconds"] is not None:
        age = environment["CONNECTION_MAX_AGE_SECONDS"]
        problems.append(
            f"CONNECTION_MAX_AGE_SECONDS is {age!r}, but CONNECTION is 'new': write CONNECTION=keepalive, or leave it out"
        )
    return problems
