"""What an engine of one's own is told to do does what the page says."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any

import jsonschema
import yaml

from inferctl.paths import ROOT
from inferctl.values import reference

_PAGE = (ROOT / "docs" / "own-engine.md").read_text(encoding="utf-8")


def test_answers_name_their_pod() -> None:
    """The middleware adds the host's name to the head of an answer, keeps its headers and leaves its body alone."""
    (program,) = re.findall(r"^```python\n(.*?)^```", _PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102 - a program of our own
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
    body = {"type": "http.response.body", "body": b"data: {}", "more_body": True}
    sent: list[object] = []

    async def app(_: object, __: object, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        await send(head)
        await send(body)

    async def send(message: object) -> None:
        sent.append(message)

    asyncio.run(names["ServedBy"](app)({"type": "http"}, None, send))
    served_by = (b"x-served-by", socket.gethostname().encode())
    assert sent == [{**head, "headers": [(b"content-type", b"text/event-stream"), served_by]}, body]


def test_values_are_those_of_the_chart() -> None:
    """The chart knows every key of the page's values."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", _PAGE, re.DOTALL | re.MULTILINE)]
    values: dict[str, Any] = {}
    for block in blocks:
        values |= block
    values["image"]["digest"] = "sha256:" + "0" * 64
    assert "extraVolumes" in values
    jsonschema.Draft7Validator(reference.schema()).validate(values)
