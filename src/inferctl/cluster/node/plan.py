"""A node and its programs as pure data, written by ``cluster up`` and read by the node's init."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Ready:
    """How a component shows that it is ready.

    Attributes:
        target: ``unix:/path`` (accepts a connection) or an ``http://`` or ``https://`` address (answers 200).
        ca: the file of the authority that signed an https server's certificate.
        seconds: how long it may take.
    """

    target: str
    ca: str = ""
    seconds: float = 60


@dataclass(frozen=True)
class Component:
    """One program of a node, or with no ``argv`` a state that others wait for.

    Attributes:
        name: also the name of its log file.
        argv: the program and its arguments.
        needs: components that must be ready before this one starts.
        ready: how it shows that it is ready; absent means as soon as it runs.
    """

    name: str
    argv: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ready: Ready | None = None


@dataclass(frozen=True)
class NodePlan:
    """Everything that a node's init needs to know.

    Attributes:
        name: the node's name, which becomes its host name.
        folder: where its files are; its init's socket and status file too.
        state_root: the folder of all clusters, which stays visible inside the node.
        tools: the folder of the built programs on the host.
        programs: the program in ``tools`` behind each name; the node finds the names in `PROGRAMS`.
        cgroup: the node's control group, relative to the root of each hierarchy.
        components: in any order; ``needs`` says which waits for which.
    """

    name: str
    folder: str
    state_root: str
    tools: str
    programs: dict[str, str]
    cgroup: str
    components: tuple[Component, ...] = field(default=())

    def write(self, path: Path) -> None:
        """Write the plan as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, text: str) -> NodePlan:
        """Read a plan that `write` wrote."""
        raw: dict[str, Any] = json.loads(text)
        components = tuple(
            Component(
                name=item["name"],
                argv=tuple(item["argv"]),
                needs=tuple(item["needs"]),
                ready=Ready(**item["ready"]) if item["ready"] else None,
            )
            for item in raw.pop("components")
        )
        return cls(**raw, components=components)


#: Where a node sees its programs, whatever folders of the host they are in.
PROGRAMS = "/run/inferctl/bin"
