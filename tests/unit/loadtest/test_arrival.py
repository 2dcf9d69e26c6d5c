"""Schedules: repeatable, at the rate that was asked for."""

from itertools import islice, pairwise

import pytest
from loadgen.arrival import offsets, wait_after_failures


def first(count: int, arrival: str, *, rate: float = 50.0, burst_size: int = 10, seed: int = 1) -> list[float]:
    """Returns the first offsets of a schedule."""
    return list(islice(offsets(arrival, rate, burst_size=burst_size, seed=seed), count))


def test_constant() -> None:
    """Constant arrivals are evenly spaced, and do not drift over a long run."""
    times = first(100_001, "constant", rate=3.0)
    assert times[:3] == pytest.approx([0, 1 / 3, 2 / 3])
    assert times[-1] == pytest.approx(100_000 / 3, abs=1e-9)


def test_poisson() -> None:
    """Poisson arrivals have the rate asked for, and waits as spread out as an exponential's."""
    times = first(20_000, "poisson")
    waits = [after - before for before, after in pairwise(times)]
    mean = sum(waits) / len(waits)
    deviation = (sum((wait - mean) ** 2 for wait in waits) / len(waits)) ** 0.5
    assert mean == pytest.approx(1 / 50, rel=0.03)
    assert deviation == pytest.approx(mean, rel=0.05)


def test_seed() -> None:
    """The same seed gives the same arrivals, another seed others."""
    assert first(50, "poisson", seed=7) == first(50, "poisson", seed=7)
    assert first(50, "poisson", seed=7) != first(50, "poisson", seed=8)


def test_burst() -> None:
    """A burst is sent at once, and bursts come so often that the rate is kept."""
    assert first(8, "burst", rate=2.0, burst_size=4) == [0, 0, 0, 0, 2, 2, 2, 2]


def test_wait_after_failures() -> None:
    """Waits grow with each failure in a row, are bounded, and end with the first success."""
    waits = [wait_after_failures(failures) for failures in range(12)]
    assert waits[:4] == [0, 0.02, 0.04, 0.08]
    assert waits == sorted(waits)
    assert waits[-1] == wait_after_failures(10**9) == 0.5
