"""What a run found: how every request fared, which were at risk, and how fast service came back."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferctl.report.state import OK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inferctl.report.state import Request, State

CUT, REFUSED, KEPT, UNFINISHED = "cut", "refused", "refused on a kept connection", "unfinished"
_HTTP_OK, _SERVER_ERROR = 200, 500
#: What the load generator calls a reused connection that ended before the first byte of an answer.
_STALE = "stale_keepalive"
#: -ln(0.05): none of n lost bounds the loss rate at this over n with 95 % confidence.
_RULE_OF_THREE = 3.0


def fate(request: Request, retired: Mapping[str, float]) -> str:
    """Say how a request fared: ``ok`` or one of this module's four words.

    Args:
        request: one that has ended.
        retired: pods that were told to stop, and when, Unix seconds. From then on a kept connection to one of them may
            be refused its next request: it was never begun and is safe to send again, so it is told apart from a cut
            stream and from a refusal by the service.
    """
    if request.outcome == OK:
        return OK
    if request.outcome == "unfinished":
        return UNFINISHED
    if request.first_token is not None or request.chunks or request.http == _HTTP_OK:
        return CUT
    # Silence on a kept connection is no refusal: only one that was closed before it was heard of is safe to tell apart.
    closed = request.outcome == _STALE
    told = retired.get(request.pod, math.inf)
    draining = request.reused and request.http == _SERVER_ERROR and (request.end or 0.0) >= told
    return KEPT if closed or draining else REFUSED


@dataclass
class Findings:
    """The counts of a run.

    Attributes:
        total: requests that ended.
        lost: requests that were not ok, by fate.
        at_risk: streams that had begun on a struck pod and were open when it was struck, or began there later. One that
            was cut there after the disruption had begun was open then, though word of the strike came a moment later.
        began: when the disruption began, Unix seconds; never if it did not.
        aimed_at: pods that the disruption was aimed at.
        struck: when each struck pod was struck, Unix seconds.
        retired: those of them that had been in service and were told to stop, and when.
        unwatched: those of `retired` that were told to stop when no request was sent any more.
        restored_after: seconds from the disruption to the end of the last later request that was refused or cut;
            None if there is none.
        still_failing: none that was sent after that end fared well.
        unaccounted: requests that a load counted and the timeline does not have, or the other way round.
        overloaded: loads whose own delays were too large for their word to count.
    """

    total: int = 0
    ok: int = 0
    lost: dict[str, list[Request]] = field(default_factory=dict)
    at_risk: list[Request] = field(default_factory=list)
    began: float = 0.0
    aimed_at: tuple[str, ...] = ()
    struck: dict[str, float] = field(default_factory=dict)
    retired: dict[str, float] = field(default_factory=dict)
    unwatched: list[str] = field(default_factory=list)
    restored_after: float | None = None
    still_failing: bool = False
    unaccounted: int = 0
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
    began = float(disruption["t"]) if disruption else math.inf
    found = Findings(began=began, aimed_at=tuple(disruption.get("pods", ())))
    _strike(found, state, began, retires=disruption.get("retires", False))
    last_ok = last_failure = last_sent = -math.inf
    for request in state.requests.values():
        # One that found no connection was never sent.
        last_sent = max(last_sent, request.sent or request.end or last_sent)
        if request.end is None:
            continue
        found.total += 1
        how = fate(request, found.retired)
        if how == OK:
            found.ok += 1
            last_ok = max(last_ok, request.sent or last_ok)
        else:
            found.lost.setdefault(how, []).append(request)
            if how in {CUT, REFUSED} and (request.sent is None or request.sent >= began):
                last_failure = max(last_failure, request.end)
        # A stream that has its head but no token yet can be cut as well.
        if request.pod in found.struck and (request.first_token is not None or how == CUT):
            since = began if how == CUT else found.struck[request.pod]
            if request.end >= since:
                found.at_risk.append(request)
    if began < last_failure:
        found.restored_after, found.still_failing = last_failure - began, last_ok < last_failure
    found.unwatched = sorted(pod for pod, told in found.retired.items() if told > last_sent)
    found.unaccounted = _unaccounted(state)
    found.overloaded = sorted(name for name, said in state.summaries.items() if said["overloaded"])
    return found


def unnamed(state: State) -> str:
    """Why nobody can tell which streams are at risk; empty while answers name their pods, or none has come."""
    answers = [request.pod for request in state.requests.values() if request.outcome == OK]
    if not answers or any(answers):
        return ""
    return (
        "no answer says which pod it came from: the engine must name it in the header x-served-by; docs/own-engine.md"
    )


def _strike(found: Findings, state: State, began: float, *, retires: bool) -> None:
    for pod in state.pods.values():
        if pod.deleted is not None and pod.deleted >= began:
            found.struck[pod.name] = pod.deleted
            if any(name == "Ready" for _, name in pod.states):
                found.retired[pod.name] = pod.deleted
        elif pod.name in found.aimed_at and not retires:
            found.struck[pod.name] = began


def _unaccounted(state: State) -> int:
    """Compare each load's own count, its last word, with what its log has brought: lines of a log may be lost."""
    ended: Counter[str] = Counter()
    open_: Counter[str] = Counter()
    for request in state.requests.values():
        (open_ if request.end is None else ended)[request.client] += 1
    return sum(
        max(abs(said.get("total", ended[name]) - ended[name]), open_[name]) for name, said in state.summaries.items()
    )


def bound(samples: int) -> str:
    """The loss rate that ``samples`` without a loss leave possible, in per cent, rounded up, at 95 % confidence."""
    return f"{math.ceil(100 * _RULE_OF_THREE / samples * 100) / 100:.2f} %" if samples else "100 %"
