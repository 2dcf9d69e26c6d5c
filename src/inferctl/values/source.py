"""A values file as it was written, before YAML gives its words a meaning.

YAML reads an unquoted 0123 as 83, on as true and 1.10 as 1.1, and Helm keeps the last of two equal keys in
silence. No chart can see this afterwards; only the file itself can.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from inferctl.errors import UsageError

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
    """A values file as a tree of nodes; an empty file has none."""

    root: yaml.MappingNode | None

    @property
    def values(self) -> object:
        """The content with the meaning that YAML gives it."""
        return yaml.SafeLoader("").construct_document(self.root) if self.root else {}

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
            key, node = _below(node, name)
            if key is None:
                break
            found = key.start_mark.line + 1
        return found

    def repeated_keys(self) -> list[tuple[str, int]]:
        """Keys that stand twice in one mapping: the dotted path, and the line of the second."""
        return list(_repeated(self.root, ""))


def read(file: Path) -> Source:
    """Read a values file.

    Raises:
        UsageError: it cannot be read, is not YAML, or is not a mapping of keys to values.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; name a values file that can be read") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8 text") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.composer.ComposerError as error:
        said = " ".join(filter(None, (error.context, error.problem)))
        raise UsageError(f"{file}: {said}; keep one document and only anchors that exist") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise UsageError(f"{file}: {where}: {error.problem}; a value with ': ' or '#' in it needs quotes") from error
    except yaml.reader.ReaderError as error:
        raise UsageError(
            f"{file}: character {error.position} cannot stand in YAML; write it as an escape in quotes"
        ) from error
    except RecursionError as error:
        raise UsageError(f"{file}: is nested too deeply to be a values file") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{file}: holds no keys with values; see inferctl values init --help")
    source = Source(root)
    try:
        # Dates that do not exist, tags of other programs, mappings as keys, anchors within themselves, ...
        json.dumps(source.values, default=str)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{file}: holds a value without a meaning ({said}); put it in quotes") from error
    return source


def _items(node: yaml.Node | None) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _below(node: yaml.Node | None, name: str) -> tuple[yaml.Node | None, yaml.Node | None]:
    """What a name leads to below a node, after the node that shows where it is; a later key wins, as in Helm."""
    if isinstance(node, yaml.SequenceNode) and name.isdigit() and int(name) < len(node.value):
        return node.value[int(name)], node.value[int(name)]
    return next(((key, value) for key, value in reversed([*_items(node)]) if key.value == name), (None, None))


def _repeated(node: yaml.Node | None, path: str) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for key, value in _items(node):
        here = f"{path}.{key.value}".lstrip(".")
        if key.value in seen:
            yield here, key.start_mark.line + 1
        seen.add(key.value)
        yield from _repeated(value, here)
