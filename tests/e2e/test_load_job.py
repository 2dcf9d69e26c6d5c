"""Load from many pods: the Job of the documentation runs in a cluster, and its parts merge into one result."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import yaml

from inferctl.paths import LOADTEST
from inferctl.process.command import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Each of the Job's pods sends for so long.
_LOAD_SECONDS = "15"


def test_job_of_three_pods_merges_exactly(
    inferctl: Callable[..., str], cluster: str, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    """Three pods send at once, every request ends ok, and the merged summary has the sum of their counts."""
    inferctl("deploy", "--startup-delay", "1", "--name", cluster)
    packed = tmp_path / "load.pyz"
    run([sys.executable, LOADTEST / "pack.py", packed])
    deployed = json.loads(kubectl("get", "deployment", "mock-inference-service", "-o", "json"))
    job = _job(image=deployed["spec"]["template"]["spec"]["containers"][0]["image"])
    try:
        kubectl("create", "configmap", "load", f"--from-file={packed}")
        kubectl("apply", "--filename=-", stdin=json.dumps(job))
        kubectl("wait", "--for=condition=complete", "--timeout=120s", "job/load")
        logs = []
        for pod in kubectl("get", "pods", "--selector=job-name=load", "-o", "name").split():
            log = tmp_path / f"{pod.rpartition('/')[2]}.log"
            log.write_text(kubectl("logs", pod))
            logs.append(log)
    finally:
        kubectl("delete", "job/load", "configmap/load", "--ignore-not-found")
    parts = [_summary(log.read_text()) for log in logs]
    merged = subprocess.run([sys.executable, packed, "merge", *logs], capture_output=True, text=True, check=True)
    whole = _final(merged.stdout)
    assert len(parts) == job["spec"]["completions"]
    assert all(part["total"] > 0 for part in parts)
    assert whole == {"total": str(sum(part["total"] for part in parts)), "ok": whole["total"], "failures": "none"}


def _job(image: str) -> dict[str, Any]:
    """The Job, in an image that the cluster has, for a shorter time."""
    job: dict[str, Any] = yaml.safe_load((LOADTEST / "job.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["image"] = image
    (seconds,) = (variable for variable in container["env"] if variable["name"] == "DURATION_SECONDS")
    seconds["value"] = _LOAD_SECONDS
    # Only counts are compared here: a machine that makes the clients late must not fail the Job.
    container["env"].append({"name": "LAG_LIMIT_SECONDS", "value": "1"})
    return job


def _summary(log: str) -> dict[str, Any]:
    """The summary that a load pod prints as its one line of JSON."""
    (found,) = (json.loads(line) for line in log.splitlines() if line.startswith("{"))
    summary: dict[str, Any] = found
    return summary


def _final(said: str) -> dict[str, str]:
    """The fields of the line that ends a result."""
    (line,) = (line for line in said.splitlines() if line.startswith("final "))
    return dict(word.split("=", 1) for word in line.removeprefix("final ").split())
