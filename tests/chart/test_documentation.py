"""values.yaml, its schema, the templates' defaults and the README's table say the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from inferctl.paths import CHART
from inferctl.values import reference

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = (CHART / "values.yaml").read_text(encoding="utf-8")
DEFAULTS = yaml.safe_load(VALUES)
NOT_A_DEFAULT = {"global"}


def _documented(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key of ours in the schema, down to where Kubernetes' own begin."""
    for name, node in schema["properties"].items():
        if name in NOT_A_DEFAULT:
            continue
        yield name, node
        if "default" not in node:
            yield from ((f"{name}.{inner}", below) for inner, below in node["properties"].items())


DOCUMENTED = dict(_documented(reference.schema()))


def _comments() -> dict[str, str]:
    """The comment above each key of values.yaml, as one line."""
    found: dict[str, str] = {}
    block = ""
    comment: list[str] = []
    for line in VALUES.splitlines():
        if match := re.match(r"^( {0,2})# (.*)$", line):
            comment.append(match[2])
        elif match := re.match(r"^( {0,2})([A-Za-z]+):", line):
            block = match[2] if not match[1] else block
            if comment:
                found[match[2] if not match[1] else f"{block}.{match[2]}"] = " ".join(comment)
            comment = []
        else:
            comment = []
    return found


def _default(path: str) -> object:
    here = DEFAULTS
    for name in path.split("."):
        here = here[name]
    return here


def test_schema_is_a_schema() -> None:
    """The schema itself is valid."""
    jsonschema.Draft7Validator.check_schema(reference.schema())


def test_values_have_exactly_the_documented_keys() -> None:
    """No key stands in values.yaml or in the schema alone."""
    keys = {
        path
        for name, value in DEFAULTS.items()
        for path in [name, *(f"{name}.{inner}" for inner in (value if isinstance(value, dict) else ()))]
    }
    assert keys == set(DOCUMENTED)


@pytest.mark.parametrize("path", DOCUMENTED)
def test_values_comment_is_the_schema_description(path: str) -> None:
    """A person reads in values.yaml what the editor shows."""
    assert _comments()[path] == DOCUMENTED[path]["description"]


@pytest.mark.parametrize("path", [path for path, node in DOCUMENTED.items() if "default" in node])
def test_default_is_the_same_everywhere(path: str) -> None:
    """The schema and values.yaml have the same default, and it obeys the schema."""
    assert DOCUMENTED[path]["default"] == _default(path)


def test_defaults_obey_the_schema() -> None:
    """values.yaml is a valid values file but for what is required."""
    jsonschema.Draft7Validator(reference.schema()).validate(DEFAULTS)


def test_templates_know_the_same_defaults() -> None:
    """The copy that stands in for missing keys is the one in values.yaml."""
    template = (CHART / "templates" / "_defaults.tpl").read_text(encoding="utf-8")
    match = re.search(r'define "inference-service.defaults" -}}\n(.*?){{- end }}', template, re.DOTALL)
    assert match
    assert yaml.safe_load(match[1]) == DEFAULTS


def test_readme_table_is_the_schema() -> None:
    """The README has a row for each key, with its default and its description."""
    rows = [
        f"| `{path}` | `{json.dumps(node['default'])}` | {node['description']} |"
        for path, node in DOCUMENTED.items()
        if "default" in node
    ]
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| key \| default \| meaning \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", readme, re.MULTILINE)
    assert table
    assert table[1].splitlines() == rows


def _places(node: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that the schema names, at any depth; conditions only narrow what stands elsewhere."""
    if isinstance(node, dict):
        for name, below in node.items():
            if name == "properties":
                yield from ((f"{path}.{key}", value) for key, value in below.items())
            if name not in {"if", "then", "allOf", "examples", "default"}:
                yield from _places(below, f"{path}.{name}")
    elif isinstance(node, list):
        for below in node:
            yield from _places(below, path)


@pytest.mark.parametrize(
    ("path", "node"),
    list(_places(reference.schema(), "")),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_key_has_a_description_and_valid_examples(path: str, node: dict[str, Any]) -> None:
    """An editor has something to show at every key, and what it shows may be written."""
    full = reference.resolve(node)
    assert full["description"], path
    assert full["examples"], path
    judge = jsonschema.Draft7Validator({**node, "definitions": reference.schema()["definitions"]})
    for example in full["examples"]:
        judge.validate(example)


def _mappings(node: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of the schema that is a mapping, at any depth."""
    if isinstance(node, dict):
        if "object" in node.get("type", ()):
            yield path, node
        for name, below in node.items():
            if name not in {"if", "then", "allOf", "examples", "default"}:
                yield from _mappings(below, f"{path}/{name}")


def test_no_mapping_takes_a_key_that_it_does_not_know() -> None:
    """At every level a misspelt key is refused; only what a parent chart and a volume's driver read is free."""
    open_ones = {
        path for path, node in _mappings(reference.schema(), "") if node.get("additionalProperties") is not False
    }
    assert open_ones == {"/properties/global", "/definitions/volume/properties/csi/properties/volumeAttributes"}


def test_editors_find_the_schema() -> None:
    """The first line of values.yaml names the schema for the YAML language server."""
    assert VALUES.splitlines()[0] == "# yaml-language-server: $schema=values.schema.json"
