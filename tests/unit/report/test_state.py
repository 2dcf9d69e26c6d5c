"""The state follows a timeline record by record."""

from __future__ import annotations

from typing import Any


def test_begun_streams_by_pod(story: Any) -> None:  # noqa: ANN401 - a Story
    """A stream is begun from its first token to its end, on the pod that answers."""
    story.add(1, "sent", client="load", id=0)
    assert not story.state.begun["pod"]
    story.add(2, "first_token", client="load", id=0, pod="pod")
    assert story.state.begun["pod"] == {("load", 0)}
    story.add(
        3, "end", client="load", id=0, pod="pod", outcome="ok", http=200, chunks=20, ttft=1.0, e2e=2.0, reused=False,
        detail="",
    )  # fmt: skip
    assert not story.state.begun["pod"]
    assert story.state.open == 0
    assert story.state.outcomes["load"] == {"ok": 1}


def test_pod_states(story: Any) -> None:  # noqa: ANN401 - a Story
    """A pod's states are kept with their times, each once, and its end is known."""
    for t, state in ((0, "Pending"), (1, "Pending"), (2, "Ready"), (3, "Terminating"), (5, "Gone")):
        story.pod(t, "pod", state)
    pod = story.state.pods["pod"]
    assert pod.states == [(0, "Pending"), (2, "Ready"), (3, "Terminating"), (5, "Gone")]
    assert (pod.deleted, pod.gone, pod.serving) == (3, 5, False)


def test_first_sigterm_counts(story: Any) -> None:  # noqa: ANN401 - a Story
    """A second signal does not move the mark of the first."""
    story.pod(0, "pod", "Ready")
    story.add(1, "sigterm", pod="pod", open=3)
    story.add(2, "sigterm", pod="pod", open=0)
    assert story.state.pods["pod"].sigterm == 1


def test_exit_is_never_early_and_at_most_a_second_late(story: Any) -> None:  # noqa: ANN401 - a Story
    """The kubelet rounds down and may be heard of late: the earlier of one second after its word and our own counts."""
    story.pod(0, "pod", "Ready")
    story.add(5.2, "exit", pod="pod", finished=5, code=137, reason="Error")
    story.add(30, "exit", pod="pod", finished=9, code=0, reason="Completed")
    story.add(31, "exit", pod="other", finished=9, code=0, reason="Completed")
    assert story.state.pods["pod"].exits == [5.2, 10]
    assert "other" not in story.state.pods


def test_exit_is_not_before_sigterm(story: Any) -> None:  # noqa: ANN401 - a Story
    """A node whose clock is slow cannot have an engine exit before it was told to."""
    story.pod(0, "pod", "Ready")
    story.add(7, "sigterm", pod="pod", open=0)
    story.add(8, "exit", pod="pod", finished=4, code=0, reason="Completed")
    assert story.state.pods["pod"].exits == [7]


def test_same_number_of_two_loads(story: Any) -> None:  # noqa: ANN401 - a Story
    """Request numbers are unique within a load only."""
    story.add(1, "sent", client="one", id=0)
    story.add(1, "sent", client="two", id=0)
    assert len(story.state.requests) == 2


def test_pod_that_vanished_was_told_to_stop(story: Any) -> None:  # noqa: ANN401 - a Story
    """While nobody could watch, a pod may go through its whole end: when it was missed counts."""
    story.pod(0, "pod", "Ready")
    story.pod(7, "pod", "Gone")
    assert (story.state.pods["pod"].deleted, story.state.pods["pod"].gone) == (7, 7)
