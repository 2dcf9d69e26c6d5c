"""Starts an engine, mock or real, and talks to it as clients do: one suite for both.

EDGES_ENGINE says which: `mock` (the default) or `vllm`. EDGES_COMMAND is the command that starts it, without the
flags that a test adds; for the mock it is worked out. What only the one of them can do is in the engine's own tests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
KIND = os.environ.get("EDGES_ENGINE", "mock")
MODEL = "mock/mock-8b"
# Of the engine that the tests share, and of those that a test starts for itself.
MAX_MODEL_LEN = 1024
ROOMY_MODEL_LEN = 8192
MAX_NUM_SEQS = 4
START_SECONDS = {"mock": 60.0, "vllm": 600.0}[KIND]
# A real model on a busy machine needs longer; still far less than what a test would see if nothing happened.
PATIENCE = {"mock": 1.0, "vllm": 15.0}[KIND]
# A request that takes about a second and a half, on the mock as on a random model on a CPU.
LONG = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 900, "ignore_eos": True}
_TIMING = {
    "TTFT_SECONDS": "0.02",
    "INTER_TOKEN_SECONDS": "0.0015",
    "STARTUP_MODE": "closed",
    "STARTUP_DELAY_SECONDS": "0.4",
}
_POLL_SECONDS = 0.02
_LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


@dataclass
class Answer:
    """A response: its status, headers in lower case, body, and how it ended.

    `ended` is complete, cut (the connection closed in mid-response), silent (nothing came for a while) or refused.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: str = "complete"
    first_byte: float = 0.0

    def json(self) -> Any:  # noqa: ANN401 - JSON is anything
        """Returns the body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of each server-sent event."""
        return [part.removeprefix("data: ") for part in self.body.decode().split("\n\n") if part]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The events that are JSON objects."""
        return [json.loads(event) for event in self.events if event.startswith("{")]

    @property
    def finish_reasons(self) -> list[str]:
        """Every finish_reason that was sent."""
        choices = [choice for chunk in self.chunks for choice in chunk.get("choices", [])]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"] is not None]


class Client:
    """One keep-alive connection to an engine."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        """Prepares a connection that is opened by its first request."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Sends a request and reads what comes, however it ends. `body` is JSON unless it is bytes."""
        answer = Answer()
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, path, data, kind | dict(headers or {}))
            response = self._connection.getresponse()
            answer.status = response.status
            answer.headers = {name.lower(): value for name, value in response.getheaders()}
            answer.first_byte = time.monotonic()
            while part := response.read1(65536):
                answer.body += part
            response.read()  # read1 leaves a body of known length open
        except TimeoutError:
            answer.ended = "silent"
        except ConnectionRefusedError:
            answer.ended = "refused"
        except (http.client.HTTPException, OSError):
            answer.ended = "cut"
        return answer

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class Engine:
    """An engine's process, ready to serve.

    Attributes:
        ENDLESS: tokens of an answer that is still under way when a slow machine has looked at ten of them.
        FINISHED: tokens of an answer that takes some seconds and is waited for.
        seen_before_ready: what connections met while the engine started, without the last.
    """

    ENDLESS = 8000
    FINISHED = {"mock": 900, "vllm": 2500}[KIND]

    def __init__(self, flags: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
        """Starts the engine and waits until it serves.

        Raises:
            AssertionError: it ended, or did not serve in time; with the end of its log.
        """
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._log = log
        self._pool = ThreadPoolExecutor(64)
        self._clients: list[Client] = []
        self._stopped = False
        self.seen_before_ready: set[str] = set()
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*command(), "--port", str(self.port), *flags],
                env=variables() | dict(environment),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while (answer := self.get("/health")).status != 200:
            self.seen_before_ready.add(answer.ended if answer.ended != "complete" else str(answer.status))
            assert self.process.poll() is None, f"the engine ended: {self.log()}"
            assert time.monotonic() < deadline, f"the engine does not serve: {self.log()}"
            time.sleep(_POLL_SECONDS)

    def log(self) -> str:
        """Returns the end of what the engine printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def client(self, timeout: float = 30.0) -> Client:
        """Returns a connection of its own, closed with the engine if not before."""
        client = Client(self.port, timeout)
        self._clients.append(client)
        return client

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Answer:
        """Sends one request on a new connection."""
        client = self.client(timeout)
        try:
            return client.ask(method, path, body, headers)
        finally:
            client.close()

    def get(self, path: str) -> Answer:
        """Sends a GET on a new connection."""
        return self.ask("GET", path)

    def chat(self, timeout: float = 30.0, **fields: object) -> Answer:
        """Sends a chat; fields that are not given are those of a short one."""
        short = {"messages": [{"role": "user", "content": "hi there"}], "max_tokens": 4}
        return self.ask("POST", "/v1/chat/completions", short | fields, timeout=timeout)

    def begin(self, timeout: float = 30.0, **fields: object) -> Future[Answer]:
        """Sends a long chat in the background."""
        return self._pool.submit(self.chat, timeout, **(LONG | fields))

    def metrics(self, *names: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Returns every sample by name, then by its labels without model and engine.

        With names of vllm: metrics only those, for which much less has to be read: a state may not last.
        """
        samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        text = self.get("/metrics").body.decode()
        if names:
            wanted = tuple(f"vllm:{name}{{" for name in names)
            text = "".join(line for line in text.splitlines(keepends=True) if line.startswith(wanted))
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k not in {"model_name", "engine"}))
                samples.setdefault(sample.name, {})[labels] = sample.value
        return samples

    def value(self, name: str, **labels: str) -> float:
        """Returns one sample of a vllm: metric."""
        return self.metrics(name)[f"vllm:{name}"][tuple(sorted(labels.items()))]

    def load(self) -> tuple[float, float]:
        """Returns how many requests run and how many wait, at one moment."""
        names = ("num_requests_running", "num_requests_waiting")
        samples = self.metrics(*names)
        running, waiting = (samples[f"vllm:{name}"][()] for name in names)
        return running, waiting

    def wait_for(self, what: Callable[[], bool], seconds: float = 30.0) -> None:
        """Waits until something holds.

        Raises:
            AssertionError: it did not in time.
        """
        deadline = time.monotonic() + PATIENCE * seconds
        while not what():
            assert time.monotonic() < deadline, f"not within {PATIENCE * seconds:g} s; the engine's log: {self.log()}"
            time.sleep(_POLL_SECONDS)

    def wait_idle(self) -> None:
        """Waits until the engine has nothing to do, so that a test starts from there."""
        self.wait_for(lambda: self.load() == (0, 0))

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Sends a signal to the engine's main process, as the kubelet does."""
        self.process.send_signal(number)

    def stop(self) -> None:
        """Ends the engine and whatever it has started; once, since its process's number may then be another's."""
        if self._stopped:
            return
        self._stopped = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._pool.shutdown(wait=True)
        for client in self._clients:
            client.close()


