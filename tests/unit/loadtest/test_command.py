"""The command as a pod runs it: one file, any Python, an exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.loadtest.conftest import Load, Reply

LOADTEST = Path(__file__).resolve().parents[3] / "loadtest"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The load generator in one file."""
    target = tmp_path_factory.mktemp("packed") / "load.pyz"
    subprocess.run([sys.executable, str(LOADTEST / "pack.py"), str(target)], check=True, capture_output=True)
    return target


def command(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, without site-packages."""
    return subprocess.run(
        [sys.executable, "-I", str(program), *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_same_bytes(packed: Path, tmp_path: Path) -> None:
    """Packing twice gives the same bytes, well below what a ConfigMap holds."""
    again = tmp_path / "again.pyz"
    subprocess.run([sys.executable, str(LOADTEST / "pack.py"), str(again)], check=True, capture_output=True)
    assert again.read_bytes() == packed.read_bytes()
    assert again.stat().st_size < 900_000


def test_pack_refuses() -> None:
    """A target that cannot be written is named, without a traceback."""
    failed = command(LOADTEST / "pack.py", "/no/such/folder/load.pyz")
    assert failed.returncode == 2
    assert failed.stderr.startswith("pack: cannot write /no/such/folder/load.pyz")
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help(packed: Path, arguments: list[str]) -> None:
    """Help names every variable and shows examples, from the one file and from the checkout."""
    told = command(packed, *arguments)
    assert told.returncode == 0
    assert "TARGET" in told.stdout
    assert "LAG_LIMIT_SECONDS" in told.stdout
    assert "examples:" in told.stdout
    in_checkout = subprocess.run(
        [sys.executable, str(LOADTEST / "load.py"), *arguments], capture_output=True, text=True, check=True
    )
    assert in_checkout.stdout == told.stdout


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--fast"], {}, "load: unknown arguments '--fast'"),
        (["merge"], {}, "load: no files: name the summaries or pod logs to merge"),
        ([], {}, "load: TARGET is not set: write the service's base address"),
        ([], {"TARGET": "http://a", "RATE": "5"}, "load: RATE is '5', but ARRIVAL is 'closed'"),
        (
            [],
            {"TARGET": "http://a", "EVENTS_FILE": "/no/dir/e"},
            "load: EVENTS_FILE is '/no/dir/e': No such file",
        ),
        (
            [],
            {"TARGET": "http://a", "SUMMARY_FILE": "/no/dir/s"},
            "load: SUMMARY_FILE is '/no/dir/s': No such file",
        ),
        (["merge", "/no/such"], {}, "load: /no/such: No such file"),
        (["merge", "/dev/null"], {}, "load: /dev/null: holds no summary"),
        ([], {"TARGET": "http://a", "SEED": "9" * 5000}, "load: SEED is '999"),
    ],
)
def test_refusals(packed: Path, arguments: list[str], environment: dict[str, str], message: str) -> None:
    """What cannot be done is refused with exit code 2 and one line, before anything is sent."""
    refused = command(packed, *arguments, **environment)
    assert refused.returncode == 2
    assert refused.stderr.startswith(message)
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stdout == ""


def test_run_and_merge(packed: Path, tmp_path: Path, closed_port: int) -> None:
    """A run's log holds its summary, and merged logs add up."""
    target = f"http://127.0.0.1:{closed_port}"
    logs = []
    for number in range(2):
        run = command(packed, TARGET=target, DURATION_SECONDS="0.3", EVENTS_FILE="-", CONCURRENCY="2")
        assert run.returncode == 1
        logs.append(tmp_path / f"{number}.log")
        logs[-1].write_text(run.stdout)
    totals = [
        json.loads(log.read_text().split('"summary", ')[1].join(["{", ""]).splitlines()[0])["total"] for log in logs
    ]
    merged = command(packed, "merge", *map(str, logs))
    assert merged.returncode == 1
    assert merged.stdout.splitlines()[0] == f"load: 2 runs against {target} merged"
    expected = f"final total={sum(totals)} ok=0 failures={{'ConnectionRefusedError': {sum(totals)}}}"
    assert merged.stdout.splitlines()[-1] == expected


@pytest.mark.parametrize("name", ["EVENTS_FILE", "SUMMARY_FILE"])
def test_full_disk(packed: Path, closed_port: int, name: str) -> None:
    """A file that cannot be written any more ends the run with one line that names it."""
    target = f"http://127.0.0.1:{closed_port}"
    failed = command(packed, TARGET=target, DURATION_SECONDS="0.3", **{name: "/dev/full"})
    assert failed.returncode == 2
    assert failed.stderr.startswith(f"load: {name} is '/dev/full': No space left on device")
    assert len(failed.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "end",
    [
        (">&-", "load: standard output is closed: leave it open, or write > /dev/null\n"),
        ("> /dev/full", "load: standard output: No space left on device: make room, or write elsewhere\n"),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["--help"], ["merge", "SUMMARY"]], ids=["run", "help", "merge"])
def test_no_standard_output(
    packed: Path, closed_port: int, tmp_path: Path, end: tuple[str, str], arguments: list[str]
) -> None:
    """Without a standard output that takes what is said, every command ends with code 2 and one line on stderr."""
    redirection, message = end
    summary = tmp_path / "summary.json"
    environment = {"TARGET": f"http://127.0.0.1:{closed_port}", "DURATION_SECONDS": "0.3"}
    if "SUMMARY" in arguments:
        assert command(packed, SUMMARY_FILE=str(summary), **environment).returncode == 1
    words = [sys.executable, str(packed), *(str(summary) if word == "SUMMARY" else word for word in arguments)]
    failed = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *words],
        env={"PATH": os.environ["PATH"], **environment},
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    assert (failed.returncode, failed.stderr) == (2, message)


