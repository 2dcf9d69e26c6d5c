"""What the endpoints work on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from mock_engine.environment import AbortStyle
from mock_engine.faults import Faults
from mock_engine.metrics import Metrics
from mock_engine.requests import Limits
from mock_engine.scheduler import Scheduler


def _not_listening(seconds: float) -> None:
    """Refuses for the server that there is not yet: nothing listens."""


@dataclass(slots=True)
class Engine:
    """One model being served.

    Attributes:
        started: in Unix seconds.
        refuse: closes the listener for some seconds.
        over: set when the work is done, or given up, and the process ends.
    """

    limits: Limits
    scheduler: Scheduler
    metrics: Metrics
    faults: Faults
    role: str
    pod: str
    abort_style: AbortStyle
    max_queued: int | None
    load_tracking: bool
    started: int
    ready: bool = False
    draining: bool = False
    served: int = 0
    ended: int = 0
    load: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    refuse: Callable[[float], None] = _not_listening
