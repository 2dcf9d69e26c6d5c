"""Nodes that are emptied on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.disruption.scenario import NO_BUDGET, UNPROTECTED, OneNode, Scenario
from inferctl.disruption.scenarios.rollouts import wait_retired
from inferctl.errors import CommandFailed, UsageError

if TYPE_CHECKING:
    from inferctl.disruption.run import Run
    from inferctl.report.findings import Findings
    from inferctl.report.state import State

_BLOCKED_SECONDS = 12.0
#: What kubectl says of an eviction that the budget does not allow.
_REFUSAL = "would violate the pod's disruption budget"


class Drain(OneNode):
    """The node of the first pod is drained."""

    name = "drain"
    summary = "kubectl drain of one pod's node"
    controls = (UNPROTECTED,)
    retires = True

    def disrupt(self, run: Run) -> None:
        """Drain."""
        run.show("nodes", "pods", "pdb")
        drain = run.start_drain(self.node)
        wait_retired(run, run.aimed_at)
        run.finish_drain(drain)
        run.show("nodes", "pods", "pdb")

    def restore(self, run: Run) -> None:
        """Let pods onto the node again."""
        run.quietly(lambda: run.uncordon(self.node))


class _TwoNodes(Scenario):
    """Needs one pod on each of two workers."""

    on_nodes = True
    retires = True
    controls = (NO_BUDGET,)
    nodes: tuple[str, ...] = ()
    said = ""

    def arrange(self, run: Run) -> None:
        """See that there are two workers with one pod each."""
        if len(set(run.pods().values())) < len(run.pods()):
            # An earlier run may have left both on one node; new pods spread.
            run.upgrade(run.replaced())
            run.wait_at_rest()
        self.nodes = tuple(sorted(set(run.pods().values())))
        if len(self.nodes) != len(run.workers()) or len(self.nodes) != 2:  # noqa: PLR2004 - two, as the name says
            raise UsageError(
                f"{self.name} needs exactly two nodes for the engine, with a pod on each: the nodes are "
                f"{', '.join(run.workers())}, pods are on {', '.join(self.nodes)}"
            )

    def restore(self, run: Run) -> None:
        """Let pods onto both nodes again."""
        run.quietly(lambda: run.uncordon(*self.nodes))


class BlockedDrain(_TwoNodes):
    """Both nodes are drained: the second drain is refused while the first pod's replacement has no room."""

    name = "drain-blocked"
    summary = "the second drain is refused by the PodDisruptionBudget; uncordon restores"

    def disrupt(self, run: Run) -> None:
        """Cordon the second node, drain the first, and try the second."""
        first, second = self.nodes
        run.cordon(second)
        run.drain(first)
        try:
            run.drain(second, seconds=_BLOCKED_SECONDS)
        except CommandFailed as error:
            self.said = str(error)
            run.act("the drain was refused")
        run.show("nodes", "pods", "pdb")
        run.act("uncordon both")
        run.uncordon(*self.nodes)

    def expect(self, state: State, found: Findings) -> list[str]:
        """Kubectl gave up with the budget's message."""
        del state, found
        return [] if _REFUSAL in self.said else [f"kubectl did not say {_REFUSAL!r}, but {self.said!r}"]


class SecondDrain(_TwoNodes):
    """The second node is drained while the replacement of the first node's pod still loads."""

    name = "drain-twice"
    summary = "a second drain begins while the first pod's replacement loads"

    def disrupt(self, run: Run) -> None:
        """Begin the second drain as soon as the first has evicted its pod."""
        first, second = self.nodes
        leaving = run.on_node(first)
        drains = [run.start_drain(first)]
        run.wait(lambda state: "" if state.pods[leaving[0]].deleted else f"{leaving[0]} is not evicted", 60)
        drains.append(run.start_drain(second))
        run.finish_drain(drains[0])
        run.uncordon(first)
        wait_retired(run, run.aimed_at)
        run.finish_drain(drains[1])
        run.uncordon(second)
