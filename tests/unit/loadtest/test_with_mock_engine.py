"""The load generator and the mock engine agree, to the request, on what a stopped engine did to its streams.

Nothing here waits for a time: each run is stopped when the engine's own counters say that three streams have ended
and three others are running.
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
    "error": (["--shutdown-timeout", "0"], {"ok": 3, "error_event": 3}),
    "done": (["--shutdown-timeout", "0"], {"ok": 3, "no_finish_reason": 3}),
    "abort": (["--shutdown-timeout", "0"], {"ok": 3, "aborted": 3}),
    "drain": (["--shutdown-timeout", "30"], {"ok": 6}),
    "crash": (["--shutdown-timeout", "30"], {"ok": 3, "truncated": 3}),
}


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


def fetch(port: int, path: str) -> str | None:
    """Returns what the engine answers with status 200, None when it does not."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return text if response.status == HTTPStatus.OK else None


def counters(port: int) -> tuple[int, int]:
    """Returns how many requests the engine has finished well, and how many are running."""
    text = fetch(port, "/metrics") or ""
    finished = re.findall(r'^vllm:request_success_total{.*finished_reason="length".*} (\S+)$', text, re.MULTILINE)
    running = re.findall(r"^vllm:num_requests_running{.*} (\S+)$", text, re.MULTILINE)
    return sum(int(float(value)) for value in finished), sum(int(float(value)) for value in running)


def wait_for_counters(port: int, wanted: tuple[int, int]) -> None:
    """Returns once the engine's counters are these."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (seen := counters(port)) != wanted:
        assert time.monotonic() < deadline, f"finished and running are {seen}, not {wanted}"
        time.sleep(0.01)


def play(name: str) -> Ran:
    """Runs engine and load, stops both at a known count, returns what the load generator says."""
    port = free_port()
    flags, _ = SCENARIOS[name]
    timing = {"TTFT_SECONDS": "0.1", "INTER_TOKEN_SECONDS": "0.06", "STARTUP_MODE": "closed"}
    style = {"ABORT_STYLE": name} if flags[1] == "0" else {}
    source = {"PYTHONPATH": str(REPOSITORY / "engines/mock/src")}
    with started(["-m", "mock_engine", "--port", str(port), *flags], **timing, **style, **source) as engine:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while fetch(port, "/health") is None:
            assert time.monotonic() < deadline, "the mock engine does not answer"
            time.sleep(0.05)
        target = {"TARGET": f"http://127.0.0.1:{port}", "CONCURRENCY": str(STREAMS), "START_SPREAD_SECONDS": "0"}
        with started([str(REPOSITORY / "loadtest/load.py")], **target, EVENTS_FILE="-", LAG_LIMIT_SECONDS="10") as load:
            wait_for_counters(port, (STREAMS, STREAMS))
            load.send_signal(signal.SIGTERM)  # nothing new is sent; what is open is waited for
            engine.send_signal(signal.SIGKILL if name == "crash" else signal.SIGTERM)
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
    """As many ok as the engine finished, as many failures as it had running, and no others."""
    _, expected = SCENARIOS[name]
    assert runs[name].summary["outcomes"] == expected
    assert runs[name].exit_code == (0 if set(expected) == {"ok"} else 1)
    failures = {outcome: count for outcome, count in expected.items() if outcome != "ok"} or "none"
    total = sum(expected.values())
    assert runs[name].last_line == f"final total={total} ok={expected['ok']} failures={failures}"


def test_pods(runs: dict[str, Ran]) -> None:
    """The mock engine says on every answer which host it is; all of them name this one."""
    assert runs["drain"].summary["pods"] == {socket.gethostname(): 6}
