"""Where things are: the checkout, its tools, and the state of clusters."""

from __future__ import annotations

import os
from pathlib import Path

#: The checkout. inferctl works on the chart, engine and load generator beside it.
ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
BIN = TOOLS / "bin"
CACHE = TOOLS / "cache"
CHART = ROOT / "charts" / "inference-service"
ENGINE = ROOT / "engines" / "mock"
LOADTEST = ROOT / "loadtest"
KUBE_MODULE = ROOT / "kube"
LOCK = ROOT / "requirements.lock"
RUNS = ROOT / "runs"


def state_root() -> Path:
    """The folder that holds one folder per embedded cluster; short, because socket paths end at 107 bytes."""
    return Path(os.environ.get("INFERCTL_STATE") or "/var/lib/inferctl")


def lock_folder() -> Path:
    """The folder of the releases' locks: beside the clusters where that can be written, else the user's own."""
    if os.geteuid() == 0 or os.environ.get("INFERCTL_STATE"):
        return state_root() / ".locks" / "releases"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inferctl" / "releases"


def tool(name: str) -> Path:
    """The path of a program that this project builds."""
    return BIN / name
