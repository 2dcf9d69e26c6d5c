"""When requests are meant to be sent: offsets from the start of the run, in seconds.

Open-loop schedules do not look at answers, so a server that freezes is still asked at the intended times, and
what the freeze cost shows in the latencies from these times.
"""

import random
from collections.abc import Iterator
from itertools import count

_FIRST_WAIT_SECONDS = 0.02
_LONGEST_WAIT_SECONDS = 0.5


def offsets(arrival: str, rate: float, *, burst_size: int, seed: int) -> Iterator[float]:
    """Yields intended send times without end: constant, poisson or burst, on average `rate` per second."""
    if arrival == "poisson":
        source = random.Random(seed)  # noqa: S311 - arrivals are to be repeatable, not secret
        at = 0.0
        while True:
            at += source.expovariate(rate)
            yield at
    elif arrival == "burst":
        for burst in count():
            for _ in range(burst_size):
                yield burst * burst_size / rate
    else:
        for number in count():
            yield number / rate


def wait_after_failures(failures: int) -> float:
    """Returns how long a closed loop waits after so many failures in a row: 20 ms, doubling, at most 0.5 s.

    Without it a loop whose connections are refused would spin, count thousands of refusals and starve
    the others.
    """
    return min(_FIRST_WAIT_SECONDS * 2 ** min(failures - 1, 10), _LONGEST_WAIT_SECONDS) if failures else 0.0
