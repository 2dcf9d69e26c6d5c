"""Builds what is missing or whose pins have changed, with a line per program."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from inferctl.errors import EnvironmentProblem
from inferctl.images import seed
from inferctl.paths import BIN, TOOLS
from inferctl.process.command import run
from inferctl.process.lock import Lock
from inferctl.tools.go import compiler
from inferctl.tools.programs import Program, Purpose, needed_for, pinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inferctl.console import Progress

# Measured: sources and build caches of every program take 5 GiB.
BUILD_BYTES = 6 * 1024**3
_STAMPS = TOOLS / "stamps"
_BUILD_SECONDS = 3000
#: On two busy cores all programs take less than half of it.
_WAIT_SECONDS = 2.0 * 3600
_VERSION_PACKAGE = "k8s.io/component-base/version"


def ensure(purposes: set[Purpose], progress: Progress) -> None:
    """Build every program that these purposes need and that is not there as pinned.

    One inferctl builds at a time, the next one waits and then finds what was built.

    Args:
        purposes: what the programs are for.
        progress: told of each program.

    Raises:
        CommandFailed: a program does not build; the message has the compiler's.
        EnvironmentProblem: there is no Go compiler that is new enough, no space, or another process builds for hours.
    """
    ensure_programs(needed_for(purposes), progress, seeded=Purpose.CLUSTER in purposes)


def ensure_programs(programs: Sequence[Program], progress: Progress, *, seeded: bool = False) -> None:
    """Build those of the programs that are not there as pinned; else as `ensure`.

    Args:
        programs: which.
        progress: told of each program.
        seeded: make the images of a cluster itself, too.
    """
    # Who needs nothing built waits for nobody.
    if all(map(_is_current, programs)) and not (seeded and _seed_is_stale()):
        return
    lock = Lock(TOOLS / "lock", str(TOOLS), "let this user write there")
    with lock.held(_WAIT_SECONDS, waiting=lambda told: progress.say(f"waiting: {told}")):
        _build_all([program for program in programs if not _is_current(program)], progress)
        if seeded and _seed_is_stale():
            _make_seed(progress)


def _build_all(stale: Sequence[Program], progress: Progress) -> None:
    if stale:
        _require_space()
        # What a killed build left.
        for part in BIN.glob(".*.part"):
            part.unlink(missing_ok=True)
        progress.say(f"building {len(stale)} programs from source; later runs use them as they are")
    for number, program in enumerate(stale, 1):
        with progress.step(f"[{number}/{len(stale)}] {program.name}"):
            _build(program)


def _require_space() -> None:
    free = shutil.disk_usage(TOOLS.parent).free
    if free < BUILD_BYTES:
        raise EnvironmentProblem(
            f"{TOOLS.parent} has {free / 1024**3:.1f} GiB free, and building programs takes "
            f"{BUILD_BYTES / 1024**3:.0f}; free some, nothing was changed"
        )


def missing(purposes: set[Purpose]) -> list[str]:
    """The programs that are not there as pinned."""
    return [program.name for program in needed_for(purposes) if not _is_current(program)]


def _build(program: Program) -> None:
    BIN.mkdir(parents=True, exist_ok=True)
    flags = ["-trimpath", f"-ldflags=-s -w {_version_flags(program)}".rstrip()]
    if program.tags:
        flags.append(f"-tags={program.tags}")
    part = BIN / f".{program.name}.{os.getpid()}.part"
    try:
        run(
            [compiler(), "build", *flags, "-o", part, program.package],
            cwd=program.module,
            # The compiler here is the pinned one; another must not be fetched in its place.
            env={
                "CGO_ENABLED": "1" if program.cgo else "0",
                "GOTOOLCHAIN": "local",
                "GOFLAGS": "-mod=readonly -buildvcs=false",
            },
            deadline=_BUILD_SECONDS,
        )
        # Replaced at once: a running cluster keeps the file that it has open.
        part.rename(BIN / program.name)
    finally:
        part.unlink(missing_ok=True)
    _STAMPS.mkdir(parents=True, exist_ok=True)
    (_STAMPS / program.name).write_text(_fingerprint(program))


def _version_flags(program: Program) -> str:
    if not program.kubernetes:
        return ""
    version = pinned(program.module, "k8s.io/kubernetes")
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in values.items())


def _is_current(program: Program) -> bool:
    stamp = _STAMPS / program.name
    return (BIN / program.name).exists() and stamp.exists() and stamp.read_text() == _fingerprint(program)


def _fingerprint(program: Program) -> str:
    digest = hashlib.sha256(repr((program.package, program.cgo, program.tags, program.kubernetes)).encode())
    for path in _sources(program):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(program: Program) -> list[Path]:
    own = sorted((program.module / program.package).glob("*.go")) if program.package.startswith("./") else []
    return [program.module / "go.mod", program.module / "go.sum", *own]


def _seed_is_stale() -> bool:
    stamp = _STAMPS / "seed"
    return not stamp.exists() or stamp.read_text() != _seed_fingerprint()


def _seed_fingerprint() -> str:
    stamps = [_STAMPS / name for name in ("coredns", "pause")]
    return hashlib.sha256(b"".join(stamp.read_bytes() for stamp in stamps)).hexdigest()


def _make_seed(progress: Progress) -> None:
    with progress.step("images of the cluster itself"):
        seed.build()
    (_STAMPS / "seed").write_text(_seed_fingerprint())
