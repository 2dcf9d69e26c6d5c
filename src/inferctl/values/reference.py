"""The chart's schema as the place to look up what a key is for."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from inferctl.paths import CHART

if TYPE_CHECKING:
    from collections.abc import Sequence

Schema = dict[str, Any]


@cache
def schema() -> Schema:
    """The content of values.schema.json."""
    content: Schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return content


def resolve(node: Schema) -> Schema:
    """A schema with its reference to a definition followed; keys beside the reference win."""
    if "$ref" not in node:
        return node
    definition = schema()["definitions"][node["$ref"].removeprefix("#/definitions/")]
    return {**resolve(definition), **{key: value for key, value in node.items() if key != "$ref"}}


def at(path: Sequence[str]) -> Schema | None:
    """The schema of the value at a path of keys and list positions; None where it has no such place."""
    node: Schema | None = schema()
    for name in path:
        node = _below(resolve(node), name) if node is not None else None
    return resolve(node) if node is not None else None


def hint(path: Sequence[str]) -> str:
    """What goes at a path, with examples: the words of the nearest place that the schema describes."""
    for length in range(len(path), 0, -1):
        node = at(path[:length])
        if node and "examples" in node:
            place = dotted(path[:length])
            shown = " or ".join(f"{place}: {json.dumps(value, ensure_ascii=False)}" for value in node["examples"])
            return f"{node['description']} For example {shown}"
    return ""


def dotted(path: Sequence[str]) -> str:
    """A path as people write it: engine.args[0]."""
    return "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in path).removeprefix(".")


def _below(node: Schema, name: str) -> Schema | None:
    if name in node.get("properties", {}):
        found: Schema = node["properties"][name]
        return found
    for pattern, value in node.get("patternProperties", {}).items():
        if value and re.search(pattern, name):
            return dict(value)
    return dict(node["items"]) if "items" in node and name.isdigit() else None
