"""The command: runs load as the environment says, or merges the results of several runs."""

import asyncio
import contextlib
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from loadgen import journal, settings
from loadgen.merge import MergeError, merge_files
from loadgen.run import Run
from loadgen.summary import Summary

_SPARE_FILES = 64
_BAD_CONFIGURATION = 2

_USAGE = """\
Sends streaming chat completions to an inference service and counts how every one of them ended.

usage: python3 load.py                      run; everything is said by the environment
       python3 load.py merge FILE...        add up several runs: summaries, events files or pod logs
       python3 load.py --help

examples:
  TARGET=http://mock-inference-service:8000 DURATION_SECONDS=150 python3 load.py
  TARGET=http://127.0.0.1:8000 CONNECTION=keepalive CONNECTION_MAX_AGE_SECONDS=8 python3 load.py
  TARGET=http://127.0.0.1:8000 ARRIVAL=poisson RATE=20 SEED=7 SUMMARY_FILE=run.json python3 load.py

exit code: 0 every request was ok; 1 anything else was counted;
           2 bad configuration, client overloaded, or nothing measured.
SIGTERM or Ctrl-C ends the run early, with its final line; a second one does not wait for open streams.

environment:
"""


def main(arguments: list[str]) -> int:
    """Runs the command line; returns its exit code."""
    try:
        if arguments in (["-h"], ["--help"]):
            journal.Journal("").say(_help())
            return 0
        if arguments[:1] == ["merge"]:
            return _merge([Path(name) for name in arguments[1:]])
        if arguments:
            print(
                f"load: unknown arguments {' '.join(arguments)!r}: see --help for what there is",
                file=sys.stderr,
            )
            return _BAD_CONFIGURATION
        return _load(os.environ)
    except (settings.SettingsError, journal.JournalError, MergeError) as error:
        for line in str(error).splitlines():
            print(f"load: {line}", file=sys.stderr)
        return _BAD_CONFIGURATION


def _help() -> str:
    lines = []
    for variable in settings.VARIABLES:
        default = "" if variable.default in (None, "") else f" [{variable.default}]"
        lines.append(f"  {variable.name:<28}{variable.meaning}{default}")
    return _USAGE + "\n".join(lines)


def _merge(paths: list[Path]) -> int:
    summary = merge_files(paths)
    log = journal.Journal("")
    log.say(f"load: {summary.runs} runs against {summary.target} merged")
    for line in summary.lines():
        log.say(line)
    return summary.exit_code()


def _load(environment: Mapping[str, str]) -> int:
    chosen = settings.read(environment)
    _allow_connections(chosen.concurrency)
    if chosen.summary_file not in ("", "-"):
        journal.open_for_writing("SUMMARY_FILE", chosen.summary_file).close()
    _collect_little()
    with journal.Journal(chosen.events_file) as log, asyncio.Runner() as runner:
        summary = runner.run(_execute(chosen, log))
        _report(summary, chosen, log)
    return summary.exit_code()


def _collect_little() -> None:
    """Keeps the garbage collector to young objects: with 1,000 streams, a full collection stops us for 30 ms."""
    gc.freeze()
    gc.set_threshold(5_000, 1_000, 1_000)


async def _execute(chosen: settings.Settings, log: journal.Journal) -> Summary:
    return await Run(chosen, log).execute()


def _report(summary: Summary, chosen: settings.Settings, log: journal.Journal) -> None:
    record = summary.to_json()
    log.event("summary", time.monotonic(), **record)
    if chosen.summary_file == "-":
        log.say(json.dumps(record))
    elif chosen.summary_file:
        journal.write_summary(chosen.summary_file, record)
    for line in summary.lines():
        log.say(line)
    log.flush()


def _allow_connections(streams: int) -> None:
    """Raises the limit of open files to what so many connections need.

    Raises:
        SettingsError: the system does not allow so many.
    """
    needed = streams + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise settings.SettingsError(
            f"CONCURRENCY is {streams}, but this process may open {hard} files: "
            f"write at most {hard - _SPARE_FILES}, or raise ulimit -n"
        )
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
