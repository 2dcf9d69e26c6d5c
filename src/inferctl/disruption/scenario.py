"""The shape that every scenario has, and what it may ask for.

A scenario says what it promises (its class), which loads run, which pods it is aimed at, what it does, and when
that has settled. How a run goes, how it is recorded and judged is the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from inferctl.disruption.load import Load
from inferctl.disruption.verdict import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inferctl.disruption.run import Run
    from inferctl.report.findings import Findings
    from inferctl.report.state import State

#: 0.07 s + 19 tokens at 0.03 s: 0.64 s with the mock engine's defaults.
SHORT_TOKENS = 20
#: 0.07 s + 679 tokens at 0.03 s: 20.4 s, twice the chart's preStop sleep, so that the drain is what protects them.
LONG_TOKENS = 680
#: 39 s: open when a pod is killed 18 s after it was told to stop, whenever the answer began.
LONGER_TOKENS = 1300
#: Below the chart's preStopSeconds of 10: no connection is old enough to meet a pod after SIGTERM.
YOUNG_SECONDS = 5.0

SHORT_NEW = Load("short-new", 12, SHORT_TOKENS)
SHORT_KEPT = Load("short-kept", 4, SHORT_TOKENS, keepalive=True)
SHORT_YOUNG = Load("short-young", 4, SHORT_TOKENS, keepalive=True, max_age=YOUNG_SECONDS)
LONG_NEW = Load("long-new", 4, LONG_TOKENS, spread=8)
LONG_KEPT = Load("long-kept", 2, LONG_TOKENS, spread=4, keepalive=True)
EVERY_LOAD = (SHORT_NEW, SHORT_KEPT, SHORT_YOUNG, LONG_NEW, LONG_KEPT)


@dataclass(frozen=True)
class Control:
    """The same run with a protection taken away.

    Attributes:
        name: appended to the scenario's name.
        values: laid over the release's values before load starts.
        takes_away: what protection that is.
        swallow_sigterm: run the engine below a process that does not pass SIGTERM on.
        longer_answers: the long answers take 39 s, so that one is open at the moment that counts.
        kill_engines: kill the engines on the struck node together with the disruption.
    """

    name: str
    takes_away: str
    values: Mapping[str, Any] = field(default_factory=dict)
    swallow_sigterm: bool = False
    longer_answers: bool = False
    kill_engines: bool = False


UNPROTECTED = Control(
    "unprotected",
    "preStop sleep and grace period",
    {"rollout": {"preStopSeconds": 0, "terminationGracePeriodSeconds": 1}},
)
IN_PLACE = Control(
    "in-place",
    "the rule that a serving pod goes only after its replacement is Ready",
    {"replicaCount": 1, "rollout": {"maxSurge": 0}},
)
NO_BUDGET = Control("no-budget", "the PodDisruptionBudget", {"podDisruptionBudget": {"enabled": False}})
ENGINE_DIES = Control("engine-dies", "that the engines outlive the program that is struck", kill_engines=True)


class Scenario(ABC):
    """One disruption.

    Attributes:
        name: as it is asked for.
        promise: its class.
        summary: what it does and what must hold, in one line.
        controls: runs that must lose requests; the first is the one of the quick set.
        loads: what is sent.
        values: laid over the release's values.
        retires: it has pods told to stop: only those were struck; otherwise all that it is aimed at.
        on_nodes: it acts on nodes, so that it must be told that it may.
        own_nodes: it acts on programs of the nodes' machines, which only the embedded cluster lets it reach.
        enough: streams that must be in flight on the pods to be struck, past their first token.
        restored_within: class B: seconds within which service is restored.
    """

    name: ClassVar[str]
    promise: ClassVar[Promise] = Promise.A
    summary: ClassVar[str]
    controls: ClassVar[tuple[Control, ...]] = ()
    loads: ClassVar[tuple[Load, ...]] = EVERY_LOAD
    values: ClassVar[Mapping[str, Any]] = {}
    retires: ClassVar[bool] = False
    on_nodes: ClassVar[bool] = False
    own_nodes: ClassVar[bool] = False
    enough: ClassVar[int] = 8
    restored_within: ClassVar[float | None] = None

    def arrange(self, run: Run) -> None:  # noqa: B027 - most scenarios need nothing here
        """Prepare what must be there before load starts; by default nothing beyond the release at rest."""

    def struck(self, run: Run) -> list[str]:
        """The pods that the disruption is aimed at; by default every one that serves."""
        return run.serving()

    def avoid(self, run: Run) -> list[str]:
        """Nodes that load must keep off; by default none."""
        del run
        return []

    @abstractmethod
    def disrupt(self, run: Run) -> None:
        """Do it."""

    def settled(self, run: Run) -> None:
        """Wait until the disruption is over and service as it was; by default until the release is at rest."""
        run.wait_at_rest()

    def expect(self, state: State, found: Findings) -> list[str]:
        """What else must hold: one complaint for each thing that does not."""
        del state, found
        return []

    def restore(self, run: Run) -> None:  # noqa: B027 - most scenarios leave nothing behind
        """Undo what could be left behind; called however the run ended."""


class OneNode(Scenario):
    """Strikes the node that the first pod is on.

    Attributes:
        node: that node, from the moment at which load is placed elsewhere.
    """

    on_nodes = True
    node = ""

    def avoid(self, run: Run) -> list[str]:
        """That node, which is chosen here."""
        self.node = run.node_of(run.serving()[0])
        return [self.node]

    def struck(self, run: Run) -> list[str]:
        """The pods on it."""
        return run.on_node(self.node)
