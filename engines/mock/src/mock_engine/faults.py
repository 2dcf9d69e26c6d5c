"""Faults on purpose: what can go wrong between an engine and its clients, named and dosed.

A plan is a comma-separated list of `kind[=argument][@rate]`, for example `rst=5@0.1,crlf`: one request in ten is
reset after five events, and all of them end their lines with CRLF. The rate is a probability from 0 to 1.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

# What each kind's argument means, and the one that is used when there is none.
KINDS: dict[str, tuple[str, float]] = {
    "refuse": ("seconds without a listener", 3600.0),
    "status": ("HTTP status of the answer", 500.0),
    "hang": ("seconds before the first byte", 3600.0),
    "cut": ("events, then the response ends cleanly, without finish_reason and [DONE]", 0.0),
    "fin": ("events, then the connection is closed in mid-response", 0.0),
    "rst": ("events, then the connection is reset", 0.0),
    "error": ("events, then an error event and [DONE]", 0.0),
    "stall": ("events, then silence on an open connection", 0.0),
    "crlf": ("(none): lines end with CRLF", 0.0),
    "comments": ("(none): a comment line before each event", 0.0),
    "bytes": ("(none): each byte is a chunk of its own", 0.0),
    "health": ("seconds before /health answers", 3600.0),
    "memory": ("MiB kept per request", 10.0),
    "exit": ("requests, then the process exits with code 1", 1.0),
}
# Those whose argument counts events or requests.
_COUNTED = frozenset({"cut", "fin", "rst", "error", "stall", "exit"})
ENDINGS = ("cut", "fin", "rst", "error", "stall")
# What has no meaning for an answer that is sent as a whole.
STREAMS_ONLY = frozenset({"cut", "error", "stall", "crlf", "comments", "bytes"})
# What strikes the engine, not one request.
ENGINE_ONLY = frozenset({"refuse", "health", "exit"})
_ERROR_STATUSES = {float(status) for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST}
_EXAMPLE = "rst=5@0.1,crlf"
# Eleven days, or a tebibyte: beyond it, an argument is a mistake, and timers and sizes overflow.
_LARGEST = 1e6
HEADER = b"x-mock-fault"


class FaultError(ValueError):
    """A plan that cannot be read; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its argument's unit depends on the kind, the rate is a probability."""

    kind: str
    argument: float
    rate: float = 1.0

    def __str__(self) -> str:
        """Returns the fault as it is written in a plan."""
        return f"{self.kind}={self.argument:g}" + (f"@{self.rate:g}" if self.rate < 1 else "")


Plan = Mapping[str, Fault]


def read(body: bytes) -> dict[str, Fault]:
    """Reads a plan from the body of a request.

    Raises:
        FaultError: it is no UTF-8, or `parse` refuses it.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise FaultError(
            f"the body is no UTF-8 text (byte 0x{body[error.start]:02x} at {error.start}); "
            f"write a plan such as {_EXAMPLE}, or nothing for no faults"
        ) from None
    return parse(text)


def parse(text: str) -> dict[str, Fault]:
    """Reads a plan; empty text is a plan without faults.

    Raises:
        FaultError: a kind that does not exist, or a number that is none.
    """
    plan = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, at, rate = item.partition("@")
        kind, equals, argument = name.partition("=")
        if kind not in KINDS:
            raise FaultError(f"fault {kind!r} does not exist; write one of {', '.join(KINDS)}")
        try:
            fault = Fault(kind, _number(argument) if equals else KINDS[kind][1], _number(rate) if at else 1.0)
        except ValueError:
            raise FaultError(f"fault {item!r} has no number; write e.g. {kind}=2@0.5") from None
        if not (0 <= fault.argument <= _LARGEST and 0 <= fault.rate <= 1):
            raise FaultError(
                f"fault {item!r} is out of range; write an argument from 0 to {_LARGEST:.0f} and a rate from 0 to 1"
            )
        if kind in _COUNTED and not fault.argument.is_integer():
            raise FaultError(
                f"fault {item!r} counts {KINDS[kind][0].partition(',')[0]}; write a whole number, e.g. {kind}=2"
            )
        if kind == "status" and fault.argument not in _ERROR_STATUSES:
            raise FaultError(f"fault {item!r} is no error's status; write e.g. status=503")
        plan[kind] = fault
    return plan


def _number(text: str) -> float:
    """Reads a number that is written in ASCII digits alone.

    Raises:
        ValueError: it is none.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


def _refuse(plan: Plan, kinds: frozenset[str], why: str) -> None:
    """Refuses a plan in which there is one of these kinds.

    Raises:
        FaultError: names the fault and why it cannot strike here.
    """
    for kind, fault in plan.items():
        if kind in kinds:
            raise FaultError(f"fault '{fault}' {why}")


def describe(plan: Plan) -> str:
    """Returns a plan as it is written."""
    return ",".join(str(fault) for fault in plan.values())


class Faults:
    """The engine's plan, and the dice that decide which request it strikes."""

    def __init__(self, plan: Plan, *, controllable: bool, seed: int) -> None:
        """Starts with a plan; `controllable` lets requests and the admin call bring others."""
        self.plan = plan
        self.controllable = controllable
        self._random = random.Random(seed)  # noqa: S311  # dice, not secrets
        self._kept: list[bytearray] = []

    def strike(self, header: str | None) -> dict[str, Fault]:
        """Returns the faults of one request, by its header if it has one and may have one.

        Raises:
            FaultError: the header cannot be read, or names a fault of the whole engine.
        """
        plan = self.plan
        if header is not None and self.controllable:
            plan = parse(header)
            _refuse(
                plan, ENGINE_ONLY, "strikes the engine, not a request; write it to FAULTS or PUT it to /mock/faults"
            )
        return {kind: fault for kind, fault in plan.items() if fault.rate >= 1 or self._random.random() < fault.rate}

    def check_whole(self, header: str | None) -> None:
        """Checks the header of a request that is not streamed.

        Raises:
            FaultError: it names a fault of streams.
        """
        if header is not None and self.controllable:
            _refuse(
                parse(header), STREAMS_ONLY, "strikes streams only; ask for a stream, or write fin, rst, status or hang"
            )

    def grow(self, mebibytes: float) -> None:
        """Keeps memory, every page of it touched."""
        self._kept.append(bytearray(b"\1") * int(mebibytes * 2**20))
