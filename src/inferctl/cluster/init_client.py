"""Talking to a node's init, from the host."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from inferctl.errors import ComponentFailed

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 10.0


def ask(folder: Path, do: str, component: str = "") -> Any:  # noqa: ANN401 - JSON
    """Send one request to the init of the node whose files are in ``folder``.

    Raises:
        ComponentFailed: the init does not answer, or refuses.
    """
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_SECONDS)
            client.connect(str(folder / "init.sock"))
            with client.makefile("rwb") as stream:
                stream.write(json.dumps({"do": do, "component": component}).encode() + b"\n")
                stream.flush()
                answer = json.loads(stream.readline() or b"null")
    except (OSError, ValueError) as error:
        raise ComponentFailed(f"node {folder.name}: its init does not answer ({error}); is the node down?") from error
    if isinstance(answer, dict) and "error" in answer:
        raise ComponentFailed(f"node {folder.name}: {do} {component}: {answer['error']}")
    return answer


def status(folder: Path) -> dict[str, dict[str, Any]]:
    """The state of each component as the init last wrote it; empty before it has begun, or if that cannot be read."""
    try:
        content: dict[str, dict[str, Any]] = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    known = isinstance(content, dict) and all(
        isinstance(unit, dict) and {"state": str, "restarts": int, "detail": str}.items() <= _types(unit).items()
        for unit in content.values()
    )
    return content if known else {}


def _types(unit: dict[str, Any]) -> dict[str, type]:
    return {key: type(value) for key, value in unit.items()}
