"""The load generator and the mock engine agree, to the request, on what an engine did to its streams.

Nothing here waits for a time: faults are switched and runs are stopped when the engine's own counters say that so
many streams have ended and three others are running.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[3]
STREAMS = 3
DEADLINE_SECONDS = 30.0
SCENARIOS = {
    "stopped": (["--shutdown-timeout", "0"], {"ok": 3, "error_event": 3}),
    "drained": (["--shutdown-timeout", "30"], {"ok": 6}),
    "crashed": (["--shutdown-timeout", "30"], {"ok": 3, "truncated": 3}),
    "faulty": (
        ["--shutdown-timeout", "30"],
        {"ok": 6, "error_event": 3, "stall": 3, "truncated": 6, "truncated_reset": 3},
    ),
}
# Each plan is set while three streams of the one before are running, and strikes the next three.
PLANS = ("error=9", "cut=9", "crlf,comments,bytes", "fin=9", "rst=9", "stall=9")


@dataclass(frozen=True, slots=True)
class Ran:
    """How one scenario ended."""

    exit_code: int
    last_line: str
    summary: dict[str, Any]


def free_port() -> int:
    """Returns a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def started(arguments: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a Python program while the context lasts."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def fetch(port: int, path: str, put: str | None = None) -> str | None:
    """Returns what the engine answers with status 200 to a GET, or to a PUT of a text; None when it does not."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET" if put is None else "PUT", path, put)
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return text if response.status == HTTPStatus.OK else None


def counters(port: int) -> tuple[int, int]:
    """Returns how many requests the engine is done with, however they ended, and how many are running."""
    text = fetch(port, "/metrics") or ""
    finished = re.findall(r"^vllm:request_success_total{.*} (\S+)$", text, re.MULTILINE)
    running = re.findall(r"^vllm:num_requests_running{.*} (\S+)$", text, re.MULTILINE)
    return sum(int(float(value)) for value in finished), sum(int(float(value)) for value in running)


def wait_for_counters(port: int, wanted: tuple[int, int]) -> None:
    """Returns once the engine's counters are these."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (seen := counters(port)) != wanted:
        assert time.monotonic() < deadline, f"finished and running are {seen}, not {wanted}"
        time.sleep(0.01)


def play(name: str) -> Ran:
    """Runs engine and load, does what the scenario's name says, returns what the load generator says."""
    port = free_port()
    flags, _ = SCENARIOS[name]
    settings = {"TTFT_SECONDS": "0.1", "INTER_TOKEN_SECONDS": "0.06", "FAULT_CONTROL": "1"}
    source = {"PYTHONPATH": str(REPOSITORY / "engines/mock/src")}
    with started(["-m", "mock_engine", "--port", str(port), *flags], **settings, **source) as engine:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while fetch(port, "/health") is None:
            assert time.monotonic() < deadline, "the mock engine does not answer"
            time.sleep(0.05)
        target = {"TARGET": f"http://127.0.0.1:{port}", "CONCURRENCY": str(STREAMS), "START_SPREAD_SECONDS": "0"}
        limits = {"STALL_SECONDS": "2", "LAG_LIMIT_SECONDS": "10", "EVENTS_FILE": "-"}
        with started([str(REPOSITORY / "loadtest/load.py")], **target, **limits) as load:
            if name == "faulty":
                for number, plan in enumerate(PLANS):
                    wait_for_counters(port, (number * STREAMS, STREAMS))
                    fetch(port, "/mock/faults", plan)
                wait_for_counters(port, (len(PLANS) * STREAMS, STREAMS))
            else:
                wait_for_counters(port, (STREAMS, STREAMS))
            load.send_signal(signal.SIGTERM)  # nothing new is sent; what is open is waited for
            if name != "faulty":
                engine.send_signal(signal.SIGKILL if name == "crashed" else signal.SIGTERM)
            printed, _ = load.communicate(timeout=DEADLINE_SECONDS)
    lines = printed.splitlines()
    summary = next(record for record in map(json.loads, filter(is_json, lines)) if record["kind"] == "summary")
    return Ran(load.returncode, lines[-1], summary)


def is_json(line: str) -> bool:
    """Returns whether a printed line is an event."""
    return line.startswith("{")


@pytest.fixture(scope="module")
def runs() -> dict[str, Ran]:
    """All scenarios, played at the same time: each mostly waits."""
    with ThreadPoolExecutor(len(SCENARIOS)) as pool:
        return dict(zip(SCENARIOS, pool.map(play, SCENARIOS), strict=True))


@pytest.mark.parametrize("name", SCENARIOS)
def test_exact_counts(runs: dict[str, Ran], name: str) -> None:
    """As many of each outcome as streams were running when the engine did it to them, and no others."""
    _, expected = SCENARIOS[name]
    assert runs[name].summary["outcomes"] == expected
    assert runs[name].exit_code == (0 if set(expected) == {"ok"} else 1)
    failures = {outcome: count for outcome, count in sorted(expected.items()) if outcome != "ok"} or "none"
    total = sum(expected.values())
    assert runs[name].last_line == f"final total={total} ok={expected['ok']} failures={failures}"


def test_pods(runs: dict[str, Ran]) -> None:
    """The mock engine says on every answer which host it is; all of them name this one."""
    assert runs["drained"].summary["pods"] == {socket.gethostname(): 6}
