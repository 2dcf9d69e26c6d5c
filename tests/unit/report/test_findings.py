"""What a run found is counted by rules that a failing request cannot slip through."""

from __future__ import annotations

from typing import Any

import pytest

from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, bound, fate, find
from inferctl.report.state import OK, Request


def _request(**fields: Any) -> Request:  # noqa: ANN401 - the fields of a request
    return Request("load", 0, sent=1.0, end=2.0, **fields)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (_request(outcome="ok", http=200, chunks=20), OK),
        (_request(outcome="truncated", http=200, chunks=5, first_token=1.5), CUT),
        (_request(outcome="error_event", http=200), CUT),
        (_request(outcome="no_finish_reason", http=200, chunks=9, reused=True), CUT),
        (_request(outcome="stall", http=200), CUT),
        (_request(outcome="ConnectionRefusedError"), REFUSED),
        (_request(outcome="http_500", http=500, pod="old"), REFUSED),
        (_request(outcome="http_503", http=503, pod="old", reused=True), REFUSED),
        (_request(outcome="http_500", http=500, pod="old", reused=True), KEPT),
        (_request(outcome="http_500", http=500, pod="serving", reused=True), REFUSED),
        (_request(outcome="stale_keepalive", reused=True), KEPT),
        (_request(outcome="stall", reused=True), REFUSED),
        (_request(outcome="TimeoutError", reused=True), REFUSED),
        (_request(outcome="unfinished", chunks=3), UNFINISHED),
    ],
)
def test_fate(request_: Request, expected: str) -> None:
    """A begun stream that fails is cut; a kept connection's refusal is told apart only where a pod retires."""
    assert fate(request_, retired=["old"]) == expected


def test_streams_open_at_the_strike_are_at_risk(story: Any) -> None:  # noqa: ANN401 - a Story
    """At risk is what had begun on a retired pod and ended after it was told to stop, or began there later."""
    story.pod(0, "old", "Ready")
    story.pod(0, "other", "Ready")
    story.add(5, "disrupt", text="", pods=["old", "other"], retires=True)
    story.request(1, 4, first=2, pod="old")
    open_then = story.request(4, 12, first=5, pod="old")
    begun_later = story.request(11, 13, first=12, pod="old")
    story.request(4, 12, first=5, pod="other")
    story.pod(10, "old", "Terminating")
    found = find(story.state)
    assert [request.number for request in found.at_risk] == [open_then, begun_later]
    assert found.retired == ["old"]
    assert found.struck == {"old": 10}


def test_pods_that_are_disturbed_are_struck_at_once(story: Any) -> None:  # noqa: ANN401 - a Story
    """Where no pod is told to stop, the pods aimed at count as struck when the disruption begins."""
    story.pod(0, "pod", "Ready")
    story.add(5, "disrupt", text="", pods=["pod"], retires=False)
    assert find(story.state).struck == {"pod": 5}


def test_pod_that_left_before_the_disruption_is_not_struck(story: Any) -> None:  # noqa: ANN401 - a Story
    """What an earlier rollout retired does not count."""
    story.pod(0, "old", "Ready")
    story.pod(1, "old", "Terminating")
    story.add(5, "disrupt", text="", pods=[], retires=True)
    assert not find(story.state).struck


def test_restored_after_the_last_new_failure(story: Any) -> None:  # noqa: ANN401 - a Story
    """Service is restored when the last request sent after the disruption has failed; cut old streams do not count."""
    story.pod(0, "pod", "Ready")
    story.add(10, "disrupt", text="", pods=["pod"], retires=False)
    story.request(None, 14, "TimeoutError", http=0, chunks=0)
    story.request(9, 30, "stall", first=9.5, pod="pod")
    assert find(story.state).restored_after == pytest.approx(4)


def test_open_requests_are_not_counted(story: Any) -> None:  # noqa: ANN401 - a Story
    """A request without an end is not in the total."""
    story.add(1, "sent", client="load", id=0)
    assert find(story.state).total == 0
    assert story.state.open == 1


@pytest.mark.parametrize(("samples", "text"), [(932, "0.33 %"), (300, "1.00 %"), (7, "42.86 %"), (0, "100 %")])
def test_bound(samples: int, text: str) -> None:
    """None of n lost bounds the rate at 3/n, rounded up, never down."""
    assert bound(samples) == text
