"""Cordons that can be told from a person's: what a killed run leaves cordoned, the next run of its release gives back.

A node is cordoned and marked in one request, and given back by one that also takes the mark away. Both hold only if
nobody changed the node meanwhile, so that a person's cordon is never taken for one of a run, nor undone.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from lightkube import ApiError
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

from inferctl.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.release.helm import Release

#: The annotation of a node that a run has cordoned; its value is ``namespace/release``.
MARK = "inferctl.dev/cordoned-by"
_ATTEMPTS = 10


class Cordons:
    """The cordons of one release's runs."""

    def __init__(self, release: Release) -> None:
        """Nothing is asked of the cluster yet."""
        self._api = release.target.client(release.namespace)
        self._owner = f"{release.namespace}/{release.name}"

    def cordon(self, *nodes: str) -> None:
        """Keep new pods off nodes; one that is cordoned already is left as it is, unmarked.

        Raises:
            EnvironmentProblem: somebody else kept changing the node.
        """
        for name in nodes:
            self._change(name, self._taking)

    def uncordon(self, *nodes: str) -> None:
        """Let pods onto nodes again that `cordon` took; nothing happens to others.

        Raises:
            EnvironmentProblem: somebody else kept changing the node.
        """
        for name in nodes:
            self._change(name, self._giving_back)

    def sweep(self, say: Callable[[str], object]) -> None:
        """Give back what a run that was killed left cordoned; what runs of other releases hold is only told."""
        for name, owner in self._marked().items():
            if owner == self._owner:
                self.uncordon(name)
                say(f"node {name} was left cordoned by a run that was killed: it is not any more")
            else:
                say(
                    f"node {name} is cordoned by a test of {owner}; if none runs, give it back with: "
                    f"kubectl uncordon {name} && kubectl annotate node {name} {MARK}-"
                )

    def _marked(self) -> dict[str, str]:
        try:
            nodes = list(self._api.list(Node))
        except ApiError as error:
            # Who may not look at nodes has never cordoned one.
            if error.status.code == HTTPStatus.FORBIDDEN:
                return {}
            raise
        return {name: _mark(node) for node in nodes if node.metadata and (name := node.metadata.name) and _mark(node)}

    def _taking(self, node: Node) -> dict[str, Any] | None:
        if node.spec and node.spec.unschedulable:
            return None
        return {"metadata": {"annotations": {MARK: self._owner}}, "spec": {"unschedulable": True}}

    def _giving_back(self, node: Node) -> dict[str, Any] | None:
        if _mark(node) != self._owner:
            return None
        return {"metadata": {"annotations": {MARK: None}}, "spec": {"unschedulable": None}}

    def _change(self, name: str, wanted: Callable[[Node], dict[str, Any] | None]) -> None:
        for _ in range(_ATTEMPTS):
            node = self._api.get(Node, name)
            patch = wanted(node)
            if patch is None:
                return
            # With the version that was looked at, the API refuses the change if there is a newer one.
            patch["metadata"]["resourceVersion"] = node.metadata.resourceVersion if node.metadata else None
            try:
                self._api.patch(Node, name, patch, patch_type=PatchType.MERGE)
            except ApiError as error:
                if error.status.code != HTTPStatus.CONFLICT:
                    raise
            else:
                return
        raise EnvironmentProblem(f"node {name}: somebody changed it {_ATTEMPTS} times while it was to be changed")


def _mark(node: Node) -> str:
    annotations: dict[str, str] = (node.metadata.annotations if node.metadata else None) or {}
    return annotations.get(MARK, "")
