"""Writes values as YAML in which every text is unmistakable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_PRINTABLE = range(0x20, 0x7F)


def as_yaml(value: object) -> str:
    """A value in YAML's flow style; strings in double quotes with everything but printable ASCII escaped.

    Python's JSON would not do: it writes characters beyond U+FFFF as two surrogates, which YAML refuses.
    """
    if isinstance(value, str):
        return '"' + "".join(_escaped(character) for character in value) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"? {as_yaml(key)}\n: {as_yaml(below)}" for key, below in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    return json.dumps(value)


def _escaped(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return f"\\{character}"
    if code in _PRINTABLE:
        return character
    return f"\\U{code:08x}"
