"""Histograms: exact to merge, close to the truth, the same after JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadgen.histogram import Histogram, bounds_of, bucket_of

durations = st.lists(st.floats(0, 4000, allow_nan=False), max_size=50)


def of(values: list[float]) -> Histogram:
    """Returns a histogram of the values."""
    histogram = Histogram()
    histogram.add_all(values)
    return histogram


def state(histogram: Histogram) -> tuple[object, ...]:
    """Returns all that a histogram holds, the sum rounded: addition of floats depends on the order."""
    return histogram.buckets, histogram.count, round(histogram.total, 6), histogram.least, histogram.greatest


@given(st.integers(0, 2**40))
def test_bucket(microseconds: int) -> None:
    """Every duration lies in its bucket, which is at most 0.2 % wide."""
    low, high = bounds_of(bucket_of(microseconds))
    assert low <= microseconds < high
    assert high - low <= max(1, microseconds / 500)


@given(durations, durations)
def test_merge(one: list[float], two: list[float]) -> None:
    """Two merged histograms are the histogram of all values."""
    merged = of(one)
    merged.merge(of(two))
    assert state(merged) == state(of(one + two))


@given(durations)
def test_json(values: list[float]) -> None:
    """A histogram is the same after it went through JSON."""
    histogram = of(values)
    assert state(Histogram.from_json(json.loads(json.dumps(histogram.to_json())))) == state(histogram)


@given(durations.filter(bool), st.sampled_from([1.0, 50.0, 90.0, 99.0, 100.0]))
def test_percentile(values: list[float], percent: float) -> None:
    """A percentile is the nearest-rank one, to 0.2 % or a microsecond."""
    exact = sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
    measured = of(values).percentile(percent)
    assert measured is not None
    assert abs(measured - exact) <= max(0.002 * exact, 2e-6)


def test_empty() -> None:
    """Nothing measured is None, not zero."""
    assert of([]).figures() == {
        "count": 0,
        "mean": None,
        "p50": None,
        "p90": None,
        "p95": None,
        "p99": None,
        "max": None,
    }


def test_inconsistent() -> None:
    """A record whose count is not that of its buckets is refused."""
    with pytest.raises(ValueError, match="count is 3, the buckets hold 2"):
        Histogram.from_json({"count": 3, "sum": 1.0, "buckets": [[5, 2]]})