def test_nobody_reads(packed: Path, closed_port: int) -> None:
    """A reader that goes away does not change how the run ends."""
    process = subprocess.Popen(
        [sys.executable, str(packed)],
        env={"TARGET": f"http://127.0.0.1:{closed_port}", "PATH": os.environ["PATH"], "DURATION_SECONDS": "0.3"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(20) == 1


def test_too_many_streams(packed: Path) -> None:
    """More streams than this process may open files are refused before the run, with the limit."""
    limited = "import resource,runpy,sys; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)); "
    run = f"sys.argv=['load']; runpy.run_path({str(packed)!r}, run_name='__main__')"
    refused = subprocess.run(
        [sys.executable, "-c", limited + run],
        env={"TARGET": "http://127.0.0.1:9", "CONCURRENCY": "500"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr == (
        "load: CONCURRENCY is 500, but this process may open 200 files: write at most 136, or raise ulimit -n\n"
    )


def test_terminated(packed: Path, closed_port: int) -> None:
    """SIGTERM to the command ends it early, with its final line as the last."""
    process = subprocess.Popen(
        [sys.executable, str(packed)],
        env={"TARGET": f"http://127.0.0.1:{closed_port}", "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("load: 4 streams against")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode in (1, 2)
    assert rest.splitlines()[-1].startswith("final total=")


def test_merged_equals_one(load: Load, tmp_path: Path) -> None:
    """Summaries written as JSON and merged are exactly the sum: outcomes, pods, percentiles."""

    async def mixed(reply: Reply) -> None:
        await reply.whole(pod=f"pod-{reply.number % 2}") if reply.number % 3 else reply.close()

    runs = [load(mixed, requests=count, CONNECTION="keepalive") for count in (5, 8)]
    for number, run in enumerate(runs):
        (tmp_path / f"{number}.json").write_text(json.dumps(run.summary.to_json()) + "\n")
    from loadgen.merge import merge_files  # noqa: PLC0415 - on the path once conftest.py is loaded

    merged = merge_files(sorted(tmp_path.glob("?.json")))
    assert merged.runs == 2
    assert merged.tally.outcomes == runs[0].summary.tally.outcomes + runs[1].summary.tally.outcomes
    assert merged.tally.pods == runs[0].summary.tally.pods + runs[1].summary.tally.pods
    both = sorted(end["ttft"] for run in runs for end in run.ends() if end["outcome"] == "ok")
    assert merged.tally.latencies["ttft"].count == len(both)
    assert merged.tally.latencies["ttft"].greatest == pytest.approx(both[-1], abs=1e-6)
    assert merged.pods_per_connection == runs[0].summary.pods_per_connection + runs[1].summary.pods_per_connection


def test_one_late_run_of_several(tmp_path: Path) -> None:
    """Merged runs show latencies when every run was on time, and none when one of them was late."""
    from loadgen.merge import merge_files  # noqa: PLC0415 - on the path once conftest.py is loaded
    from loadgen.summary import Summary  # noqa: PLC0415 - as above
    from loadgen.tally import Tally  # noqa: PLC0415 - as above

    for name, late in (("a", 0), ("b", 0), ("c", 1)):
        tally = Tally({})
        tally.outcomes["ok"] = 1
        tally.latencies["ttft"].add(0.1)
        summary = Summary(target="http://a", arrival="closed", started=0, ended=1, tally=tally, late=late, lag_limit=1)
        (tmp_path / name).write_text(json.dumps(summary.to_json()) + "\n")

    def lines(*names: str) -> list[str]:
        merged = merge_files([tmp_path / name for name in names])
        assert merged.exit_code() == 0
        return [line for line in merged.lines() if line.startswith("latency ")]

    assert lines("a", "b") == ["latency ttft           p50=100.0ms p90=100.0ms p99=100.0ms max=100.0ms n=2"]
    assert lines("a", "c", "b") == ["latency not shown: client lag p99 in 1 of 3 runs exceeds 5ms"]
