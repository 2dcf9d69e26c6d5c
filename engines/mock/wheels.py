#!/usr/bin/env python3
"""Prints the part of a hash-pinned requirements lock that the mock engine needs at run time.

The lock is the only place where versions are pinned. Its `# via` comments say which package asked for which,
so the closure of the engine's own dependencies can be worked out without a resolver and without a network.
Standard library only: the image build runs this before anything is installed.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent / "pyproject.toml"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^]]*\])?==")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class LockError(Exception):
    """The lock does not hold what the engine needs."""


def normalise(name: str) -> str:
    """Returns a package name in the form in which two spellings of it compare equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> dict[str, tuple[list[str], set[str]]]:
    """Returns, for each package of a lock, its requirement lines and the packages that asked for it."""
    packages: dict[str, tuple[list[str], set[str]]] = {}
    lines: list[str] = []
    parents: set[str] = set()
    for line in text.splitlines():
        pin = _PIN.match(line)
        comment = line.strip().removeprefix("#").strip() if line.strip().startswith("#") else None
        if pin:
            lines, parents = [line], set()
            packages[normalise(pin.group(1))] = (lines, parents)
        elif comment is not None and lines:
            parent = _NAME.match(comment.removeprefix("via").strip())
            if parent:
                parents.add(normalise(parent.group()))
        elif line.strip() and lines:
            lines.append(line)
    return packages


def needed(lock: str, roots: Iterable[str]) -> list[str]:
    """Returns the requirement lines of `roots` and of everything that they ask for, sorted by package.

    Raises:
        LockError: one of the roots is not pinned in the lock.
    """
    packages = read_lock(lock)
    wanted = {normalise(root) for root in roots}
    if missing := sorted(wanted - packages.keys()):
        raise LockError(f"not pinned in the lock: {', '.join(missing)}; add to the project's dev group and lock again")
    waiting = list(wanted)
    while waiting:
        parent = waiting.pop()
        children = {name for name, (_, parents) in packages.items() if parent in parents} - wanted
        wanted |= children
        waiting.extend(children)
    return [line for name in sorted(wanted) for line in packages[name][0]]


def roots() -> list[str]:
    """Returns the names of the packages that the engine itself depends on."""
    with PROJECT.open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    return [name.group() for name in map(_NAME.match, dependencies) if name]


def main() -> int:
    """Prints the subset; returns the exit code."""
    parser = argparse.ArgumentParser(
        description="Print the hash-pinned requirements that the mock engine needs at run time.",
        epilog="example: python3 engines/mock/wheels.py requirements.lock > engine.lock",
    )
    parser.add_argument("lock", type=Path, help="the project's requirements.lock")
    lock: Path = parser.parse_args().lock
    try:
        print("\n".join(needed(lock.read_text(encoding="utf-8"), roots())))
    except (OSError, LockError) as error:
        print(f"wheels.py: {lock}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
