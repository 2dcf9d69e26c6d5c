"""The verdict follows from the findings, and never flatters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inferctl.disruption.verdict import Outcome, Promise, judge
from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, Findings
from inferctl.report.state import Request


def _requests(count: int, pod: str = "old", client: str = "load") -> list[Request]:
    return [Request(client, number, pod=pod, first_token=1.0, end=5.0) for number in range(count)]


def _found(*, total: int = 932, at_risk: int = 7, **lost: list[Request]) -> Findings:
    return _findings(lost, total=total, at_risk=at_risk)


def _findings(lost: dict[str, list[Request]], *, total: int = 932, at_risk: int = 7) -> Findings:
    names = {"cut": CUT, "refused": REFUSED, "kept": KEPT, "unfinished": UNFINISHED}
    kinds = {names[name]: requests for name, requests in lost.items() if requests}
    failed = sum(map(len, kinds.values()))
    return Findings(
        total=total, ok=total - failed, lost=kinds, at_risk=_requests(at_risk), struck={"old": 1.0},
        retired={"old": 1.0},
    )  # fmt: skip


def test_proven_line_is_word_for_word() -> None:
    """The line of a run without loss has counts, streams at risk and the bound."""
    assert judge(_found(), Promise.A).line == (
        "verdict: proven: 0 of 932 requests lost, 7 streams were open on pods that were replaced "
        "(loss rate below 0.33 % at 95 %)"
    )


@pytest.mark.parametrize(("outcome", "code"), [(Outcome.PROVEN, 0), (Outcome.LOSS, 1), (Outcome.NOT_MEASURED, 2)])
def test_exit_codes(outcome: Outcome, code: int) -> None:
    """Proven is 0, loss 1, not measured 2."""
    cases = {
        Outcome.PROVEN: _found(),
        Outcome.LOSS: _found(cut=_requests(1)),
        Outcome.NOT_MEASURED: _found(at_risk=0),
    }
    verdict = judge(cases[outcome], Promise.A)
    assert (verdict.outcome, verdict.exit_code) == (outcome, code)


@pytest.mark.parametrize("kind", ["cut", "refused", "unfinished"])
def test_class_a_allows_none(kind: str) -> None:
    """One cut, refused or unfinished request is loss."""
    assert judge(_findings({kind: _requests(1)}), Promise.A).outcome is Outcome.LOSS


def test_kept_refusals_are_told_not_hidden() -> None:
    """A refusal on a kept connection is no loss, but stands in the line."""
    verdict = judge(_found(kept=_requests(3)), Promise.A, kept=4)
    assert verdict.outcome is Outcome.PROVEN
    assert "3 refused on a kept connection (safe to retry)" in verdict.reason


def test_kept_refusals_have_a_limit() -> None:
    """More than one per connection and retired pod is loss."""
    verdict = judge(_found(kept=_requests(5)), Promise.A, kept=4)
    assert verdict.outcome is Outcome.LOSS
    assert "at most 4 may be" in verdict.reason


def test_kept_refusals_need_a_retired_pod() -> None:
    """Where no pod is told to stop, nothing excuses a refusal, on a kept connection either."""
    found = replace(_found(kept=_requests(1)), retired={})
    verdict = judge(found, Promise.A, kept=4)
    assert verdict.outcome is Outcome.LOSS
    assert "1 requests refused on kept connections, at most 0 may be" in verdict.reason


def test_kept_refusals_come_after_a_pod_was_told_to_stop() -> None:
    """While every pod serves, nothing excuses a refusal: what retires later is no reason."""
    found = replace(_found(kept=_requests(3)), retired={"old": 5.1, "other": 7.0})
    verdict = judge(found, Promise.A, kept=4)
    assert verdict.outcome is Outcome.LOSS
    assert "3 requests refused on kept connections before any pod was told to stop" in verdict.reason
    assert judge(replace(found, retired={"old": 5.0, "other": 7.0}), Promise.A, kept=4).outcome is Outcome.PROVEN


def test_young_connections_are_never_refused() -> None:
    """With connections younger than the preStop sleep one refusal is loss."""
    found = _found(kept=_requests(1, client="short-young"))
    verdict = judge(found, Promise.A, kept=4, young=frozenset({"short-young"}))
    assert verdict.outcome is Outcome.LOSS
    assert "younger than the preStop sleep" in verdict.reason


def _crashed(*, cut: int, open_then: int, refused: int = 0) -> Findings:
    found = _found(cut=_requests(cut), refused=_requests(refused))
    found.at_risk = found.lost[CUT] + _requests(open_then)
    return found


def test_class_b_allows_cuts_on_the_struck_pod() -> None:
    """Streams on the struck pod may be cut; the line says how many of those that were open then."""
    found = _crashed(cut=4, open_then=3, refused=2)
    found.at_risk.append(Request("load", 99, pod="old", sent=9.0, first_token=9.5, end=10.0))
    verdict = judge(found, Promise.B, restored_within=15)
    assert verdict.outcome is Outcome.PROVEN
    assert verdict.reason.startswith("4 of 7 streams on the struck pod cut and none elsewhere, 2 of 932")


def test_class_b_allows_no_cut_elsewhere() -> None:
    """A cut stream on another pod is loss."""
    verdict = judge(_found(cut=_requests(1, pod="other")), Promise.B, restored_within=15)
    assert verdict.outcome is Outcome.LOSS
    assert "1 streams cut on pods that were not struck" in verdict.reason


def test_class_b_keeps_its_time() -> None:
    """Service that comes back later than promised is loss."""
    found = _crashed(cut=1, open_then=2, refused=2)
    found.restored_after = 16.0
    assert judge(found, Promise.B, restored_within=15).outcome is Outcome.LOSS
    assert judge(found, Promise.B, restored_within=20).outcome is Outcome.PROVEN


def test_class_b_allows_no_cut_afterwards() -> None:
    """A stream that began when the struck pod was back must not be cut."""
    found = _crashed(cut=2, open_then=3)
    late = Request("load", 99, pod="old", sent=9.0, first_token=9.5, end=10.0)
    found.lost[CUT].append(late)
    found.at_risk.append(late)
    assert "1 streams cut that began after" in judge(found, Promise.B, restored_within=15).reason


def test_class_b_must_strike() -> None:
    """A crash that cut nothing has not been measured."""
    assert judge(_found(), Promise.B).outcome is Outcome.NOT_MEASURED


def test_class_c_allows_refusals_only() -> None:
    """New requests may be refused; one cut stream is loss."""
    assert judge(_found(refused=_requests(100)), Promise.C).outcome is Outcome.PROVEN
    assert judge(_found(refused=_requests(100), cut=_requests(1)), Promise.C).outcome is Outcome.LOSS


def test_control_that_finds_loss() -> None:
    """A control is a success when it lost requests, and says how."""
    verdict = judge(_found(total=848, cut=_requests(8), refused=_requests(2)), Promise.A, control=True)
    assert verdict.exit_code == 0
    assert "the control lost 10 of 848 requests (8 cut, 2 refused)" in verdict.reason


def test_control_must_lose_by_the_disruption() -> None:
    """What a control lost before anything was done to it shows nothing, nor does a run that was cut short by then."""
    found = replace(_found(cut=_requests(2), refused=_requests(1)), began=5.1)
    verdict = judge(found, Promise.A, control=True)
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert verdict.unless_cut_short("not after 90 s", control=True).reason == "not after 90 s"
    found.lost[CUT].append(Request("load", 9, pod="old", first_token=1.0, end=5.2))
    assert "the control lost 1 of 932 requests (1 cut)" in judge(found, Promise.A, control=True).reason


@pytest.mark.parametrize("promise", [Promise.A, Promise.C])
def test_control_that_finds_nothing(promise: Promise) -> None:
    """Kept refusals, and in class C any refusal, occur with the protection too: they are not a control's loss."""
    lost = {"refused": _requests(5)} if promise is Promise.C else {"kept": _requests(5)}
    verdict = judge(_findings(lost), promise, control=True)
    assert verdict.outcome is Outcome.NOT_MEASURED


