"""New connections and kept ones: what is reused, what is retired, and whose fault a dead one is."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.unit.loadtest.conftest import Load, Reply


async def whole(reply: Reply) -> None:
    """Answers as it should."""
    await reply.whole()


def test_new_connection_for_each_request(load: Load) -> None:
    """By default every request opens its own connection."""
    run = load(whole, requests=4)
    assert run.engine.connections == 4
    assert (run.summary.opened, run.summary.reuses) == (4, 0)
    assert not any(end["reused"] for end in run.ends())


def test_kept_connection(load: Load) -> None:
    """Keep-alive reads on after [DONE], so that one connection carries all requests of a stream."""
    run = load(whole, requests=4, CONNECTION="keepalive")
    assert run.engine.connections == 1
    assert (run.summary.opened, run.summary.reuses) == (1, 3)
    assert [end["reused"] for end in run.ends()] == [False, True, True, True]


def test_body_end_comes_late(load: Load) -> None:
    """A body whose end follows [DONE] in a later packet does not cost the connection."""

    async def late(reply: Reply) -> None:
        await reply.head()
        await reply.token("stop")
        await reply.event(b"[DONE]")
        await asyncio.sleep(0.05)
        await reply.raw(b"0\r\n\r\n")

    run = load(late, requests=3, CONNECTION="keepalive")
    assert (run.counts, run.engine.connections) == ({"ok": 3}, 1)


def test_body_end_never_comes(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that does not end after [DONE] is still ok; its connection is not used again."""

    async def endless(reply: Reply) -> None:
        await reply.head()
        await reply.token("stop")
        await reply.event(b"[DONE]")
        await reply.silence()

    monkeypatch.setattr("loadgen.exchange._AFTER_DONE_SECONDS", 0.6)
    run = load(endless, requests=2, CONNECTION="keepalive")
    assert (run.counts, run.engine.connections) == ({"ok": 2}, 2)
    assert all(end["e2e"] < 0.6 for end in run.ends())


def test_maximum_age(load: Load) -> None:
    """A connection older than the maximum age is not used again, and nothing is lost by that."""

    async def slow(reply: Reply) -> None:
        await asyncio.sleep(0.06)
        await reply.whole()

    aged = load(slow, requests=6, CONNECTION="keepalive", CONNECTION_MAX_AGE_SECONDS="0.1")
    assert aged.counts == {"ok": 6}
    assert 3 <= aged.engine.connections <= 6
    assert load(slow, requests=6, CONNECTION="keepalive", CONNECTION_MAX_AGE_SECONDS="60").engine.connections == 1


def test_closed_while_idle(load: Load) -> None:
    """A kept connection that the engine closed before the next request was due costs nothing."""

    async def closes_after(reply: Reply) -> None:
        await reply.whole()
        reply.close()

    run = load(closes_after, requests=5, CONNECTION="keepalive", ARRIVAL="constant", RATE="50")
    assert run.counts == {"ok": run.summary.tally.total}
    assert run.summary.tally.total >= 5


def test_stale(load: Load) -> None:
    """A reused connection that ends before the first byte is stale_keepalive, closed or reset alike."""

    async def third_is_lost(reply: Reply) -> None:
        if reply.nth == 2:
            (reply.reset if reply.connection % 2 else reply.close)()
        else:
            await reply.whole()

    run = load(third_is_lost, requests=6, CONNECTION="keepalive")
    assert run.counts == {"ok": 4, "stale_keepalive": 2}
    assert [end["outcome"] for end in run.ends()].index("stale_keepalive") == 2
    assert run.summary.exit_code() == 1


def test_cut_on_reused_connection(load: Load) -> None:
    """Once a byte of the response was seen, a reset is a cut answer on a reused connection too."""

    async def second_is_cut(reply: Reply) -> None:
        if reply.nth:
            await reply.head()
            await reply.token()
            await reply.heard()
            reply.reset()
        else:
            await reply.whole()

    run = load(second_is_cut, requests=2, CONNECTION="keepalive")
    assert run.counts == {"ok": 1, "truncated_reset": 1}
    assert run.ends()[1]["reused"]


def test_drain_refusal_on_kept_connection(load: Load) -> None:
    """The 500 of an engine in drain is counted once: the connection was reused, and is not used again."""

    async def drains(reply: Reply) -> None:
        if reply.nth == 0:
            await reply.whole()
        else:
            await reply.raw(b"HTTP/1.1 500 X\r\ncontent-length: 2\r\n\r\n{}")

    run = load(drains, requests=3, CONNECTION="keepalive")
    assert run.counts == {"ok": 2, "http_500": 1}
    assert [end["reused"] for end in run.ends()] == [False, True, False]


def test_pods_per_connection(load: Load) -> None:
    """How many pods each connection saw is reported: one behind a Service, several behind a proxy."""

    async def two_pods(reply: Reply) -> None:
        await reply.whole(pod=f"pod-{reply.number % 2}")

    kept = load(two_pods, requests=4, CONNECTION="keepalive")
    assert kept.summary.pods_per_connection == {2: 1}
    assert kept.summary.tally.pods == {"pod-0": 2, "pod-1": 2}
    assert load(two_pods, requests=4).summary.pods_per_connection == {1: 4}


def test_request(load: Load) -> None:
    """The request is a streaming chat completion that asks for usage."""
    bodies: list[dict[str, object]] = []

    async def keeps(reply: Reply) -> None:
        bodies.append(reply.body)
        await reply.whole()

    load(keeps, requests=1, MODEL_NAME="org/model-1", MAX_TOKENS="7", PROMPT='say "é"')
    assert bodies == [
        {
            "model": "org/model-1",
            "messages": [{"role": "user", "content": 'say "é"'}],
            "max_tokens": 7,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]
    assert json.dumps(bodies)
