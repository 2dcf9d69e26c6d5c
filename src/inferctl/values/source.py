"""A values file as it was written, before YAML gives its words a meaning.

YAML reads an unquoted 0123 as 83, on as true and 1.10 as 1.1, and Helm keeps the last of two equal keys in
silence. No chart can see this afterwards; only the file itself can.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import yaml

from inferctl.errors import UsageError
from inferctl.values import composing, reading, reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_SHOWN = 80  # characters of a value without a meaning that are shown


@dataclass(frozen=True)
class Text:
    """A scalar as it stands in the file.

    Attributes:
        written: its characters.
        line: counted from 1.
        tag: what YAML takes it for when nothing is said; a text in quotes is a text.
        is_key: whether it is the last part of its path, and not what stands there.
    """

    written: str
    line: int
    tag: str
    is_key: bool


@dataclass(frozen=True)
class Source:
    """A values file as a tree of nodes; an empty file has none.

    Attributes:
        text: the content as it was read, which is what Helm is given too.
        root: its nodes.
        values: the content with the meaning that YAML gives it.
        repeated_keys: keys that stand twice in one mapping: the dotted path, and the line of the second.
        merged_over: keys that a mapping merged below them has too: the dotted path, and the line of the merge.
    """

    text: str
    root: yaml.MappingNode | None
    values: object
    repeated_keys: list[tuple[str, int]]
    merged_over: list[tuple[str, int]]

    def texts(self) -> Iterator[tuple[tuple[str, ...], Text]]:
        """Each key and each scalar that means something, by the path of keys and positions that leads to it.

        What an alias stands for comes wherever it is used; null means nothing, and so does its key.
        """
        return _texts(self.root, ())

    def line(self, path: Sequence[str]) -> int | None:
        """The line of what is at a path of keys and list positions, or of the nearest that is there above it."""
        node: yaml.Node | None = self.root
        found = None
        for name in path:
            key, node = self._below(node, name)
            if key is None:
                break
            found = key.start_mark.line + 1
        return found

    def word(self, path: Sequence[str]) -> str | None:
        """What stands at a path, if it is a word without quotes: what YAML takes it for may be another."""
        node: yaml.Node | None = self.root
        for name in path:
            node = self._below(node, name)[1]
        plain = isinstance(node, yaml.ScalarNode) and node.style is None and node.tag != _NULL
        return str(node.value) if node and plain and str(node.value).isprintable() else None

    def _below(self, node: yaml.Node | None, name: str) -> tuple[yaml.Node | None, yaml.Node | None]:
        """What a name leads to below a node, after the node that shows where it is; a later key wins, as in Helm."""
        if isinstance(node, yaml.SequenceNode) and name.isdecimal() and int(name) < len(node.value):
            return node.value[int(name)], node.value[int(name)]
        if id(node) not in self._by_key:
            self._by_key[id(node)] = {str(key.value): (key, value) for key, value in _items(node)}
        return self._by_key[id(node)].get(name, (None, None))

    @cached_property
    def _by_key(self) -> dict[int, dict[str, tuple[yaml.Node, yaml.Node]]]:
        """The keys of each mapping that was asked for: a file may have as many problems as keys."""
        return {}


def read(file: Path) -> Source:
    """Read a values file, once.

    Raises:
        UsageError: it cannot be read, is not YAML, is too large, or is not a mapping of keys to values.
    """
    return parse(reading.text(file), reading.name(file))


def parse(text: str, name: str) -> Source:
    """Read a values file's content; ``name`` is what messages call it.

    Raises:
        UsageError: it is not YAML, is too large, or is not a mapping of keys to values.
    """
    try:
        root = composing.compose(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
    except yaml.composer.ComposerError as error:
        said = " ".join(filter(None, (error.context, error.problem))).removesuffix(
            "; first occurrence second occurrence"
        )
        raise UsageError(f"{name}: {_where(error)}{said}; keep one document, and one anchor for each alias") from error
    except yaml.MarkedYAMLError as error:
        raise UsageError(
            f"{name}: {_where(error)}{error.problem}; indent with blanks, and quote a value with ': ' or '#' in it"
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        said = f"{chr(error.character)!a} cannot stand in YAML; write it as an escape in double quotes"
        raise UsageError(f"{name}: line {line}: {said}") from error
    except RecursionError as error:
        raise UsageError(f"{name}: is nested too deeply to be a values file") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{name}: holds no keys with values; see inferctl values init --help")
    # Before the values are made: that writes merged keys into the nodes, where they would look repeated.
    clashes = [(reference.dotted(path), line, merged) for path, line, merged in _clashes(root, (), set())]
    try:
        values: object = _Constructor("").construct_document(root) if root else {}
        # Tags of other programs, mappings as keys, numbers without an end, ...
        json.dumps(values, default=str)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        said = getattr(error, "problem", None) or str(error) or type(error).__name__
        raise UsageError(
            f"{name}: {_where(error)}holds a value without a meaning ({said.splitlines()[0]}); put it in quotes"
        ) from error
    return Source(
        text,
        root,
        values,
        repeated_keys=[(key, line) for key, line, merged in clashes if not merged],
        merged_over=[(key, line) for key, line, merged in clashes if merged],
    )


class _Constructor(yaml.SafeLoader):
    """Gives nodes the meaning that Helm gives them: dates and = are texts."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001 - as it is called
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError) as error:  # such as !!int with a word behind it
            said = f"{str(node.value)[:_SHOWN]!a} is not what its tag says"
            raise yaml.constructor.ConstructorError(None, None, said, node.start_mark) from error


def _as_text(constructor: _Constructor, node: yaml.ScalarNode) -> str:
    return str(constructor.construct_scalar(node))


for _tag in ("timestamp", "value"):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_tag}", _as_text)


def _where(error: Exception) -> str:
    """The place that an error of YAML's names, as the beginning of a message."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


def _items(node: yaml.Node | None) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _texts(node: yaml.Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Text]]:
    if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
        yield path, _text(node, is_key=False)
    for key, value in _items(node):
        if value.tag != _NULL or key.tag == _NULL:
            yield (*path, str(key.value)), _text(key, is_key=True)
        yield from _texts(value, (*path, str(key.value)))
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _texts(item, (*path, str(position)))


def _text(node: yaml.ScalarNode, *, is_key: bool) -> Text:
    return Text(str(node.value), node.start_mark.line + 1, node.tag, is_key)


def _names(merged: yaml.Node) -> set[str]:
    """The keys that a merge brings: of a mapping or of a list of them, which may merge others."""
    if isinstance(merged, yaml.SequenceNode):
        return set().union(*map(_names, merged.value))
    return set().union(*(_names(value) if key.tag == _MERGE else {str(key.value)} for key, value in _items(merged)))


def _clashes(
    node: yaml.Node | None, path: tuple[str, ...], looked_at: set[int]
) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Keys at or below a node that stand twice, with the line of the second, and whether a merge brings it.

    What an alias stands for is looked at where it is written, only.
    """
    if id(node) in looked_at:
        return
    looked_at.add(id(node))
    seen: set[str] = set()
    for key, value in _items(node):
        line = key.start_mark.line + 1
        if key.value in seen:
            yield (*path, str(key.value)), line, False
        if key.tag == _MERGE:
            yield from (((*path, name), line, True) for name in sorted(seen & _names(value)))
        seen.add(str(key.value))
        yield from _clashes(value, (*path, str(key.value)), looked_at)
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _clashes(item, (*path, str(position)), looked_at)
