"""Turns Helm's words for a refusal into one problem per key.

Helm reports a breach of the schema as a JSON pointer with a terse clause, and a breach of the chart's own
rules as lines that already name the key, the value and the fix. Both become a Problem; what the schema
leaves out is added from its descriptions.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass

from inferctl.values import reference

_SCHEMA_LINE = re.compile(r"^\s*- at '(?P<pointer>.*?)': (?P<clause>.*)$")
_TEMPLATE_LINE = re.compile(r"execution error at \([^)]*\): (?P<first>.*)$")
_UNKNOWN = re.compile(r"'([^']*)'")


@dataclass(frozen=True)
class Problem:
    """One thing to change in a values file.

    Attributes:
        key: its dotted path; empty if it is no single key.
        message: what is wrong, with the value.
        fix: what to write instead; empty if the message says so.
        line: where in the file, counted from 1; 0 if not known.
    """

    key: str
    message: str
    fix: str = ""
    line: int = 0


def explain(refusal: str) -> list[Problem]:
    """The problems that a refusal by Helm names, at least one."""
    lines = refusal.splitlines()
    problems = [problem for line in lines if (problem := _from_schema(line))]
    for number, line in enumerate(lines):
        if match := _TEMPLATE_LINE.search(line):
            said = [
                match["first"],
                *(rest for rest in lines[number + 1 :] if rest and not rest.startswith("Use --debug")),
            ]
            problems += [Problem(_leading_key(text), text) for text in said]
            break
    return problems or [Problem("", refusal.removeprefix("Error: "))]


def _from_schema(line: str) -> Problem | None:
    match = _SCHEMA_LINE.match(line)
    if not match or match["clause"] == "validation failed":
        return None
    path = _dotted(match["pointer"])
    clause = match["clause"]
    if clause.startswith("additional properties"):
        name = (_UNKNOWN.search(clause) or [clause, clause])[1]
        return Problem(
            f"{path}.{name}".lstrip("."), f"{clause} at {path or 'the top level'}", _suggestion(path, name)
        )
    return Problem(path, clause, _hint(path))


def _suggestion(path: str, name: str) -> str:
    if f"{path}.{name}" == "image.tag":
        return "name the image by image.digest: a tag can be moved"
    known = reference.names_in(path)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"is {close[0]} meant?"
    if known:
        return f"the keys here are {', '.join(known)}"
    return _hint(path)


def _hint(path: str) -> str:
    key = reference.nearest(path)
    if key is None:
        return ""
    examples = " or ".join(
        f"{key.path}: {json.dumps(example, ensure_ascii=False)}" for example in key.examples
    )
    return f"{key.description} For example {examples}"


def _dotted(pointer: str) -> str:
    """A JSON pointer (/engine/args/0) as people write keys (engine.args[0])."""
    path = ""
    for token in pointer.split("/")[1:]:
        part = token.replace("~1", "/").replace("~0", "~")
        path += f"[{part}]" if part.isdigit() else f".{part}"
    return path.lstrip(".")


def _leading_key(text: str) -> str:
    """The key that a message of the chart begins with; empty if it begins otherwise."""
    first = text.split(" ", 1)[0]
    return (
        first if reference.nearest(first) or first.split(".")[0] in reference.schema()["properties"] else ""
    )
