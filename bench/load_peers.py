"""Compares the load generator with its peers in one run against one server that keeps its own record.

Server and client get one core each. So that a machine which does other things as well measures the tools and not
itself, both have real-time priority while requests are under way: round robin with slices of 1 ms, which shares the
client's core among the processes of one tool much as an idle machine would. Two tables, as Markdown: the time to
first token that each tool reports next to the server's own, and what each tool calls an answer that did not end well.

    python3 -m bench.load_peers --tokenizer DIR --vllm PATH --guidellm PATH --inference-perf PATH --aiperf PATH
    python3 -m bench.load_peers --table latency --streams 100 300 1000       (load.py alone, where no peer is found)
"""

import argparse
import http.client
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.peers.server import ENDINGS
from bench.peers.tools import ANSWER_SECONDS, Claim, Job, Tool, found, ours

HERE = Path(__file__).resolve().parent
LOAD = HERE.parent / "loadtest/load.py"
SERVER_CORE, CLIENT_CORE = "0", "1"
ANSWERS_PER_STREAM = 12
FAULTY_REQUESTS, FAULTY_STREAMS = 20, 5
WEIGHT = "-10"
LOOK_SECONDS = 0.1
LONGEST_HURRY_SECONDS = 60  # a tool that spins would otherwise keep the core from everybody else
SLICE = Path("/proc/sys/kernel/sched_rr_timeslice_ms")


class BenchError(Exception):
    """The comparison cannot be made; says why."""


def say(text: str) -> None:
    """Tells on standard error how far we are."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def start(core: str, command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a program on one core, as a session of its own, whose start may not take long either."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["taskset", "-c", core, *command],
            env=os.environ | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(WEIGHT)
    return process


def hurry(session: int, policy: int = os.SCHED_RR) -> None:
    """Gives every thread of a session real-time priority, or takes it away, where we may."""
    parameters = os.sched_param(0 if policy == os.SCHED_OTHER else 10)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(process.name)) == session:
                for thread in (process / "task").iterdir():
                    os.sched_setscheduler(int(thread.name), policy, parameters)


@contextmanager
def short_slices() -> Iterator[None]:
    """Sets the slices of round-robin scheduling to 1 ms, and hurries ourselves, where we may."""
    with suppress(OSError):
        SLICE.write_text("1")
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(20))
    try:
        yield
    finally:
        with suppress(OSError):
            SLICE.write_text("0")  # the kernel's default again


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


@contextmanager
def serving(port: int, ending: str, folder: Path) -> Iterator[None]:
    """Runs the server while the context lasts.

    Raises:
        BenchError: it does not answer.
    """
    command = [sys.executable, str(HERE / "peers/server.py"), "--port", str(port), "--ending", ending]
    process = start(SERVER_CORE, command, {}, folder / "server.log")
    try:
        deadline = time.monotonic() + 20
        while process.poll() is None:
            with suppress(OSError):
                record(port)
                hurry(process.pid)
                break
            if time.monotonic() > deadline:
                raise BenchError("the server does not answer: see " + str(folder / "server.log"))
            time.sleep(0.05)
        else:
            raise BenchError(f"the server ended at once: is port {port} free? see {folder / 'server.log'}")
        yield
    finally:
        stop(process)


def record(port: int, path: str = "/now") -> dict[str, Any]:
    """Returns what the server says about itself: briefly (`/now`), or all of it (`/record`)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        kept: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return kept


def measure(tool: Tool, job: Job, port: int, ending: str) -> tuple[Claim | None, dict[str, Any]]:
    """Runs one tool against a fresh server; returns its claim (None: it gave none) and the server's record."""
    job.folder.mkdir(parents=True)
    with serving(port, ending, job.folder):
        command, environment = tool.command(job)
        process = start(CLIENT_CORE, command, environment, job.folder / "tool.log")
        try:
            attend(process, port, job.limit)
        finally:
            stop(process)
        try:
            return tool.claim(job.folder), record(port, "/record")
        except (OSError, KeyError, IndexError, TypeError, ValueError) as error:
            say(f"{tool.name}: no report ({error!r}), see {job.folder / 'tool.log'}")
            return None, record(port, "/record")


def attend(process: subprocess.Popen[bytes], port: int, limit: float) -> None:
    """Waits for the tool's end, at most so many seconds, and hurries it while requests are under way."""
    deadline = time.monotonic() + limit
    hurried = 0.0
    while process.poll() is None and time.monotonic() < deadline:
        began = time.monotonic()
        if record(port)["at_once"] and hurried < LONGEST_HURRY_SECONDS:
            hurry(process.pid)
            time.sleep(10 * LOOK_SECONDS)
            hurried += time.monotonic() - began
        time.sleep(LOOK_SECONDS)
    hurry(process.pid, os.SCHED_OTHER)


