"""Sends one request at a time, start to end: takes a connection, awaits the exchange, counts how it ended."""

import asyncio
import json
import time
from collections.abc import Callable
from itertools import count
from urllib.parse import urlsplit

from loadgen.connection import Pool
from loadgen.exchange import Exchange
from loadgen.journal import Journal
from loadgen.outcome import OK, Ending, Evidence, classify
from loadgen.settings import Settings
from loadgen.tally import Result, Tally


class Sender:
    """Sends requests for a run.

    Attributes:
        tally: what has been counted so far.
        pool: the connections.
    """

    def __init__(self, settings: Settings, journal: Journal) -> None:
        """Opens no connection yet."""
        self.tally = Tally.for_settings(settings)
        self.pool = Pool(
            settings.host,
            settings.port,
            keep=settings.connection == "keepalive",
            max_age_seconds=settings.connection_max_age_seconds,
            connect_timeout_seconds=settings.connect_timeout_seconds,
        )
        self._journal = journal
        self._request = _request_bytes(settings)
        self._stall_seconds = settings.stall_seconds
        self._numbers = count()

    async def send(self, intended_at: float) -> str:
        """Sends one request and counts it; returns its outcome."""
        number = next(self._numbers)
        began_at = time.monotonic()
        connection = self.pool.take_idle()
        exchange: Exchange | None = None
        try:
            connection = connection or await self.pool.open()
            exchange = Exchange(connection, stall_seconds=self._stall_seconds, first_token=self._first_token(number))
            exchange.start(self._request)
            self._journal.event("sent", exchange.sent_at, number)
            evidence = await exchange.over
        except asyncio.CancelledError:
            evidence = exchange.give_up() if exchange is not None else Evidence(Ending.RUN_OVER)
        except OSError as error:  # TimeoutError and failed name resolution are OSErrors too
            evidence = Evidence(Ending.NOT_CONNECTED, error=error)
        result = _result(number, intended_at, began_at, exchange, evidence)
        if connection is not None:
            if result.pod:
                connection.pods.add(result.pod)
            self.pool.give_back(connection, reusable=exchange is not None and exchange.reusable)
        self._count(result, exchange.last_bytes if exchange is not None else b"")
        return result.outcome

    def _first_token(self, number: int) -> Callable[[Exchange, float], None]:
        def write(exchange: Exchange, now: float) -> None:
            self._journal.event("first_token", now, number, pod=exchange.pod)

        return write

    def _count(self, result: Result, last_bytes: bytes) -> None:
        self.tally.add(result)
        # An answer that came whole needs no evidence.
        evidence = {} if result.outcome == OK else {"last_bytes": last_bytes.decode("utf-8", "backslashreplace")}
        self._journal.event(
            "end",
            result.ended_at,
            result.number,
            outcome=result.outcome,
            pod=result.pod,
            http=result.http,
            chunks=result.chunks,
            tokens=result.tokens,
            ttft=_rounded(result.ttft),
            e2e=_rounded(result.e2e),
            tpot=_rounded(result.tpot),
            delay=_rounded(result.began_at - result.intended_at),
            reused=result.reused,
            detail=result.detail,
            **evidence,
        )


def _request_bytes(settings: Settings) -> bytes:
    body = json.dumps(
        {
            "model": settings.model_name,
            "messages": [{"role": "user", "content": settings.prompt}],
            "max_tokens": settings.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    parts = urlsplit(settings.url)
    lines = [
        f"POST {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Content-Type: application/json",
        "Accept: text/event-stream",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if settings.connection == 'keepalive' else 'close'}",
    ]
    if settings.api_key:
        lines.append(f"Authorization: Bearer {settings.api_key}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _result(number: int, intended_at: float, began_at: float, exchange: Exchange | None, evidence: Evidence) -> Result:
    outcome, detail = classify(evidence)
    if exchange is not None and exchange.error_body and not detail:
        detail = exchange.error_body.decode("utf-8", "replace")
    return Result(
        number=number,
        intended_at=intended_at,
        began_at=began_at,
        sent_at=exchange.sent_at if exchange is not None else None,
        arrivals=evidence.answer.arrivals,
        done_at=evidence.answer.done_at,
        ended_at=time.monotonic(),
        outcome=outcome,
        detail=detail,
        pod=exchange.pod if exchange is not None else "",
        http=evidence.status,
        chunks=evidence.answer.content_chunks,
        tokens=evidence.answer.completion_tokens,
        reused=evidence.reused,
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)
