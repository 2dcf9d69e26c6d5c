"""Looks at the machine without changing anything; each area says what it is for and what it lacks."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from inferctl.cluster import preflight
from inferctl.cluster.preflight import Problem
from inferctl.cluster.spec import DEFAULT_CLUSTER, ClusterSpec
from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.paths import ROOT
from inferctl.process.command import run
from inferctl.tools.build import BUILD_BYTES, missing
from inferctl.tools.go import compiler
from inferctl.tools.programs import Purpose

_PYTHON = (3, 11)


@dataclass(frozen=True)
class Area:
    """One thing that the machine may be used for.

    Attributes:
        name: what it is.
        serves: the commands that need it.
        problems: what is lacking for it.
        to_build: programs that the first use builds; no lack, but it takes minutes.
    """

    name: str
    serves: str
    problems: tuple[Problem, ...]
    to_build: tuple[str, ...] = ()


def examine() -> tuple[Area, ...]:
    """Look at everything."""
    return (
        _area("build and check", "./just check", (*_python(), *_git(), *_go()), {Purpose.CHECK}),
        _area("embedded cluster", "./just cluster-up", tuple(_embedded()), {Purpose.CLUSTER, Purpose.RELEASE}),
        _area("kind cluster", "./just cluster-up --backend kind", tuple(_docker()), {Purpose.KIND, Purpose.RELEASE}),
    )


def enough(areas: tuple[Area, ...]) -> bool:
    """Whether everything can be used here: the checks, and at least one kind of cluster."""
    checks, *clusters = areas
    return not checks.problems and any(not cluster.problems for cluster in clusters)


def _area(name: str, serves: str, problems: tuple[Problem, ...], purposes: set[Purpose]) -> Area:
    to_build = tuple(missing(purposes))
    free = shutil.disk_usage(ROOT).free
    if to_build and free < BUILD_BYTES:
        what = f"{ROOT} has {free / 1024**3:.1f} GiB free, and building programs takes {BUILD_BYTES / 1024**3:.0f}"
        problems += (Problem(what, "free some"),)
    return Area(name, serves, problems, to_build)


def _python() -> list[Problem]:
    if sys.version_info >= _PYTHON:
        return []
    wanted = ".".join(map(str, _PYTHON))
    return [Problem(f"Python is {sys.version.split()[0]}, and {wanted} is needed", "apt-get install -y python3")]


def _git() -> list[Problem]:
    if not shutil.which("git"):
        return [Problem("git is not installed", "install with: apt-get install -y git")]
    if not Path(ROOT, ".git").exists():
        return [Problem(f"{ROOT} is no git checkout", "get it with git clone; the checks ask git for the files")]
    return []


def _go() -> list[Problem]:
    try:
        compiler()
    except (EnvironmentProblem, CommandFailed) as error:
        return [Problem(*_halves(str(error)))]
    return []


def _embedded() -> list[Problem]:
    return preflight.check(ClusterSpec.load(DEFAULT_CLUSTER) or ClusterSpec(DEFAULT_CLUSTER))


def _docker() -> list[Problem]:
    if not shutil.which("docker"):
        return [Problem("docker is not installed", "install a Docker engine; only --backend kind needs it")]
    try:
        run(["docker", "info"], deadline=20)
    except CommandFailed:
        return [Problem("no Docker engine answers", "start it, so that 'docker info' answers")]
    return []


def _halves(message: str) -> tuple[str, str]:
    what, _, fix = message.partition("; ")
    return what, fix or "see above"