def percentile(values: list[float], percent: float) -> float:
    """Returns the nearest-rank percentile."""
    ranked = sorted(values)
    return ranked[max(1, math.ceil(len(ranked) * percent / 100)) - 1]


def share_sent(asked: list[float], streams: int) -> float:
    """Returns requests in the middle of the run, as a share of what so many streams can send in that time.

    The middle is a whole number of answers long, so that tools whose streams move in step count fairly.
    """
    times = sorted(asked)
    middle = (times[0] + times[-1]) / 2
    half = ANSWERS_PER_STREAM / 4 * ANSWER_SECONDS
    sent = sum(middle - half <= at < middle + half for at in times)
    return sent / (streams * ANSWERS_PER_STREAM / 2)


def latency_table(tools: list[Tool], sizes: list[int], port: int, common: Job) -> Iterator[str]:
    """Yields the first table's lines."""
    yield "| tool | streams | p50 said | p99 said | p50 true | p99 true | p99 off by | most at once | sent |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for streams in sizes:
        for number, tool in enumerate(tools):
            say(f"latency: {tool.name}, {streams} streams")
            job = replace(
                common,
                streams=streams,
                requests=streams * ANSWERS_PER_STREAM,
                folder=common.folder / f"{streams}-{number}",
            )
            claim, kept = measure(tool, job, port, "ok")
            if claim is None or claim.ttft_p50 is None or claim.ttft_p99 is None:
                yield f"| {tool.name} | {streams} | no report | | | | | | |"
                continue
            true = [1000 * percentile(kept["ttft"], percent) for percent in (50, 99)]
            said = [1000 * claim.ttft_p50, 1000 * claim.ttft_p99]
            note = f" ({claim.words})" if claim.words else ""
            yield (
                f"| {tool.name}{note} | {streams} | {said[0]:.1f} ms | {said[1]:.1f} ms | {true[0]:.1f} ms "
                f"| {true[1]:.1f} ms | {said[1] - true[1]:+.1f} ms | {kept['most_at_once']} "
                f"| {100 * share_sent(kept['asked'], streams):.0f} % |"
            )


def ending_table(tools: list[Tool], endings: list[str], port: int, common: Job) -> Iterator[str]:
    """Yields the second table's lines."""
    yield "| what the server does | " + " | ".join(tool.name for tool in tools) + " |"
    yield "| --- |" + " --- |" * len(tools)
    for ending in endings:
        cells = []
        for number, tool in enumerate(tools):
            say(f"endings: {tool.name}, {ending}")
            job = replace(common, folder=common.folder / f"{ending}-{number}")
            claim, kept = measure(tool, job, port, ending)
            cells.append(verdict(claim, len(kept["asked"])))
        yield f"| {ENDINGS[ending]} | " + " | ".join(cells) + " |"


def verdict(claim: Claim | None, asked: int) -> str:
    """Returns in few words what a tool made of answers of which none was good."""
    if claim is None:
        return f"no report after {asked} requests"
    if claim.words:
        return claim.words
    return f"{claim.good} good, {claim.bad} failed"


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("vllm", "guidellm", "inference-perf", "aiperf"):
        parser.add_argument(f"--{name}", default="", help="its program, where it is not on PATH")
    parser.add_argument("--tokenizer", type=Path, default=Path("tokenizer"), help="folder with any tokenizer")
    parser.add_argument("--table", choices=("latency", "endings"), action="append", help="only this one")
    parser.add_argument("--streams", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--endings", choices=ENDINGS, nargs="+", default=[name for name in ENDINGS if name != "ok"])
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a tool is stopped")
    parser.add_argument("--port", type=int, default=18990)
    options = parser.parse_args()
    peers = found(
        {name: getattr(options, name.replace("-", "_")) for name in ("vllm", "guidellm", "inference-perf", "aiperf")}
    )
    mine = [ours(Path(sys.executable), LOAD, connection) for connection in ("keepalive", "new")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ctrl-C does: what was started is stopped
    folder = Path(tempfile.mkdtemp(prefix="load-peers-"))
    say(f"logs and reports go to {folder}")
    wanted = options.table or ["latency", "endings"]
    common = Job(
        url=f"http://127.0.0.1:{options.port}",
        streams=FAULTY_STREAMS,
        requests=FAULTY_REQUESTS,
        folder=folder,
        tokenizer=options.tokenizer,
        limit=options.limit,
    )
    plan = {
        "latency": lambda: latency_table([*mine, *peers], options.streams, options.port, common),
        "endings": lambda: ending_table([mine[0], *peers], options.endings, options.port, common),
    }
    try:
        with short_slices():
            for name in wanted:
                for line in plan[name]():
                    print(line, flush=True)
                print(flush=True)
    except BenchError as error:
        say(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
