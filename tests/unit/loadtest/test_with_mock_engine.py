"""The load generator and the mock engine agree, to the request, on what an engine did to its streams.

Nothing here waits for a time: an engine is stopped when its own counters say that three streams have begun, and
these streams are far longer than any test.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[3]
LOAD = REPOSITORY / "loadtest/load.py"
STREAMS = 3
DEADLINE_SECONDS = 60.0
SLOW = {"MAX_TOKENS": "2000"}  # two minutes, if nobody stops it
# By name: the engine's flags, its environment, and what becomes of three streams that run when it is stopped.
STOPS: dict[str, tuple[list[str], dict[str, str], dict[str, int]]] = {
    "stopped": (["--shutdown-timeout", "0"], {}, {"error_event": 3}),
    "aborted": (["--shutdown-timeout", "0"], {"ABORT_STYLE": "abort"}, {"aborted": 3}),
    "out of time": (["--shutdown-timeout", "1"], {}, {"no_finish_reason": 3}),
    "crashed": (["--shutdown-timeout", "30"], {}, {"truncated": 3}),
}
# By fault, the outcome of every request; and how many the engine says it finished: it counts only whole answers.
FAULTS = {
    "": ("ok", STREAMS),
    "error=5": ("error_event", 0),
    "cut=5": ("truncated", 0),
    "fin=5": ("truncated", 0),
    "rst=5": ("truncated_reset", 0),
    "stall=5": ("stall", 0),
    "status=503": ("http_503", 0),
    "crlf,comments,bytes": ("ok", STREAMS),
}


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


def counters(port: int, *names: str) -> list[int]:
    """Returns what the engine has counted under each of these names, over all labels."""
    text = fetch(port, "/metrics") or ""
    found = [re.findall(rf"^vllm:{name}{{.*}} (\S+)$", text, re.MULTILINE) for name in names]
    return [sum(int(float(value)) for value in values) for values in found]


def finished(port: int) -> int:
    """Returns how many requests the engine has answered whole; it counts no others."""
    return counters(port, "request_success_total")[0]


def wait_until_begun(port: int, streams: int) -> None:
    """Waits until the engine says that so many streams are running and that each of them has its first token.

    Raises:
        AssertionError: it did not in time.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (seen := counters(port, "num_requests_running", "time_to_first_token_seconds_count")) != [streams, streams]:
        assert time.monotonic() < deadline, f"of {streams} streams, {seen} are running and have begun"
        time.sleep(0.01)


