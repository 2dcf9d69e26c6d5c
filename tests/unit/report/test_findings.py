"""What a run found is counted by rules that a failing request cannot slip through."""

from __future__ import annotations

from typing import Any

import pytest

from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, bound, fate, find
from inferctl.report.state import OK, Request


def _request(**fields: Any) -> Request:  # noqa: ANN401 - the fields of a request
    return Request("load", 0, **{"sent": 1.0, "end": 2.0} | fields)


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
        (_request(outcome="http_500", http=500, pod="old", reused=True, end=1.4), REFUSED),
        (_request(outcome="http_500", http=500, pod="serving", reused=True), REFUSED),
        (_request(outcome="stale_keepalive", reused=True), KEPT),
        (_request(outcome="stall", reused=True), REFUSED),
        (_request(outcome="TimeoutError", reused=True), REFUSED),
        (_request(outcome="unfinished", chunks=3), UNFINISHED),
    ],
)
def test_fate(request_: Request, expected: str) -> None:
    """A begun stream that fails is cut; a kept connection's refusal is told apart only once its pod retires."""
    assert fate(request_, retired={"old": 1.5}) == expected


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
    assert found.retired == {"old": 10}
    assert found.struck == {"old": 10}


def test_stream_cut_before_word_of_the_strike_was_at_risk(story: Any) -> None:  # noqa: ANN401 - a Story
    """A pod that is killed at once cuts its streams before anybody hears that it was told to stop."""
    story.pod(0, "old", "Ready")
    story.request(1, 4, "truncated", first=2, pod="old")
    story.add(5, "disrupt", text="", pods=["old"], retires=True)
    cut = story.request(4, 9.99, "truncated", first=5, pod="old")
    story.request(4, 9.99, first=5, pod="old")
    story.pod(10, "old", "Terminating")
    assert [request.number for request in find(story.state).at_risk] == [cut]


def test_pod_that_retires_when_load_has_ended_is_told(story: Any) -> None:  # noqa: ANN401 - a Story
    """What a rollout does after the last request was sent has not been measured; a refused request counts as sent."""
    for name in ("first", "second", "third"):
        story.pod(0, name, "Ready")
    story.add(1, "disrupt", text="", pods=["first", "second", "third"], retires=True)
    story.pod(2, "first", "Terminating")
    story.request(3, 9, first=4, pod="second")
    story.request(None, 5, "ConnectionRefusedError", http=0, chunks=0)
    story.pod(5, "second", "Terminating")
    story.pod(6, "third", "Terminating")
    assert find(story.state).unwatched == ["third"]


@pytest.mark.parametrize(("counted", "differ"), [(2, 0), (3, 1), (1, 1), (None, 0)])
def test_requests_that_a_log_has_lost_are_noticed(story: Any, counted: int | None, differ: int) -> None:  # noqa: ANN401 - a Story
    """A load's last word says how many requests there were: no line of its log may be missing, and none too many."""
    story.request(1, 2, first=1.1, pod="pod")
    story.request(1, 2, first=1.1, pod="pod")
    story.request(1, 2, first=1.1, pod="pod", client="another")
    total = {} if counted is None else {"total": counted}
    story.add(3, "summary", client="load", overloaded=0, **total)
    assert find(story.state).unaccounted == differ


def test_request_without_an_end_is_noticed(story: Any) -> None:  # noqa: ANN401 - a Story
    """A load that has ended leaves no request open."""
    story.add(1, "sent", client="load", id=0)
    assert find(story.state).unaccounted == 0
    story.add(3, "summary", client="load", overloaded=0, total=0)
    assert find(story.state).unaccounted == 1


def test_pods_that_are_disturbed_are_struck_at_once(story: Any) -> None:  # noqa: ANN401 - a Story
    """Where no pod is told to stop, the pods aimed at count as struck when the disruption begins."""
    story.pod(0, "pod", "Ready")
    story.add(5, "disrupt", text="", pods=["pod"], retires=False)
    assert find(story.state).struck == {"pod": 5}


def test_pod_that_never_served_does_not_retire(story: Any) -> None:  # noqa: ANN401 - a Story
    """A bad version that is taken back had no connection on which anything could be refused."""
    story.pod(0, "good", "Ready")
    story.add(5, "disrupt", text="", pods=["good"], retires=False)
    story.pod(6, "bad", "Pending")
    story.pod(7, "bad", "Running")
    story.pod(8, "bad", "Terminating")
    assert find(story.state).retired == {}
    assert find(story.state).struck == {"good": 5, "bad": 8}


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
    # What a load gave up at its end says nothing about the service.
    story.request(20, 40, "unfinished", first=21, pod="pod")
    assert find(story.state).restored_after == pytest.approx(4)
    assert find(story.state).still_failing
    story.request(13, 15, first=13.5, pod="pod")
    assert find(story.state).still_failing
    story.request(14, 15, first=14.5, pod="pod")
    assert find(story.state).restored_after == pytest.approx(4)
    assert not find(story.state).still_failing


def test_open_requests_are_not_counted(story: Any) -> None:  # noqa: ANN401 - a Story
    """A request without an end is not in the total."""
    story.add(1, "sent", client="load", id=0)
    assert find(story.state).total == 0
    assert story.state.open == 1


@pytest.mark.parametrize(("samples", "text"), [(932, "0.33 %"), (300, "1.00 %"), (7, "42.86 %"), (0, "100 %")])
def test_bound(samples: int, text: str) -> None:
    """None of n lost bounds the rate at 3/n, rounded up, never down."""
    assert bound(samples) == text
