"""Waiting ends when the state has come, or says what was missing last."""

from __future__ import annotations

import pytest

from inferctl.errors import DeadlineExceeded
from inferctl.process.wait import wait_until


def test_wait_ends_when_nothing_is_missing() -> None:
    """It asks again and again, and goes on as soon as the answer is empty."""
    answers = ["first", "second", ""]
    wait_until(lambda: answers.pop(0), 60, every=0)
    assert answers == []


def test_wait_that_ends_in_vain_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the last answer, not the first."""
    clock = iter([0.0, 9.0, 11.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    answers = ["first", "second"]
    with pytest.raises(DeadlineExceeded, match="not after 10 s: second"):
        wait_until(lambda: answers.pop(0), 10, every=0)


def test_what_is_missing_for_long_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that lasts is told once, the next one again, and one that passes at once is not."""
    clock = iter(range(100))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    answers = ["pulls", "pulls", "pulls", "pulls", "passes", "fails", "fails", "fails", ""]
    told: list[str] = []
    wait_until(lambda: answers.pop(0), 60, every=0, tell=told.append)
    assert told == ["pulls", "fails"]
