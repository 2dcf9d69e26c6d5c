"""Times what a person waits for with an embedded cluster, and weighs it while idle; prints a table for the docs.

    .venv/bin/python bench/cluster.py [--runs 5]

Uses a cluster of its own name. "Cold" means a machine that has built nothing; measure it with an empty Go cache by
``--cold``, which builds every program anew into a scratch folder and takes minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from inferctl.cluster import embedded
from inferctl.cluster.embedded_backend import EmbeddedBackend
from inferctl.cluster.node.cgroup import unified
from inferctl.console import Progress
from inferctl.images import engine
from inferctl.paths import CACHE, CHART, KUBE_MODULE, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.cluster.spec import ClusterSpec
    from inferctl.cluster.target import Target

NAME = "bench"
INFERCTL = [sys.executable, "-m", "inferctl"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each is measured (default: 5)")
    parser.add_argument("--cold", action="store_true", help="also build every program with empty Go caches")
    arguments = parser.parse_args()
    os.environ["KUBECONFIG"] = str(Path(os.environ.get("TMPDIR", "/tmp")) / "bench-kubeconfig")  # noqa: S108 - not the user's
    rows: dict[str, list[float]] = {}
    if arguments.cold:
        rows["programs, from empty Go caches"] = [_build_cold()]
    memory: list[float] = []
    for _ in range(arguments.runs):
        _measure(rows, memory)
    print("| what | runs | median | slowest |\n| --- | --- | --- | --- |")
    for name, seconds in rows.items():
        print(f"| {name} | {len(seconds)} | {statistics.median(seconds):.1f} s | {max(seconds):.1f} s |")
    print(
        f"| memory of the idle cluster | {len(memory)} | {statistics.median(memory):.0f} MiB | {max(memory):.0f} MiB |"
    )


def _measure(rows: dict[str, list[float]], memory: list[float]) -> None:
    def timed(name: str, action: Callable[[], object]) -> object:
        began = time.monotonic()
        result = action()
        rows.setdefault(name, []).append(time.monotonic() - began)
        return result

    timed("cluster-up, programs built", lambda: _inferctl("cluster", "up"))
    backend = EmbeddedBackend(NAME)
    target = backend.target()
    memory.append(_memory(backend.spec))
    shutil.rmtree(CACHE, ignore_errors=True)
    digest = timed("mock image, build and push, first time", lambda: engine.publish(target.push, Progress()))
    timed("mock image, build and push, again", lambda: engine.publish(target.push, Progress()))
    timed("helm upgrade to Ready, 2 replicas, no start delay", lambda: _deploy(target, str(digest)))
    timed("cluster-down", lambda: _inferctl("cluster", "down"))
    if embedded.status(backend.spec)[0].running:
        sys.exit("the cluster is still there")


def _inferctl(*arguments: str) -> None:
    subprocess.run([*INFERCTL, *arguments, "--name", NAME], check=True)


def _deploy(target: Target, digest: str) -> None:
    subprocess.run(
        [
            tool("helm"), *target.helm_options, "upgrade", "--install", "mock", CHART, "--wait", "--timeout=3m",
            f"--set=image.repository={target.pull}/{engine.NAME}", f"--set=image.digest={digest}",
            "--set=replicaCount=2",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def _memory(spec: ClusterSpec) -> float:
    """What the cluster's control groups hold, in MiB, less what the kernel would give back (file cache)."""
    root = Path("/sys/fs/cgroup" if unified() else "/sys/fs/cgroup/memory") / spec.cgroup
    used = int((root / ("memory.current" if unified() else "memory.usage_in_bytes")).read_text())
    stat = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
    cache = int(stat.get("total_inactive_file", stat.get("inactive_file", "0")))
    return (used - cache) / 1024**2


def _build_cold() -> float:
    with TemporaryDirectory() as scratch:
        environment = {**os.environ, "GOCACHE": f"{scratch}/cache"}
        checkout = Path(scratch, "checkout")
        shutil.copytree(
            KUBE_MODULE.parent, checkout, ignore=shutil.ignore_patterns(".tools", ".git", "runs"), symlinks=True
        )
        began = time.monotonic()
        command = [sys.executable, "-m", "inferctl", "tools", "cluster", "release"]
        subprocess.run(command, check=True, env={**environment, "PYTHONPATH": str(checkout / "src")}, cwd=checkout)
        return time.monotonic() - began


if __name__ == "__main__":
    main()