def command() -> list[str]:
    """Returns the command that starts the engine, without flags."""
    given = os.environ.get("EDGES_COMMAND")
    return shlex.split(given) if given else [sys.executable, "-m", "mock_engine", "--served-model-name", MODEL]


def variables() -> dict[str, str]:
    """Returns the environment that the engine starts in."""
    return os.environ | _TIMING | {"PYTHONPATH": str(ROOT / "engines/mock/src")} if KIND == "mock" else dict(os.environ)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker of tests that need a program known."""
    marker = "program(variable): needs the program that an environment variable names, and is left out without it"
    config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests of programs that nothing names; a program that is named must be there.

    Raises:
        pytest.UsageError: a variable names what cannot be run.
    """
    left_out: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("program")
        if marker is None:
            continue
        (variable,) = marker.args
        program = os.environ.get(variable)
        if not program:
            left_out.append(item)
        elif shutil.which(program) is None:
            raise pytest.UsageError(f"{variable}={program!r}: no such program; give its path, or unset the variable")
    if left_out:
        config.stash[_LEFT_OUT] = left_out
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which tests were left out, and what would have them run."""
    for item in config.stash.get(_LEFT_OUT, []):
        marker = item.get_closest_marker("program")
        assert marker is not None
        terminalreporter.write_line(f"NOT RUN {item.nodeid}: {marker.args[0]} names no program")


@pytest.fixture(scope="session")
def kind() -> str:
    """Which engine is tested: mock or vllm."""
    return KIND


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Engine]]:
    """Starts engines with flags and environment variables; all of them are stopped at the end."""
    engines: list[Engine] = []

    def starter(*flags: str, **environment: str) -> Engine:
        length = () if "--max-model-len" in flags else ("--max-model-len", str(ROOMY_MODEL_LEN))
        log = tmp_path_factory.mktemp("engine") / "log"
        engine = Engine(("--max-num-seqs", str(MAX_NUM_SEQS), *length, *flags), environment, log)
        engines.append(engine)
        return engine

    yield starter
    for engine in engines:
        engine.stop()


@pytest.fixture(scope="session")
def shared(start: Callable[..., Engine]) -> Engine:
    """The engine of the tests that leave it running; its metrics from before the first request are in `fresh`."""
    return start("--max-model-len", str(MAX_MODEL_LEN))


@pytest.fixture(scope="session")
def fresh(shared: Engine) -> str:
    """What /metrics said before the first request."""
    return shared.get("/metrics").body.decode()


@pytest.fixture(autouse=True)
def _untouched(fresh: str) -> None:
    """Makes sure that `fresh` was read before any test sent a request."""
    assert fresh


@pytest.fixture
def engine(shared: Engine) -> Engine:
    """The shared engine with nothing to do."""
    shared.wait_idle()
    return shared


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the engine's command with flags that it is expected to refuse."""

    def runner(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command(), *flags], env=variables(), capture_output=True, text=True, timeout=START_SECONDS, check=False
        )

    return runner
