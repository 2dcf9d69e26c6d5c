"""What the environment sets: the model's name, start, and the timing of the text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

from mock_engine import faults
from mock_engine.faults import Fault

StartupMode = Literal["503", "closed"]
AbortStyle = Literal["error", "done", "abort", "silence"]
_Value = TypeVar("_Value")
_SHOWN = 80  # characters of a value that cannot be used


class EnvironmentProblems(Exception):  # it carries a list of problems, not one error
    """Variables that cannot be used; one line each, with the fix."""

    def __init__(self, problems: list[str]) -> None:
        """Keeps one line per problem."""
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Environment:
    """The engine's settings from the environment. Times are in seconds, lengths in tokens.

    Attributes:
        abort_style: None when not set: the kind of shutdown then decides.
    """

    model_name: str
    startup_delay: float
    startup_mode: StartupMode
    ttft: float
    inter_token: float
    spread: float
    prefill_per_token: float
    tokens_per_chunk: int
    answer_tokens: int
    seed: int
    abort_style: AbortStyle | None
    teardown: float
    faults: Mapping[str, Fault]
    fault_control: bool


class _Reader:
    """Reads variables one by one and collects what is wrong with them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.problems: list[str] = []

    def _read(self, name: str, default: _Value, convert: Callable[[str], _Value], expected: str) -> _Value:
        text = self._variables.get(name, "")
        if not text:
            return default
        try:
            return convert(text)
        except ValueError:
            self.problems.append(f"{name}={_shown(text)}: {expected}")
            return default

    def seconds(self, name: str, default: float) -> float:
        return self._read(
            name, default, lambda text: _within(float(_ascii(text)), 0.0, 1e6), "write seconds >= 0, e.g. 0.25"
        )

    def fraction(self, name: str, default: float) -> float:
        return self._read(
            name,
            default,
            lambda text: _within(float(_ascii(text)), 0.0, 1.0),
            "write a fraction from 0 to 1, e.g. 0.1",
        )

    def count(self, name: str, default: int, least: int) -> int:
        return self._read(
            name, default, lambda text: _within(int(_ascii(text)), least, 10**9), f"write a whole number >= {least}"
        )

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        return self.optional_choice(name, choices) or choices[0]

    def optional_choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        return self._read(name, None, lambda text: choices[choices.index(text)], f"write one of {', '.join(choices)}")

    def plan(self, name: str) -> Mapping[str, Fault]:
        try:
            return faults.parse(self._variables.get(name, ""))
        except faults.FaultError as error:
            self.problems.append(f"{name}={_shown(self._variables[name])}: {error}")
            return {}


def _ascii(text: str) -> str:
    """Returns a text that may be a number; Python reads the digits of every script as such."""
    if not text.isascii():
        raise ValueError(text)
    return text


def _shown(text: str) -> str:
    """Returns a text as it is told: its beginning alone if it is too long for a line."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}... ({len(text)} characters)"


def _within(value: _Value, least: _Value, most: _Value) -> _Value:
    if not least <= value <= most:  # type: ignore[operator]  # both are numbers of one type
        raise ValueError(value)
    return value


def read(variables: Mapping[str, str]) -> Environment:
    """Reads the environment; an empty variable counts as one that is not set.

    Raises:
        EnvironmentProblems: lists every variable with a value that cannot be used.
    """
    reader = _Reader(variables)
    environment = Environment(
        model_name=variables.get("MODEL_NAME") or "mock/mock-8b",
        startup_delay=reader.seconds("STARTUP_DELAY_SECONDS", 0.0),
        startup_mode=cast("StartupMode", reader.choice("STARTUP_MODE", ("503", "closed"))),
        ttft=reader.seconds("TTFT_SECONDS", 0.07),
        inter_token=reader.seconds("INTER_TOKEN_SECONDS", 0.03),
        spread=reader.fraction("TIMING_SPREAD", 0.0),
        prefill_per_token=reader.seconds("PREFILL_SECONDS_PER_TOKEN", 0.0),
        tokens_per_chunk=reader.count("TOKENS_PER_CHUNK", 1, 1),
        answer_tokens=reader.count("ANSWER_TOKENS", 256, 1),
        seed=reader.count("SEED", 0, 0),
        abort_style=cast(
            "AbortStyle | None", reader.optional_choice("ABORT_STYLE", ("error", "done", "abort", "silence"))
        ),
        teardown=reader.seconds("TEARDOWN_SECONDS", 0.0),
        faults=reader.plan("FAULTS"),
        fault_control=reader.choice("FAULT_CONTROL", ("0", "1")) == "1",
    )
    if reader.problems:
        raise EnvironmentProblems(reader.problems)
    return environment
