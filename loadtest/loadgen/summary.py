"""What one run, or several together, amounts to: as JSON, as lines for people, as an exit code."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from loadgen.histogram import Histogram
from loadgen.lag import MEASURING_LIMIT_SECONDS
from loadgen.tally import Tally

SCHEMA = 1
_SHOWN = ("ttft", "chunk_gap", "tpot", "e2e")
_SHOWN_OPEN_LOOP = ("ttft", "ttft_intended", "chunk_gap", "tpot", "e2e", "e2e_intended", "schedule_delay")


@dataclass(slots=True, kw_only=True)
class Summary:
    """A finished run, or several merged.

    Attributes:
        target: where the load went.
        arrival: closed, constant, poisson or burst.
        started, ended: Unix seconds of the first start and the last end.
        runs: how many runs are in it.
        dropped: intended requests that were never sent.
        opened, reuses: connections opened; requests sent on one that had carried another.
        pods_per_connection: how many connections saw so many pods.
        lag: the client's own scheduling lag.
        lag_limit: seconds at p99 above which a run is called overloaded.
        cpu_share: the client's use of one core, the greatest of all runs.
        overloaded: runs whose own lag exceeded their limit.
        late: runs whose own lag exceeded MEASURING_LIMIT_SECONDS, whatever their limit: latencies are not shown.
    """

    target: str
    arrival: str
    started: float
    ended: float
    tally: Tally
    runs: int = 1
    dropped: int = 0
    opened: int = 0
    reuses: int = 0
    pods_per_connection: Counter[int] = field(default_factory=Counter)
    lag: Histogram = field(default_factory=Histogram)
    lag_limit: float = MEASURING_LIMIT_SECONDS
    cpu_share: float = 0.0
    overloaded: int = 0
    late: int = 0

    def exit_code(self) -> int:
        """Returns 1 when anything but ok was counted, 2 when nothing was measured, else 0."""
        if self.tally.failures or self.dropped:
            return 1
        return 2 if self.overloaded or not self.tally.total else 0

    def lines(self) -> Iterator[str]:
        """Yields the closing lines for people; the last is the `final` line that tools read."""
        yield from self._latency_lines()
        if self.tally.objectives and self.tally.total:
            limits = " ".join(f"{name}<={limit:g}s" for name, limit in self.tally.objectives.items())
            seconds = max(self.ended - self.started, 0.001)
            share = 100 * self.tally.good / self.tally.total
            met = f"{self.tally.good} of {self.tally.total} ({share:.1f}%)"
            yield f"goodput {self.tally.good / seconds:.2f}/s {met} with {limits}"
        pods = dict(sorted(self.pods_per_connection.items()))
        yield f"connections opened={self.opened} reused={self.reuses} by_pods_seen={pods}"
        if self.lag.count:
            yield f"client lag {_figures(self.lag)} cpu={100 * self.cpu_share:.0f}%"
        if self.overloaded:
            late = 1000 * (self.lag.percentile(99) or 0.0)
            which = "" if self.runs == 1 else f" in {self.overloaded} of {self.runs} runs"
            yield (
                f"client overloaded{which}: own lag p99 is {late:.1f}ms, above {1000 * self.lag_limit:g}ms: "
                "latencies are not measured; counts are"
            )
        if self.dropped:
            yield f"dropped {self.dropped} intended requests were never sent"
        if not self.tally.total:
            yield "nothing measured: no request ended"
        failures = self.tally.failures or "none"
        yield f"final total={self.tally.total} ok={self.tally.outcomes['ok']} failures={failures}"

    def _latency_lines(self) -> Iterator[str]:
        if self.overloaded:  # a line of its own says so
            return
        if self.late:
            late = 1000 * (self.lag.percentile(99) or 0.0)
            # Over several runs the lag of all may well be within the limit.
            said = f" {late:.1f}ms exceeds" if self.runs == 1 else f" in {self.late} of {self.runs} runs exceeds"
            yield f"latency not shown: client lag p99{said} {1000 * MEASURING_LIMIT_SECONDS:g}ms"
            return
        for name in _SHOWN if self.arrival == "closed" else _SHOWN_OPEN_LOOP:
            histogram = self.tally.latencies[name]
            if histogram.count:
                yield f"latency {name:<14} {_figures(histogram)}"

    def to_json(self) -> dict[str, Any]:
        """Returns the summary as docs/load.md describes it; `from_json` reads it back without loss."""
        seconds = max(self.ended - self.started, 0.001)
        return {
            "schema": SCHEMA,
            "target": self.target,
            "arrival": self.arrival,
            "started": round(self.started, 6),
            "ended": round(self.ended, 6),
            "runs": self.runs,
            "exit_code": self.exit_code(),
            "dropped": self.dropped,
            **self.tally.to_json(),
            "goodput": round(self.tally.good / seconds, 4),
            "connections": {
                "opened": self.opened,
                "reuses": self.reuses,
                "by_pods_seen": {str(pods): count for pods, count in sorted(self.pods_per_connection.items())},
            },
            "client": {
                "overloaded": self.overloaded,
                "lag_limit": self.lag_limit,
                "late": self.late,
                "late_limit": MEASURING_LIMIT_SECONDS,
                "cpu_share": round(self.cpu_share, 4),
                "lag": self.lag.figures(),
                "lag_histogram": self.lag.to_json(),
            },
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Returns the summary that `to_json` wrote.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: the record is not one.
        """
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema is {record['schema']!r}, this program reads {SCHEMA}")
        connections, client = record["connections"], record["client"]
        return cls(
            target=str(record["target"]),
            arrival=str(record["arrival"]),
            started=float(record["started"]),
            ended=float(record["ended"]),
            tally=Tally.from_json(record),
            runs=int(record["runs"]),
            dropped=int(record["dropped"]),
            opened=int(connections["opened"]),
            reuses=int(connections["reuses"]),
            pods_per_connection=Counter({int(pods): int(count) for pods, count in connections["by_pods_seen"].items()}),
            lag=Histogram.from_json(client["lag_histogram"]),
            lag_limit=float(client["lag_limit"]),
            cpu_share=float(client["cpu_share"]),
            overloaded=int(client["overloaded"]),
            late=int(client["late"]),
        )

    def merge(self, other: Self) -> None:
        """Adds another run: counts and histograms add up, nothing is averaged."""
        self.started, self.ended = min(self.started, other.started), max(self.ended, other.ended)
        self.tally.merge(other.tally)
        self.runs += other.runs
        self.dropped += other.dropped
        self.opened += other.opened
        self.reuses += other.reuses
        self.pods_per_connection.update(other.pods_per_connection)
        self.lag.merge(other.lag)
        self.cpu_share = max(self.cpu_share, other.cpu_share)
        self.overloaded += other.overloaded
        self.late += other.late


def _figures(histogram: Histogram) -> str:
    figures = histogram.figures()
    shown = " ".join(f"{name}={1000 * (figures[name] or 0):.1f}ms" for name in ("p50", "p90", "p99", "max"))
    return f"{shown} n={histogram.count}"
