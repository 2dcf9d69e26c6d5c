"""Makes YAML a tree of nodes, and refuses early what would take for ever to expand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from inferctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Keys, values and items, each alias counted as all that it stands for; a values file has some hundred.
MOST_NODES = 20_000
_LONGEST_NUMBER = 1000  # characters; YAML's base-60 numbers take time by the square of their length
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}


def compose(text: str) -> yaml.Node | None:
    """The one document of a text; None if it is empty.

    Raises:
        UsageError: it is too large when its aliases are expanded, holds itself, or has an endless number.
        yaml.YAMLError: it is not YAML.
        RecursionError: it is nested too deeply.
    """
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    finally:
        loader.dispose()
    if root is not None:
        _expanded_size(root, {})
    return root


class _Loader(yaml.SafeLoader):
    """Counts the nodes that are written out, so that a large file is refused while it is read."""

    _written = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._written += 1
        if self._written > MOST_NODES:
            raise _too_many()
        return super().compose_node(parent, index)


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many nodes a node stands for; each is looked at once."""
    if id(node) in known:
        if not known[id(node)]:
            raise UsageError(f"line {node.start_mark.line + 1}: holds an alias of itself; write it out")
        return known[id(node)]
    known[id(node)] = 0  # in hand
    size = 1 + sum(_expanded_size(child, known) for child in _children(node))
    if size > MOST_NODES:
        raise _too_many()
    known[id(node)] = size
    return size


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
        line = node.start_mark.line + 1
        raise UsageError(f"line {line}: holds a number of {len(node.value)} characters; put it in quotes")


def _too_many() -> UsageError:
    return UsageError(f"holds more than {MOST_NODES} keys and values with its aliases expanded; leave some out")
