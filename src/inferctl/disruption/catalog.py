"""Every scenario by name, in the order in which `all` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.disruption.scenarios import components, crashes, drains, rollouts
from inferctl.errors import UsageError

if TYPE_CHECKING:
    from inferctl.disruption.scenario import Scenario

SCENARIOS: tuple[type[Scenario], ...] = (
    rollouts.Rollout,
    rollouts.BadRollout,
    rollouts.CrashingRollout,
    rollouts.UnhealthyRollout,
    rollouts.Rollback,
    rollouts.Scale,
    rollouts.TwoModels,
    drains.Drain,
    drains.BlockedDrain,
    drains.SecondDrain,
    components.KubeletRestart,
    components.ContainerdRestart,
    components.ApiOutage,
    components.RegistryOutage,
    components.ReadinessFlapping,
    crashes.EngineKilled,
    crashes.OutOfMemory,
    crashes.NodeKilled,
    crashes.NodePartitioned,
    rollouts.Uninstall,
    rollouts.ReadyButWrong,
    components.ProxyDead,
)
QUICK = ("rollout", "drain", "bad-rollout", "kubelet-restart", "node-killed")


def chosen(name: str) -> list[type[Scenario]]:
    """The scenarios that a name stands for: one, ``quick`` or ``all``.

    Raises:
        UsageError: there is none of this name.
    """
    if name == "all":
        return list(SCENARIOS)
    names = QUICK if name == "quick" else (name,)
    found = [scenario for scenario in SCENARIOS if scenario.name in names]
    if not found:
        raise UsageError(f"scenario {name!r}: there is none of this name; inferctl test --list names them all")
    return found
