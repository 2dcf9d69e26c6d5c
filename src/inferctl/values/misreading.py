"""Words of a values file that arrive as others.

YAML reads an unquoted 0123 as 83, on as true and 1.10 as 1.1, keys included. The chart is given what YAML made of
them; what it renders shows what became of each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from inferctl.values import reference
from inferctl.values.refusals import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inferctl.values.rendering import Release
    from inferctl.values.source import Source, Text

_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_NULL = "tag:yaml.org,2002:null"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_MODES = {"mode", "defaultMode"}  # of files, which everybody writes in base 8


def unreadable(written: Source) -> Iterator[Problem]:
    """What YAML has and JSON has not: Helm refuses the file for it, and says neither what nor where it is."""
    for path, text in written.texts():
        if text.is_key and text.tag == _NULL:
            yield _problem(path, text, "is a name that YAML makes null, which Helm cannot read")
        elif text.tag == _FLOAT and text.written.lower().endswith((".inf", ".nan")):
            yield _problem(path, text, f"is {text.written}, a number that Helm cannot read")


def find(written: Source, rendered: Release) -> Iterator[Problem]:
    """What stands in a file that the chart accepts, and is rendered as something else."""
    arrived, names = _arrived(rendered), set(_names(rendered.objects))
    # Of a key that stands twice the last counts, as in Helm.
    for (path, is_key), text in {(path, text.is_key): text for path, text in written.texts()}.items():
        if path[0] == "global":
            continue
        if is_key:
            if path[-1] not in names and not _is_documented(path):
                yield _problem(path, text, "is a name that YAML makes another one")
        elif path in arrived:
            if text.written != arrived[path]:
                yield _problem(path, text, f"is written {text.written}, but YAML makes it {arrived[path]}")
        elif _is_octal(text) and path[-1] not in _MODES:
            what = f"is written {text.written}, but YAML makes it {int(text.written, 8)}"
            yield Problem(reference.dotted(path), what, "leave out the 0 before the number", text.line)


def _problem(path: tuple[str, ...], text: Text, what: str) -> Problem:
    return Problem(reference.dotted(path), what, f'put it in quotes: "{text.written}"', text.line)


def _arrived(rendered: Release) -> dict[tuple[str, ...], str]:
    """What became of each text, by its path in the values."""
    template = rendered.deployment["spec"]["template"]
    places = {
        ("engine", "env"): rendered.environment,
        ("engine", "args"): {str(position): argument for position, argument in enumerate(rendered.argv)},
        ("podAnnotations",): template["metadata"].get("annotations", {}),
        ("podLabels",): template["metadata"]["labels"],
        ("nodeSelector",): rendered.pod.get("nodeSelector", {}),
    }
    found = {(*path, name): text for path, texts in places.items() for name, text in texts.items()}
    return {("model", "name"): rendered.environment["MODEL_NAME"], **found}


def _names(rendered: object) -> Iterator[str]:
    """All keys of objects, and the names in them, which those of the environment are."""
    if isinstance(rendered, dict):
        yield from rendered
        yield str(rendered.get("name"))
        rendered = list(rendered.values())
    for below in rendered if isinstance(rendered, list | tuple) else ():
        yield from _names(below)


def _is_documented(path: tuple[str, ...]) -> bool:
    """Whether a key is one of the chart's own, and not a name that the file is free to choose."""
    return path[-1] in (reference.at(path[:-1]) or {}).get("properties", {})


def _is_octal(text: Text) -> bool:
    if text.tag != _INTEGER or not _OCTAL.fullmatch(text.written):
        return False
    return int(text.written, 8) != int(text.written.replace("_", ""), 10)
