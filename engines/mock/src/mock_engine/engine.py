"""What the endpoints work on."""

from collections.abc import Callable
from dataclasses import dataclass

from mock_engine.environment import AbortStyle
from mock_engine.faults import Faults
from mock_engine.metrics import Metrics
from mock_engine.requests import Limits
from mock_engine.scheduler import Scheduler


def _not_listening(seconds: float) -> None:
    """Refuses for the server that there is not yet: nothing listens."""


@dataclass(slots=True)
class Engine:
    """One model being served. `started` is in Unix seconds; `refuse` closes the listener for some seconds."""

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
    refuse: Callable[[float], None] = _not_listening
