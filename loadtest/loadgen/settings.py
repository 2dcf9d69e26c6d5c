"""The environment, read once, checked whole, and explained by `--help` from the same table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from loadgen import parsing

_SHOWN = 80  # characters of a value that cannot be used


class SettingsError(Exception):
    """One line for each variable that cannot be used: its name, its value, what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one run does. Names are those of the environment variables; times are seconds."""

    target: str
    duration_seconds: float
    requests: int | None
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


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: how it is read, what it is when not set, and what it means."""

    name: str
    default: str | None
    parse: Callable[[str], Any]
    meaning: str


VARIABLES = (
    Variable("TARGET", None, parsing.target, "base address of the service; required"),
    Variable("DURATION_SECONDS", "120", parsing.seconds(), "how long new requests are sent"),
    Variable("REQUESTS", "", parsing.count(1, 2**31), "end after so many requests, if the duration is not over before"),
    Variable(
        "CONCURRENCY",
        "4",
        parsing.count(1, parsing.MAX_STREAMS),
        "closed loop: streams; open loop: most requests in flight",
    ),
    Variable("MODEL_NAME", "mock/mock-8b", parsing.words, "the model asked for"),
    Variable("MAX_TOKENS", "20", parsing.count(1, 1_000_000), "max_tokens of every request"),
    Variable("PROMPT", "Count upwards in words.", parsing.words, "the user message of every request"),
    Variable("API_KEY", "", parsing.header_text, "sent as a bearer token when set"),
    Variable(
        "CONNECTION",
        "new",
        parsing.one_of("new", "keepalive"),
        "new: one connection per request; keepalive: reused",
    ),
    Variable(
        "CONNECTION_MAX_AGE_SECONDS",
        "",
        parsing.seconds(),
        "keepalive: an older connection is not used again",
    ),
    Variable(
        "ARRIVAL",
        "closed",
        parsing.one_of("closed", "constant", "poisson", "burst"),
        "closed: next request after the last answer; others: at RATE",
    ),
    Variable("RATE", "", parsing.rate, "open loop: requests per second (over bursts: on average)"),
    Variable(
        "BURST_SIZE",
        "10",
        parsing.count(1, parsing.MAX_STREAMS),
        "ARRIVAL=burst: requests that are sent together",
    ),
    Variable("SEED", "0", parsing.count(0, 2**63), "of random arrivals; a Job's completion index is added"),
    Variable(
        "START_SPREAD_SECONDS",
        "0.5",
        parsing.seconds(zero=True),
        "closed loop: streams start evenly over this time",
    ),
    Variable("CONNECT_TIMEOUT_SECONDS", "5", parsing.seconds(), "longest wait for a connection"),
    Variable(
        "STALL_SECONDS",
        "30",
        parsing.seconds(),
        "longest silence before a stream counts as stall; comments are silence",
    ),
    Variable(
        "END_GRACE_SECONDS",
        "20",
        parsing.seconds(zero=True, most=3600),
        "after the duration or SIGTERM: wait for open streams, then unfinished",
    ),
    Variable(
        "LAG_LIMIT_SECONDS",
        "0.005",
        parsing.seconds(),
        "own scheduling lag (p99) above which the client is overloaded; a higher limit shows no latencies above 0.005",
    ),
    Variable("SLO_TTFT_SECONDS", "", parsing.seconds(), "objective: time to first content token"),
    Variable("SLO_CHUNK_GAP_SECONDS", "", parsing.seconds(), "objective: longest gap between two content chunks"),
    Variable("SLO_TPOT_SECONDS", "", parsing.seconds(), "objective: time per output token after the first"),
    Variable("SLO_E2E_SECONDS", "", parsing.seconds(), "objective: the whole answer"),
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
            values[key] = "" if variable.parse in (str, parsing.header_text) else None
        else:
            try:
                values[key] = variable.parse(given)
            except parsing.UnusableError as error:
                problems.append(f"{variable.name} is {_shown(text)}: {error}")
    if not problems:
        problems = _contradictions(values, environment)
    if problems:
        raise SettingsError("\n".join(problems))
    if values["arrival"] != "closed" and not environment.get("CONCURRENCY"):
        values["concurrency"] = 1000
    values["seed"] += _completion_index(environment)
    return Settings(**{field.name: values[field.name] for field in fields(Settings)})


def _shown(text: str) -> str:
    """The text as it is told: its beginning alone if it is too long for a line."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text)} characters)"


def _explain(variable: Variable) -> str:
    try:
        variable.parse("")
    except parsing.UnusableError as error:
        return str(error)
    return variable.meaning


def _completion_index(environment: Mapping[str, str]) -> int:
    """An indexed Job numbers its pods; each then draws its own arrivals."""
    try:
        return parsing.count(0, 2**31)(environment.get("JOB_COMPLETION_INDEX", ""))
    except parsing.UnusableError:
        return 0


def _contradictions(values: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    problems = []
    arrival = values["arrival"]
    if arrival == "closed" and values["rate"] is not None:
        problems.append(f"RATE is {environment['RATE']!r}, but ARRIVAL is 'closed': write constant, or leave RATE out")
    if arrival != "closed" and values["rate"] is None:
        problems.append(f"RATE is not set, but ARRIVAL is {arrival!r}: write requests per second, for example RATE=20")
    if arrival != "burst" and environment.get("BURST_SIZE"):
        problems.append(f"BURST_SIZE is {environment['BURST_SIZE']!r}, but ARRIVAL is {arrival!r}: write burst")
    if values["connection"] == "new" and values["connection_max_age_seconds"] is not None:
        age = environment["CONNECTION_MAX_AGE_SECONDS"]
        problems.append(f"CONNECTION_MAX_AGE_SECONDS is {age!r}, but CONNECTION is 'new': write keepalive")
    return problems
