"""What a run found: how every request fared, which were at risk, and how fast service came back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferctl.report.state import OK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inferctl.report.state import Request, State

CUT, REFUSED, KEPT, UNFINISHED = "cut", "refused", "refused on a kept connection", "unfinished"
_HTTP_OK, _SERVER_ERROR = 200, 500
#: What the load generator calls a reused connection that ended before the first byte of an answer.
_STALE = "stale_keepalive"
#: -ln(0.05): none of n lost bounds the loss rate at this over n with 95 % confidence.
_RULE_OF_THREE = 3.0


def fate(request: Request, retired: Iterable[str] = ()) -> str:
    """Say how a request fared: ``ok`` or one of this module's four words.

    Args:
        request: one that has ended.
        retired: pods that were told to stop. A kept connection to one of them is refused its next request: it was
            never begun and is safe to send again, so it is told apart from a cut stream and from a refusal by the
            service.
    """
    if request.outcome == OK:
        return OK
    if request.outcome == "unfinished":
        return UNFINISHED
    if request.first_token is not None or request.chunks or request.http == _HTTP_OK:
        return CUT
    # Silence on a kept connection is no refusal: only one that was closed before it was heard of is safe to tell apart.
    closed = request.outcome == _STALE
    draining = request.reused and request.http == _SERVER_ERROR and request.pod in retired
    return KEPT if closed or draining else REFUSED


@dataclass
class Findings:
    """The counts of a run.

    Attributes:
        total: requests that ended.
        lost: requests that were not ok, by fate.
        at_risk: streams that had begun on a struck pod and were open when it was struck, or began there later.
        aimed_at: pods that the disruption was aimed at.
        struck: when each struck pod was struck, Unix seconds.
        retired: those of them that were told to stop.
        restored_after: seconds from the disruption to the end of the last later request that was refused or cut;
            None if there is none.
        overloaded: loads whose own delays were too large for their word to count.
    """

    total: int = 0
    ok: int = 0
    lost: dict[str, list[Request]] = field(default_factory=dict)
    at_risk: list[Request] = field(default_factory=list)
    aimed_at: tuple[str, ...] = ()
    struck: dict[str, float] = field(default_factory=dict)
    retired: list[str] = field(default_factory=list)
    restored_after: float | None = None
    overloaded: list[str] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """How many requests fared like this."""
        return len(self.lost.get(kind, []))

    @property
    def failures(self) -> int:
        """Requests that were not ok."""
        return self.total - self.ok


def find(state: State) -> Findings:
    """Count what a run found; pods told to stop after the disruption began count as struck, as do those it names."""
    disruption = state.facts.get("disrupt", {})
    found = Findings(aimed_at=tuple(disruption.get("pods", ())))
    began = float(disruption["t"]) if disruption else math.inf
    for pod in state.pods.values():
        if pod.deleted is not None and pod.deleted >= began:
            found.struck[pod.name] = pod.deleted
            found.retired.append(pod.name)
        elif pod.name in found.aimed_at and not disruption.get("retires"):
            found.struck[pod.name] = began
    last_failure: float | None = None
    for request in state.requests.values():
        if request.end is None:
            continue
        found.total += 1
        how = fate(request, found.retired)
        if how == OK:
            found.ok += 1
        else:
            found.lost.setdefault(how, []).append(request)
            if how != KEPT and (request.sent is None or request.sent >= began):
                last_failure = max(last_failure or request.end, request.end)
        # A stream that has its head but no token yet can be cut as well.
        begun = request.first_token is not None or how == CUT
        if begun and request.end >= found.struck.get(request.pod, math.inf):
            found.at_risk.append(request)
    if last_failure is not None and began < last_failure:
        found.restored_after = last_failure - began
    found.overloaded = sorted(name for name, said in state.summaries.items() if said["overloaded"])
    return found


def bound(samples: int) -> str:
    """The loss rate that ``samples`` without a loss leave possible, in per cent, rounded up, at 95 % confidence."""
    return f"{math.ceil(100 * _RULE_OF_THREE / samples * 100) / 100:.2f} %" if samples else "100 %"
