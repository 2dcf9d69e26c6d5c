"""A node that a killed run left cordoned is given back by the next run; a person's cordon never is."""

from __future__ import annotations

from copy import deepcopy
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from lightkube import ApiError
from lightkube.resources.core_v1 import Node

from inferctl.cluster.target import Target
from inferctl.disruption.cordons import MARK, Cordons
from inferctl.errors import EnvironmentProblem
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from collections.abc import Callable


class _Api:
    """Nodes as the API server keeps them: a change that names an old version is refused."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self.meanwhile: list[Callable[[], None]] = []
        self.forbidden = False

    def add(self, name: str, *, cordoned: bool = False, mark: str = "") -> None:
        annotations = {"other": "stays", **({MARK: mark} if mark else {})}
        metadata = {"name": name, "resourceVersion": "1", "annotations": annotations}
        self.nodes[name] = {"metadata": metadata, "spec": {"unschedulable": True} if cordoned else {}}

    def list(self, _: type[Node]) -> list[Node]:
        if self.forbidden:
            raise _refusal(HTTPStatus.FORBIDDEN)
        return [self.get(Node, name) for name in self.nodes]

    def get(self, _: type[Node], name: str) -> Node:
        node = Node.from_dict(deepcopy(self.nodes[name]))
        assert isinstance(node, Node)
        return node

    def patch(self, _: type[Node], name: str, patch: dict[str, Any], **__: object) -> None:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        node = self.nodes[name]
        if patch["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"]:
            raise _refusal(HTTPStatus.CONFLICT)
        node["metadata"]["annotations"].update(patch["metadata"]["annotations"])
        node["spec"].update(patch["spec"])
        self.touch(name)

    def touch(self, name: str, **spec: object) -> None:
        """Change a node as somebody else does."""
        metadata = self.nodes[name]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        self.nodes[name]["spec"].update(spec)

    def seen(self, name: str) -> tuple[bool, str | None]:
        """Whether a node is cordoned, and its mark."""
        node = self.nodes[name]
        return bool(node["spec"].get("unschedulable")), node["metadata"]["annotations"].get(MARK)


def _refusal(code: HTTPStatus) -> ApiError:
    request = httpx2.Request("PATCH", "http://api")
    return ApiError(request, httpx2.Response(code, json={"code": code, "message": code.phrase}, request=request))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> _Api:
    """The API of a cluster without nodes."""
    api = _Api()
    monkeypatch.setattr(Target, "client", lambda *_: api)
    return api


def _cordons(name: str = "mock") -> Cordons:
    return Cordons(Release(Target("existing", Path("/kubeconfig"), "context", "push:1", "pull:1"), name))


def test_cordon_is_marked_and_given_back(api: _Api) -> None:
    """What a run cordons has its mark, and loses both when the run gives it back."""
    api.add("a")
    _cordons().cordon("a")
    assert api.seen("a") == (True, "default/mock")
    _cordons().uncordon("a")
    assert api.seen("a") == (False, None)
    assert api.nodes["a"]["metadata"]["annotations"]["other"] == "stays"


def test_next_run_gives_back_what_a_killed_one_left(api: _Api) -> None:
    """Only nodes with this release's own mark are given back, and each is told."""
    api.add("ours")
    api.add("free")
    api.add("persons", cordoned=True)
    _cordons().cordon("ours")
    said: list[str] = []
    _cordons().sweep(said.append)
    assert [api.seen(name) for name in ("ours", "free", "persons")] == [(False, None), (False, None), (True, None)]
    assert len(said) == 1
    assert "node ours" in said[0]


def test_cordon_of_a_person_stays_theirs(api: _Api) -> None:
    """A node that was cordoned before a run gets no mark, so that the run's end does not undo it."""
    api.add("a", cordoned=True)
    cordons = _cordons()
    cordons.cordon("a")
    assert api.seen("a") == (True, None)
    cordons.uncordon("a")
    cordons.sweep(pytest.fail)
    assert api.seen("a") == (True, None)


def test_person_who_is_faster_keeps_the_cordon(api: _Api) -> None:
    """A cordon that comes between the look at a node and the change is seen, since the API refuses that change."""
    api.add("a")
    api.meanwhile = [lambda: api.touch("a", unschedulable=True)]
    _cordons().cordon("a")
    assert api.seen("a") == (True, None)


def test_change_by_somebody_else_does_not_end_the_attempt(api: _Api) -> None:
    """A heartbeat in between has the node looked at again; endless ones are told with the node's name."""
    api.add("a")
    api.meanwhile = [lambda: api.touch("a")]
    _cordons().cordon("a")
    assert api.seen("a") == (True, "default/mock")
    api.meanwhile = [lambda: api.touch("a")] * 100
    with pytest.raises(EnvironmentProblem, match="node a: somebody changed it"):
        _cordons().uncordon("a")


def test_mark_of_another_release_is_left_alone_and_told(api: _Api) -> None:
    """A test of another release may still run: its cordon is named with the command that takes it away."""
    api.add("a", cordoned=True, mark="default/chat")
    said: list[str] = []
    cordons = _cordons()
    cordons.sweep(said.append)
    cordons.uncordon("a")
    assert api.seen("a") == (True, "default/chat")
    assert "default/chat" in said[0]
    assert f"kubectl uncordon a && kubectl annotate node a {MARK}-" in said[0]


def test_account_that_may_not_see_nodes_can_test_rollouts(api: _Api) -> None:
    """Who may not look at nodes has cordoned none: that is no error."""
    api.forbidden = True
    _cordons().sweep(pytest.fail)
