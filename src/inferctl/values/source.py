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


@dataclass(frozen=True)
class Text:
    """A scalar as it stands in the file."""

    written: str
    quoted: bool
    line: int


@dataclass(frozen=True)
class Source:
    """A values file as a tree of nodes; an empty file has none.

    Attributes:
        text: the content as it was read, which is what Helm is given too.
        root: its nodes.
        values: the content with the meaning that YAML gives it.
        repeated_keys: keys that stand twice in one mapping: the dotted path, and the line of the second.
    """

    text: str
    root: yaml.MappingNode | None
    values: object
    repeated_keys: list[tuple[str, int]]

    def texts(self, *path: str) -> dict[str, Text]:
        """The scalars directly under the mapping at ``path``, by key; a later key wins, as in Helm."""
        node: yaml.Node | None = self.root
        for name in path:
            node = next((value for key, value in _items(node) if key.value == name), None)
        return {
            str(key.value): Text(str(value.value), value.style is not None, value.start_mark.line + 1)
            for key, value in _items(node)
            if isinstance(value, yaml.ScalarNode)
        }

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
        said = " ".join(filter(None, (error.context, error.problem)))
        raise UsageError(f"{name}: {said}; keep one document and only anchors that exist") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise UsageError(f"{name}: {where}: {error.problem}; a value with ': ' or '#' in it needs quotes") from error
    except yaml.reader.ReaderError as error:
        raise UsageError(
            f"{name}: character {error.position} cannot stand in YAML; write it as an escape in quotes"
        ) from error
    except RecursionError as error:
        raise UsageError(f"{name}: is nested too deeply to be a values file") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{name}: holds no keys with values; see inferctl values init --help")
    # Before the values are made: that writes merged keys into the nodes, where they would look repeated.
    repeated = list(_repeated(root, (), set()))
    try:
        values: object = yaml.SafeLoader("").construct_document(root) if root else {}
        # Dates that do not exist, tags of other programs, mappings as keys, numbers without an end, ...
        json.dumps(values, default=str)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{name}: holds a value without a meaning ({said}); put it in quotes") from error
    return Source(text, root, values, repeated)


def _items(node: yaml.Node | None) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _repeated(node: yaml.Node | None, path: tuple[str, ...], looked_at: set[int]) -> Iterator[tuple[str, int]]:
    """Repeated keys at or below a node; what an alias stands for is looked at where it is written, only."""
    if id(node) in looked_at:
        return
    looked_at.add(id(node))
    seen: set[str] = set()
    for key, value in _items(node):
        here = (*path, str(key.value))
        if key.value in seen:
            yield reference.dotted(here), key.start_mark.line + 1
        seen.add(key.value)
        yield from _repeated(value, here, looked_at)
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _repeated(item, (*path, str(position)), looked_at)
