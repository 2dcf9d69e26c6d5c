"""Counts of durations in fixed buckets, so that runs merge exactly.

Averages of percentiles are wrong; sums of bucket counts are not. Buckets are the same everywhere: single
microseconds up to 1,024 us, then 512 equal steps in each power of two, so a bucket is at most 0.2 % wide.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

_EXACT = 1024  # microseconds; below, a bucket is one microsecond
_STEP_BITS = 9  # 512 steps in each power of two
_STEPS = 1 << _STEP_BITS
_MICRO = 1_000_000


def bucket_of(microseconds: int) -> int:
    """Returns the number of the bucket that holds a duration of 0 or more microseconds."""
    shift = microseconds.bit_length() - _STEP_BITS - 1
    return microseconds if shift <= 0 else (shift << _STEP_BITS) + (microseconds >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """Returns a bucket's least duration and the least of the next, in microseconds."""
    if bucket < _EXACT:
        return bucket, bucket + 1
    shift = (bucket >> _STEP_BITS) - 1
    step = bucket - (shift << _STEP_BITS)
    return step << shift, (step + 1) << shift


class Histogram:
    """Durations in seconds: bucket counts, and their exact number, sum, least and greatest."""

    __slots__ = ("buckets", "count", "greatest", "least", "total")

    def __init__(self) -> None:
        """Starts empty."""
        self.buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.least = math.inf
        self.greatest = 0.0

    def add(self, seconds: float) -> None:
        """Counts one duration; a negative one (clocks are read in some order) counts as 0."""
        self.add_all((seconds,))

    def add_all(self, durations: Sequence[float]) -> None:
        """Counts many durations in one go; one by one is what a run of many streams has no time for."""
        buckets = self.buckets
        for duration in durations:
            bucket = bucket_of(int(max(duration, 0.0) * _MICRO))
            buckets[bucket] = buckets.get(bucket, 0) + 1
        self.count += len(durations)
        self.total += sum(durations)
        self.least = max(min(self.least, min(durations, default=math.inf)), 0.0)
        self.greatest = max(self.greatest, max(durations, default=0.0))

    def merge(self, other: Self) -> None:
        """Adds every duration of `other`."""
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.count += other.count
        self.total += other.total
        self.least = min(self.least, other.least)
        self.greatest = max(self.greatest, other.greatest)

    def percentile(self, percent: float) -> float | None:
        """Returns the nearest-rank percentile in seconds (the middle of its bucket), None when empty."""
        if not self.count:
            return None
        rank = max(1, math.ceil(self.count * percent / 100))
        seen = 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                low, high = bounds_of(bucket)
                return min(max((low + high) / 2 / _MICRO, self.least), self.greatest)
        return self.greatest

    def figures(self) -> dict[str, float | int | None]:
        """Returns the figures that people read: count, mean, p50, p90, p95, p99 and max, in seconds."""
        figures: dict[str, float | int | None] = {"count": self.count}
        figures["mean"] = round(self.total / self.count, 6) if self.count else None
        for percent in (50, 90, 95, 99):
            value = self.percentile(percent)
            figures[f"p{percent}"] = None if value is None else round(value, 6)
        figures["max"] = round(self.greatest, 6) if self.count else None
        return figures

    def to_json(self) -> dict[str, Any]:
        """Returns what `from_json` reads back without loss."""
        ends = {"min": self.least, "max": self.greatest} if self.count else {}
        return {"count": self.count, "sum": self.total, **ends, "buckets": sorted(self.buckets.items())}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Returns the histogram that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: the record is not one.
        """
        histogram = cls()
        histogram.buckets = {int(bucket): int(count) for bucket, count in record["buckets"]}
        histogram.count = int(record["count"])
        if histogram.count != sum(histogram.buckets.values()):
            raise ValueError(f"count is {histogram.count}, the buckets hold {sum(histogram.buckets.values())}")
        histogram.total = float(record["sum"])
        histogram.least = float(record.get("min", math.inf))
        histogram.greatest = float(record.get("max", 0.0))
        return histogram
