"""Turns Helm's words for a refusal into one problem per key.

Helm reports a breach of the schema as a JSON pointer with a terse clause, and a breach of the chart's own
rules as lines that already name the key, the value and the fix. Both become a Problem; the value and
what belongs there instead are added to the terse ones.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from inferctl.values import reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inferctl.values.source import Source

_SCHEMA_LINE = re.compile(r"^\s*- at '(?P<pointer>.*?)': (?P<clause>.*)$")
_TEMPLATE_LINE = re.compile(r"execution error at \([^)]*\): (?P<first>.*)$")
# Helm's quoting leaves a backslash alone that ends a name.
_NAME = re.compile(r"'((?:[^'\\]|\\.)*)(\\?)'(?=, '| not allowed)")
_OR_NULL = re.compile(r"null or |, <nil>")  # true, since null is the default, but nothing to advise
_FORBIDDEN = {"false schema", "'not' failed"}
_KEY = re.compile(r"^[A-Za-z]+(\.[A-Za-z0-9_./-]+)?")
_SHOWN = 60  # characters of a value that are shown


@dataclass(frozen=True)
class Problem:
    """One thing to change in a values file.

    Attributes:
        key: its dotted path; empty if it is no single key.
        message: what is wrong, with the value.
        fix: what to write instead; empty if the message says so.
        line: where in the file, counted from 1: the key, or what it would stand in; None if nothing of it is there.
    """

    key: str
    message: str
    fix: str = ""
    line: int | None = None


def explain(refusal: str, written: Source) -> list[Problem]:
    """The problems that a refusal by Helm names, at least one.

    Args:
        refusal: what Helm printed.
        written: the values file, to show what was written and where.
    """
    lines = refusal.splitlines()
    problems = [problem for line in lines for problem in _from_schema(line, written)]
    for number, line in enumerate(lines):
        if match := _TEMPLATE_LINE.search(line):
            rest = [text for text in lines[number + 1 :] if text and not text.startswith("Use --debug")]
            problems += [_of_a_rule(text, written) for text in (match["first"], *rest)]
            break
    return problems or [Problem("", refusal.removeprefix("Error: "))]


def _from_schema(line: str, written: Source) -> Iterator[Problem]:
    match = _SCHEMA_LINE.match(line)
    if not match or match["clause"] == "validation failed":
        return
    path = [token.replace("~1", "/").replace("~0", "~") for token in match["pointer"].split("/")[1:]]
    place = reference.dotted(path) or "a values file"
    if match["clause"].startswith("additional properties"):
        for quoted, backslash in _NAME.findall(match["clause"]):
            name = _unquoted(quoted) + backslash
            here = [*path, name]
            what = f"is no key of {place}"
            yield Problem(reference.dotted(here), what, _suggestion(path, name), written.line(here))
    else:
        clause = "not allowed here" if match["clause"] in _FORBIDDEN else _OR_NULL.sub("", match["clause"])
        shown = _shown(written, path)
        yield Problem(place, f"is {shown}: {clause}", reference.hint(path), written.line(path))


def _unquoted(text: str) -> str:
    """A name that Helm quotes as Go does, whose other escapes are YAML's too."""
    inner = text.replace("\\'", "'").replace('"', '\\"')
    return str(yaml.safe_load(f'"{inner}"'))


def _of_a_rule(text: str, written: Source) -> Problem:
    key = _leading_key(text)
    return Problem(key, text, line=written.line(key.split(".")) if key else None)


def _suggestion(path: Sequence[str], name: str) -> str:
    if [*path, name] == ["image", "tag"]:
        return "name the image by image.digest: a tag can be moved, a digest cannot"
    known = list((reference.at(path) or {}).get("properties", {}))
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"is {close[0]} meant?"
    return f"the keys here are {', '.join(known)}" if known else reference.hint(path)


def _shown(written: Source, path: Sequence[str]) -> str:
    """What the file has at a path, as it is written where that is a word, cut to a readable length."""
    here = written.values
    for name in path:
        if isinstance(here, dict):
            here = here.get(name)
        elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            here = None
    text = written.word(path) or json.dumps(here, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _leading_key(text: str) -> str:
    """The key that a message of the chart begins with; empty if it begins otherwise."""
    match = _KEY.match(text)
    return match[0] if match and match[0].split(".")[0] in reference.schema()["properties"] else ""
