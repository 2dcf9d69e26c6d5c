"""The environment: defaults, and one helpful line for everything that cannot be used."""

import re

import pytest
from loadgen.settings import VARIABLES, SettingsError, Variable, read

TARGET = {"TARGET": "http://mock-inference-service:8000"}


def test_defaults() -> None:
    """With nothing but a target, four streams run for two minutes over new connections."""
    settings = read(TARGET)
    assert settings.url == "http://mock-inference-service:8000/v1/chat/completions"
    assert (settings.host, settings.port) == ("mock-inference-service", 8000)
    assert (settings.duration_seconds, settings.concurrency, settings.max_tokens) == (120, 4, 20)
    assert (settings.model_name, settings.connection, settings.arrival) == ("mock/mock-8b", "new", "closed")


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [
        ("http://127.0.0.1:8000/", "127.0.0.1", 8000),
        ("http://[::1]:8000", "::1", 8000),
        ("http://svc.ns.svc.cluster.local", "svc.ns.svc.cluster.local", 80),
        ("http://gateway:9/models/a", "gateway", 9),
    ],
)
def test_target(target: str, host: str, port: int) -> None:
    """A target may be a name, an address, and may have a path."""
    settings = read({"TARGET": target})
    assert (settings.host, settings.port) == (host, port)
    assert settings.url == target.rstrip("/") + "/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TARGET", "mock:8000"),
        ("TARGET", "https://mock:8000"),
        ("TARGET", "http://"),
        ("TARGET", "http://mock:99999"),
        ("TARGET", "http://mock:0"),
        ("TARGET", "http://mock:8000/v1"),
        ("TARGET", "http://mock:8000/?a=b"),
        ("TARGET", "http://user@mock:8000"),
        ("TARGET", "http://mo ck:8000"),
        ("TARGET", "http://mock:8000\r\nx: y"),
        ("TARGET", "http://[::1:8000"),
        ("DURATION_SECONDS", "0"),
        ("DURATION_SECONDS", "-5"),
        ("DURATION_SECONDS", "nan"),
        ("DURATION_SECONDS", "inf"),
        ("DURATION_SECONDS", "2m"),
        ("CONCURRENCY", "0"),
        ("CONCURRENCY", "4.5"),
        ("CONCURRENCY", "\u0661"),
        ("CONCURRENCY", "1000000"),
        ("MAX_TOKENS", "0"),
        ("API_KEY", "a\r\nb"),
        ("CONNECTION", "keep-alive"),
        ("CONNECTION_MAX_AGE_SECONDS", "0"),
        ("ARRIVAL", "Poisson"),
        ("RATE", "0"),
        ("RATE", "fast"),
        ("BURST_SIZE", "0"),
        ("SEED", "-1"),
        ("START_SPREAD_SECONDS", "-1"),
        ("STALL_SECONDS", "0"),
        ("END_GRACE_SECONDS", "-1"),
        ("LAG_LIMIT_SECONDS", "0"),
        ("SLO_TTFT_SECONDS", "200ms"),
    ],
)
def test_unusable(name: str, value: str) -> None:
    """A value that cannot be used is refused in one line: variable, value, what to write instead."""
    with pytest.raises(SettingsError) as refused:
        read(TARGET | {name: value})
    assert re.fullmatch(rf"{name} is {re.escape(repr(value))}: write .+", str(refused.value))


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_very_long_value(variable: Variable) -> None:
    """A number of more digits than Python reads is accepted as text or refused in one line that shows its beginning."""
    try:
        read(TARGET | {variable.name: "9" * 5000})
    except SettingsError as refused:
        assert re.fullmatch(rf"{variable.name} is '9+'\.\.\. \(5000 characters\): write .+", str(refused))  # noqa: PT017 - raising is allowed, not required
        assert len(str(refused)) < 300  # noqa: PT017 - the same
    else:
        assert variable.parse("9") == "9"


def test_all_problems_at_once() -> None:
    """Every problem is told, not only the first."""
    with pytest.raises(SettingsError) as refused:
        read({"CONCURRENCY": "x", "SEED": "y"})
    assert [line.split()[0] for line in str(refused.value).splitlines()] == ["TARGET", "CONCURRENCY", "SEED"]


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"RATE": "5"}, "RATE"),
        ({"ARRIVAL": "poisson"}, "RATE"),
        ({"BURST_SIZE": "5"}, "BURST_SIZE"),
        ({"CONNECTION_MAX_AGE_SECONDS": "5"}, "CONNECTION_MAX_AGE_SECONDS"),
    ],
)
def test_contradiction(environment: dict[str, str], name: str) -> None:
    """A variable that would have no effect, or that is missing beside another, is refused."""
    with pytest.raises(SettingsError, match=rf"^{name} is .*write"):
        read(TARGET | environment)


def test_empty_is_not_set() -> None:
    """An empty variable counts as not set, as in a manifest whose value was left empty."""
    assert read(TARGET | {variable.name: "" for variable in VARIABLES if variable.name != "TARGET"}) == read(TARGET)


def test_job_index() -> None:
    """Each pod of an indexed Job draws its own arrivals."""
    assert read(TARGET | {"SEED": "10", "JOB_COMPLETION_INDEX": "3"}).seed == 13


@pytest.mark.parametrize("index", ["", "x", "9" * 5000])
def test_no_job_index(index: str) -> None:
    """What is no completion index adds nothing to the seed."""
    assert read(TARGET | {"SEED": "10", "JOB_COMPLETION_INDEX": index}).seed == 10