@contextmanager
def engine(*flags: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Runs a mock engine that is ready; yields it and its port."""
    port = free_port()
    settings = {"FAULT_CONTROL": "1", "PYTHONPATH": str(REPOSITORY / "engines/mock/src")} | environment
    with started(["-m", "mock_engine", "--port", str(port), *flags], **settings) as process:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while fetch(port, "/health") is None:
            assert time.monotonic() < deadline, "the mock engine does not answer"
            time.sleep(0.05)
        yield process, port


def relay(source: socket.socket, target: socket.socket) -> None:
    """Passes on what comes from one connection to another, and its end."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def front(backends: list[int]) -> Iterator[int]:
    """Listens as a Service does, one pod for each connection: the next of these ports; yields its own."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=len(backends)))

        def accept() -> None:
            for backend in backends:
                client = stack.enter_context(listener.accept()[0])
                engine = stack.enter_context(socket.create_connection(("127.0.0.1", backend)))
                threading.Thread(target=relay, args=(client, engine), daemon=True).start()
                threading.Thread(target=relay, args=(engine, client), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        accepting.join(DEADLINE_SECONDS)
        assert not accepting.is_alive(), "not all connections came"


@contextmanager
def loading(port: int, log: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Runs a load of three requests at once, in the background."""
    settings = {
        "TARGET": f"http://127.0.0.1:{port}",
        "CONCURRENCY": str(STREAMS),
        "REQUESTS": str(STREAMS),
        "START_SPREAD_SECONDS": "0",
        "LAG_LIMIT_SECONDS": "10",
        "STALL_SECONDS": "20",
        "SUMMARY_FILE": str(log),
    }
    with started([str(LOAD)], **(settings | environment)) as process:
        yield process


def outcomes(log: Path) -> dict[str, int]:
    """Returns what a run counted."""
    counted: dict[str, int] = json.loads(log.read_text())["outcomes"]
    return counted


@pytest.mark.parametrize("name", STOPS)
def test_stopped_under_load(tmp_path: Path, name: str) -> None:
    """A stopped engine fails as many streams as it said were running, in its own way, and no others."""
    flags, environment, expected = STOPS[name]
    log = tmp_path / "summary.json"
    with engine(*flags, **environment) as (process, port), loading(port, log, **SLOW) as load:
        wait_until_begun(port, STREAMS)
        process.send_signal(signal.SIGKILL if name == "crashed" else signal.SIGTERM)
        printed, _ = load.communicate(timeout=DEADLINE_SECONDS)
    assert outcomes(log) == expected
    assert load.returncode == 1
    assert printed.splitlines()[-1] == f"final total=3 ok=0 failures={expected}"


def test_drained_under_load(tmp_path: Path) -> None:
    """An engine told to drain finishes what it said was running; that is what the failing cases are compared with."""
    log = tmp_path / "summary.json"
    with engine("--shutdown-timeout", "60") as (process, port), loading(port, log, MAX_TOKENS="200") as load:
        wait_until_begun(port, STREAMS)
        process.send_signal(signal.SIGTERM)
        load.communicate(timeout=DEADLINE_SECONDS)
    assert outcomes(log) == {"ok": 3}
    assert load.returncode == 0
    assert json.loads(log.read_text())["pods"] == {socket.gethostname(): 3}


def test_mixed_outcomes(tmp_path: Path) -> None:
    """One run over four engines that each treat their requests otherwise: four ok, three aborted, two cut, one refused.

    The one that aborts is stopped when its own counters say that all of its streams have begun.
    """
    log = tmp_path / "summary.json"
    with (
        engine() as (_, whole),
        engine(FAULTS="cut=5") as (_, cutting),
        engine(FAULTS="status=503") as (_, refusing),
        engine(ABORT_STYLE="abort", INTER_TOKEN_SECONDS="60") as (stopped, aborting),  # noqa: S106 - a time
        front([whole, aborting, cutting, whole, refusing, aborting, whole, cutting, aborting, whole]) as port,
        loading(port, log, CONCURRENCY="10", REQUESTS="10") as load,
    ):
        wait_until_begun(aborting, 3)
        stopped.send_signal(signal.SIGTERM)
        printed, _ = load.communicate(timeout=DEADLINE_SECONDS)
        assert [finished(port) for port in (whole, cutting, refusing)] == [4, 0, 0]
    failures = {"aborted": 3, "http_503": 1, "truncated": 2}
    assert outcomes(log) == {"ok": 4} | failures
    assert load.returncode == 1
    assert printed.splitlines()[-1] == f"final total=10 ok=4 failures={failures}"


def test_every_fault(tmp_path: Path) -> None:
    """Three requests for each fault: load and engine count the same, and merged every outcome is there as often."""
    with engine("--shutdown-timeout", "0") as (_, port):
        for number, (plan, (outcome, whole)) in enumerate(FAULTS.items()):
            assert fetch(port, "/mock/faults", plan) is not None
            before = finished(port)
            silence = {"STALL_SECONDS": "1"} if outcome == "stall" else {}
            with loading(port, tmp_path / f"{number}.json", **silence) as load:
                load.communicate(timeout=DEADLINE_SECONDS)
            done = finished(port) - before
            assert outcomes(tmp_path / f"{number}.json") == {outcome: STREAMS}
            assert done == whole, plan
    merged = subprocess.run(
        [sys.executable, str(LOAD), "merge", *map(str, sorted(tmp_path.glob("*.json")))],
        capture_output=True,
        text=True,
        check=False,
    )
    expected = Counter(outcome for outcome, _ in FAULTS.values() for _ in range(STREAMS))
    failures = {outcome: count for outcome, count in sorted(expected.items()) if outcome != "ok"}
    assert merged.stdout.splitlines()[-1] == (f"final total={expected.total()} ok={expected['ok']} failures={failures}")
