"""The chart's schema as the place to look up what a key is for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from inferctl.paths import CHART

Schema = dict[str, Any]


@dataclass(frozen=True)
class Key:
    """What the schema says about one key."""

    path: str
    description: str
    default: object
    examples: tuple[object, ...]


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


def keys() -> dict[str, Key]:
    """Every key that a values file may set and that has a default, by its dotted path."""
    found: dict[str, Key] = {}
    for name, node in schema()["properties"].items():
        if "default" in node:
            found[name] = _key(name, node)
        for inner, below in node.get("properties", {}).items():
            found[f"{name}.{inner}"] = _key(f"{name}.{inner}", below)
    return found


def nearest(path: str) -> Key | None:
    """The key that a path is, or lies in."""
    known = keys()
    parts = path.replace("[", ".").split(".")
    for length in range(len(parts), 0, -1):
        if key := known.get(".".join(parts[:length])):
            return key
    return None


def names_in(path: str) -> list[str]:
    """The keys that the schema has directly under a dotted path; none where it names no keys."""
    node = schema()
    for part in filter(None, path.split(".")):
        node = resolve(node.get("properties", {}).get(part, {}))
    return list(node.get("properties", {}))


def _key(path: str, node: Schema) -> Key:
    full = resolve(node)
    return Key(path, full["description"], full["default"], tuple(full.get("examples", ())))
