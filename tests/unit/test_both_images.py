"""The Dockerfile and the build without a container engine make images that start the same engine in the same way."""

from __future__ import annotations

import json
import re
import shlex

from inferctl.images import engine
from inferctl.paths import ENGINE, LOCK, ROOT

_DOCKERFILE = (ENGINE / "Dockerfile").read_text().replace("\\\n", " ")
_LAST_STAGE = _DOCKERFILE.rpartition("\nFROM ")[2]


def _instructions(name: str, text: str = _LAST_STAGE) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", text, re.MULTILINE)


def test_containers_start_the_same_way() -> None:
    """Entry point, environment and user are equal."""
    (entrypoint,) = _instructions("ENTRYPOINT")
    (user,) = _instructions("USER")
    variables = dict(word.split("=", 1) for line in _instructions("ENV") for word in shlex.split(line))
    assert tuple(json.loads(entrypoint)) == engine._CONFIG.entrypoint
    assert user == engine._CONFIG.user
    assert variables == dict(engine._CONFIG.env)


def test_engine_is_in_the_same_place() -> None:
    """Both put the engine and its wheels, and nothing else, into one folder."""
    copies = [line.split() for line in _instructions("COPY")]
    assert [words[-1] for words in copies] == [f"/{engine._HOME}"]
    assert f"engines/mock/src/mock_engine /{engine._HOME}/mock_engine" in _DOCKERFILE


def test_wheels_come_from_the_same_lock_by_the_same_script() -> None:
    """Both ask engines/mock/wheels.py which part of requirements.lock the engine needs, and install it by hash."""
    assert f"python3 wheels.py {LOCK.relative_to(ROOT)}" in _DOCKERFILE
    install = re.search(r"pip install (.*?) --requirement", _DOCKERFILE)
    assert install
    assert {"--require-hashes", "--no-deps", "--only-binary", "--no-compile"} <= set(install[1].split())


def test_docker_is_sent_what_the_dockerfile_copies() -> None:
    """The list of what is not ignored has every source of every COPY, so that a build finds its files."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sources = [
        word for line in _instructions("COPY", _DOCKERFILE) if "--from" not in line for word in line.split()[:-1]
    ]
    assert sources
    assert [source for source in sources if f"!{source}" not in ignored] == []