def test_unprotected_scenario_must_lose() -> None:
    """Where nothing protects, the run must show loss."""
    assert judge(_found(cut=_requests(1)), Promise.LOSES).outcome is Outcome.PROVEN
    assert judge(_found(), Promise.LOSES).outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("outcome", ["stall", "TimeoutError"])
def test_time_outs_of_a_late_client_measure_nothing(outcome: str, *, control: bool) -> None:
    """A load that was too late itself may have caused its own time-outs."""
    lost = _requests(1)
    lost[0].outcome = outcome
    found = _found(cut=lost)
    found.overloaded = ["load"]
    assert judge(found, Promise.A, control=control).outcome is Outcome.NOT_MEASURED


def test_late_client_s_other_words_count() -> None:
    """No client can make a cut answer whole, or have the server send an error, by being late."""
    found = _found()
    found.overloaded = ["load"]
    assert judge(found, Promise.A).outcome is Outcome.PROVEN
    lost = _requests(1)
    lost[0].outcome = "error_event"
    found = _found(cut=lost)
    found.overloaded = ["load"]
    assert judge(found, Promise.A).outcome is Outcome.LOSS


def test_nothing_ended_is_not_measured() -> None:
    """Without requests there is no verdict, also for a control."""
    assert judge(_found(total=0), Promise.A).outcome is Outcome.NOT_MEASURED
    assert judge(_found(total=0), Promise.A, control=True).outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize("promise", [Promise.A, Promise.B, Promise.C])
def test_requests_that_nobody_can_account_for_prove_nothing(promise: Promise) -> None:
    """Where lines of a load's log are lost, a lost request could be among them; what was seen lost stays loss."""
    found = _crashed(cut=1, open_then=9) if promise is Promise.B else _found()
    verdict = judge(replace(found, unaccounted=2), promise)
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "differ by 2 requests" in verdict.reason
    lost = replace(_found(cut=_requests(1, pod="other")), unaccounted=2)
    assert judge(lost, promise).outcome is Outcome.LOSS


def test_rollout_that_outlives_its_load_is_not_measured() -> None:
    """Pods that were told to stop when nobody sent any more are named."""
    verdict = judge(replace(_found(), unwatched=["old-2"]), Promise.A)
    assert verdict.line == "verdict: not measured: load had ended when pods were told to stop: old-2"


def test_too_few_at_risk() -> None:
    """Fewer streams at risk than wanted is not measured, and the line says both numbers."""
    verdict = judge(_found(at_risk=7), Promise.A, enough=8)
    assert verdict.line == "verdict: not measured: 7 streams were at risk, at least 8 are needed"
