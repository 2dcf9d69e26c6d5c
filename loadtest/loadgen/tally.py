"""Counts and latencies of a run, in a form that adds up exactly over many runs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from loadgen.histogram import Histogram
from loadgen.outcome import OK
from loadgen.settings import Settings

LATENCIES = ("ttft", "ttft_intended", "chunk_gap", "tpot", "e2e", "e2e_intended", "connect", "schedule_delay")
OBJECTIVES = ("ttft", "chunk_gap", "tpot", "e2e")


@dataclass(slots=True, kw_only=True)
class Result:
    """How one request went. Times are monotonic seconds, None where the moment never came.

    Attributes:
        number: unique within the run, from 0.
        intended_at: when it was meant to be sent.
        began_at: when this program began with it: took or opened a connection.
        sent_at: when its bytes went to the socket.
        arrivals: when each content chunk came.
        done_at: when [DONE] came.
        ended_at: when the outcome was known.
        tokens: completion tokens that the server counted.
    """

    number: int
    intended_at: float
    began_at: float
    sent_at: float | None
    arrivals: list[float]
    done_at: float | None
    ended_at: float
    outcome: str
    detail: str
    pod: str
    http: int
    chunks: int
    tokens: int | None
    reused: bool

    @property
    def ttft(self) -> float | None:
        """Seconds from the send to the first content chunk."""
        return self.arrivals[0] - self.sent_at if self.arrivals and self.sent_at is not None else None

    @property
    def e2e(self) -> float | None:
        """Seconds from the send to [DONE]."""
        return self.done_at - self.sent_at if self.done_at is not None and self.sent_at is not None else None

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first; None without a token count or with one token."""
        if self.tokens is None or self.tokens <= 1 or not self.arrivals:
            return None
        return (self.arrivals[-1] - self.arrivals[0]) / (self.tokens - 1)

    @property
    def gaps(self) -> list[float]:
        """Seconds between each two content chunks that follow each other."""
        return [after - before for before, after in pairwise(self.arrivals)]


class Tally:
    """Outcomes of all requests; latencies of those that were ok, and of no others.

    Attributes:
        outcomes: requests per outcome.
        pods: requests per pod that answered, where the engine says so.
        latencies: a histogram per name in LATENCIES.
        good: ok requests that met every objective.
    """

    def __init__(self, objectives: Mapping[str, float]) -> None:
        """Starts at zero; `objectives` are limits in seconds by name in OBJECTIVES."""
        self.objectives = dict(objectives)
        self.outcomes: Counter[str] = Counter()
        self.pods: Counter[str] = Counter()
        self.latencies = {name: Histogram() for name in LATENCIES}
        self.good = 0

    @classmethod
    def for_settings(cls, settings: Settings) -> Self:
        """Returns an empty tally with the objectives that the settings name."""
        limits = {name: getattr(settings, f"slo_{name}_seconds") for name in OBJECTIVES}
        return cls({name: limit for name, limit in limits.items() if limit is not None})

    @property
    def total(self) -> int:
        """Requests that have ended."""
        return self.outcomes.total()

    @property
    def failures(self) -> dict[str, int]:
        """Requests per outcome other than ok, by name."""
        return {name: count for name, count in sorted(self.outcomes.items()) if name != OK}

    def counts(self) -> dict[str, int]:
        """Returns requests per outcome, ok first."""
        ok = {OK: self.outcomes[OK]} if self.outcomes[OK] else {}
        return ok | self.failures

    def add(self, result: Result) -> None:
        """Counts one request."""
        self.outcomes[result.outcome] += 1
        if result.pod:
            self.pods[result.pod] += 1
        if result.outcome != OK or result.sent_at is None or result.done_at is None:
            return
        latencies = self.latencies
        gaps = result.gaps
        latencies["chunk_gap"].add_all(gaps)
        measured = {
            "ttft": result.ttft,
            "chunk_gap": max(gaps, default=None),
            "tpot": result.tpot,
            "e2e": result.e2e,
        }
        for name in ("ttft", "tpot", "e2e"):
            value = measured[name]
            if value is not None:
                latencies[name].add(value)
        latencies["ttft_intended"].add(result.arrivals[0] - result.intended_at)
        latencies["e2e_intended"].add(result.done_at - result.intended_at)
        latencies["schedule_delay"].add(result.began_at - result.intended_at)
        if not result.reused:
            latencies["connect"].add(result.sent_at - result.began_at)
        if all((measured[name] or 0.0) <= limit for name, limit in self.objectives.items()):
            self.good += 1

    def merge(self, other: Self) -> None:
        """Adds everything that `other` counted."""
        self.outcomes.update(other.outcomes)
        self.pods.update(other.pods)
        self.good += other.good
        for name, histogram in other.latencies.items():
            self.latencies[name].merge(histogram)

    def to_json(self) -> dict[str, Any]:
        """Returns the tally's part of a summary."""
        return {
            "total": self.total,
            "outcomes": self.counts(),
            "pods": dict(sorted(self.pods.items())),
            "objectives": self.objectives,
            "good": self.good,
            "latency": {name: histogram.figures() for name, histogram in self.latencies.items()},
            "histograms": {name: histogram.to_json() for name, histogram in self.latencies.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Returns the tally in a summary.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: the record is not one.
        """
        tally = cls({str(name): float(limit) for name, limit in record["objectives"].items()})
        tally.outcomes.update({str(name): int(count) for name, count in record["outcomes"].items()})
        tally.pods.update({str(name): int(count) for name, count in record["pods"].items()})
        tally.good = int(record["good"])
        tally.latencies |= {str(name): Histogram.from_json(kept) for name, kept in record["histograms"].items()}
        return tally
