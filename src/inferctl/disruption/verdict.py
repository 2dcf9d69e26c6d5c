"""What may be said after a run, and by which rules; docs/verdicts.md explains them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, bound

if TYPE_CHECKING:
    from inferctl.report.findings import Findings
    from inferctl.report.state import Request


class Outcome(Enum):
    """The three things that a run may come to."""

    PROVEN = "proven"
    LOSS = "loss"
    NOT_MEASURED = "not measured"

    @property
    def exit_code(self) -> int:
        """0 proven, 1 loss, 2 not measured."""
        return _EXIT_CODES[self]


class Promise(Enum):
    """What a scenario promises; its class."""

    A = "nothing is lost"
    B = "only streams on the struck pod are cut, and service is restored in time"
    C = "new requests may be refused, streams that have begun are finished"
    LOSES = "nothing protects here: the loss is measured, not denied"


#: Outcomes that a client which is late itself can cause; every other one takes an answer or a refusal by the server.
_BY_TIME = frozenset({"stall", "TimeoutError"})
_EXIT_CODES = {Outcome.PROVEN: 0, Outcome.LOSS: 1, Outcome.NOT_MEASURED: 2}


@dataclass(frozen=True)
class Verdict:
    """The outcome and the clause that says why."""

    outcome: Outcome
    reason: str

    @property
    def exit_code(self) -> int:
        """0 proven, 1 loss, 2 not measured."""
        return self.outcome.exit_code

    @property
    def line(self) -> str:
        """The last line of a test."""
        return f"verdict: {self.outcome.value}: {self.reason}"

    def unless_cut_short(self, trouble: str, *, control: bool) -> Verdict:
        """The verdict of a run in which ``trouble`` came up, if any: what was lost by then is loss all the same."""
        lost = self.outcome is Outcome.LOSS or (control and self.outcome is Outcome.PROVEN)
        return Verdict(Outcome.NOT_MEASURED, trouble.splitlines()[0]) if trouble and not lost else self


def judge(
    found: Findings,
    promise: Promise,
    *,
    control: bool = False,
    enough: int = 1,
    restored_within: float | None = None,
    kept: int = 0,
    young: frozenset[str] = frozenset(),
) -> Verdict:
    """Judge what a run found by what its scenario promises.

    Args:
        found: the run's findings.
        promise: the scenario's class.
        control: the protection had been taken away: only loss is a result then.
        enough: streams that must have been at risk.
        restored_within: class B: seconds after which no request may fail any more.
        kept: kept connections; one request on each may be refused for each pod that was told to stop.
        young: loads whose connections are younger than the preStop sleep: none of theirs may be refused.
    """
    if reason := _unmeasured(found, promise):
        return Verdict(Outcome.NOT_MEASURED, reason)
    if control or promise is Promise.LOSES:
        return _must_lose(found, promise, control=control)
    complaints = _complaints(found, promise, restored_within)
    complaints += _kept_complaints(found, kept * len(found.retired), young) if promise is Promise.A else []
    if complaints:
        return Verdict(Outcome.LOSS, f"{_lost(found)} of {found.total} requests lost: {'; '.join(complaints)}")
    if reason := _too_little(found, promise, enough):
        return Verdict(Outcome.NOT_MEASURED, reason)
    return Verdict(Outcome.PROVEN, _proven(found, promise))


def _unmeasured(found: Findings, promise: Promise) -> str:
    if not found.total:
        return "no request ended"
    # Where refusals are allowed anyway, only a cut stream would be held against the service.
    kinds = (CUT, REFUSED) if promise is Promise.A else (CUT,)
    lost = [request for kind in kinds for request in found.lost.get(kind, [])]
    if lost and all(request.outcome in _BY_TIME and request.client in found.overloaded for request in lost):
        return f"{len(lost)} requests timed out, all in loads that were late themselves: {', '.join(found.overloaded)}"
    return ""


def _too_little(found: Findings, promise: Promise, enough: int) -> str:
    if found.unaccounted:
        return f"the loads' own counts and their logs differ by {found.unaccounted} requests"
    if found.unwatched:
        return f"load had ended when pods were told to stop: {', '.join(found.unwatched)}"
    if len(found.at_risk) < enough:
        return f"{len(found.at_risk)} streams were at risk, at least {enough} are needed"
    if promise is Promise.B and not found.count(CUT):
        return "no stream was cut, so that the disruption did not strike"
    return ""


def _must_lose(found: Findings, promise: Promise, *, control: bool) -> Verdict:
    who = "the control" if control else "the scenario"
    # Where refusals are allowed anyway, only a cut stream shows that the protection is gone.
    kinds = (CUT,) if promise is Promise.C else (CUT, REFUSED)
    # What was lost before anything was done shows nothing of what would have protected.
    counts = {kind: sum((one.end or 0.0) >= found.began for one in found.lost.get(kind, [])) for kind in kinds}
    if lost := sum(counts.values()):
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        why = "so that this test can find loss" if control else "as it must: nothing protects here"
        return Verdict(Outcome.PROVEN, f"{who} lost {lost} of {found.total} requests ({said}), {why}")
    return Verdict(Outcome.NOT_MEASURED, f"{who} lost none of {found.total} requests, but should have")


def _kept_complaints(found: Findings, allowed: int, young: frozenset[str]) -> list[str]:
    complaints = []
    if found.count(KEPT) > allowed:
        complaints.append(f"{found.count(KEPT)} requests refused on kept connections, at most {allowed} may be")
    first = min(found.retired.values(), default=0.0)
    untold = sum((request.end or 0.0) < first for request in found.lost.get(KEPT, []))
    if untold:
        complaints.append(f"{untold} requests refused on kept connections before any pod was told to stop")
    early = sum(request.client in young for request in found.lost.get(KEPT, []))
    if early:
        complaints.append(f"{early} requests refused on connections younger than the preStop sleep")
    return complaints


def _complaints(found: Findings, promise: Promise, within: float | None) -> list[str]:
    complaints = []
    cut = found.lost.get(CUT, [])
    if promise is Promise.B:
        stray = [request for request in cut if request.pod not in found.struck]
        if stray:
            complaints.append(f"{len(stray)} streams cut on pods that were not struck")
        again = len(cut) - len(stray) - len({id(r) for r in cut} & {id(r) for r in _on_struck(found)})
        if again:
            complaints.append(f"{again} streams cut that began after the disruption had struck")
        if within is not None and (found.restored_after or 0.0) > within:
            complaints.append(f"requests still failed after {found.restored_after:.0f} s, promised were {within:.0f} s")
    elif cut:
        complaints.append(f"{len(cut)} streams cut")
    if promise is Promise.A and found.count(REFUSED):
        complaints.append(f"{found.count(REFUSED)} requests refused")
    if found.count(UNFINISHED):
        complaints.append(f"{found.count(UNFINISHED)} streams never finished")
    return complaints


def _on_struck(found: Findings) -> list[Request]:
    """The streams at risk that were open when the first was cut: those that a crash can have cut."""
    struck = min((request.end or 0.0 for request in found.lost.get(CUT, [])), default=0.0)
    return [request for request in found.at_risk if (request.sent or 0.0) <= struck <= (request.end or 0.0)]


def _proven(found: Findings, promise: Promise) -> str:
    kept = found.count(KEPT)
    beside = f", {kept} refused on a kept connection (safe to retry)" if kept else ""
    if promise is Promise.B:
        back = f"{found.restored_after:.0f} s" if found.restored_after else "at once"
        return (
            f"{found.count(CUT)} of {len(_on_struck(found))} streams on the struck pod cut and none elsewhere, "
            f"{found.count(REFUSED)} of {found.total} requests refused{beside}, service restored after {back}"
        )
    if promise is Promise.C:
        return (
            f"0 of {len(found.at_risk)} begun streams cut, "
            f"{found.count(REFUSED)} of {found.total} requests refused{beside} "
            f"(cut rate below {bound(len(found.at_risk))} at 95 %)"
        )
    return (
        f"0 of {found.total} requests lost, {len(found.at_risk)} streams were open on pods that were "
        f"{'replaced' if found.retired else 'disturbed'}{beside} (loss rate below {bound(found.total)} at 95 %)"
    )


def _lost(found: Findings) -> int:
    return found.failures - found.count(KEPT)
