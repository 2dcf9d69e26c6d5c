"""When a release has come to rest, and what is done for it to come sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightkube.models.core_v1 import Pod as PodModel
from lightkube.models.meta_v1 import ObjectMeta

from inferctl.cluster.target import Target
from inferctl.disruption.settle import hurry_leaving
from inferctl.release.helm import Release

if TYPE_CHECKING:
    from pathlib import Path


class _Api:
    """Stands in for a cluster with three pods: one stays, one leaves at its leisure, one is about to be gone."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, int]] = []

    def list(self, *_: object, **__: object) -> list[PodModel]:
        return [
            PodModel(metadata=ObjectMeta(name=name, deletionGracePeriodSeconds=grace))
            for name, grace in (("stays", None), ("leaves", 90), ("hurries", 1))
        ]

    def delete(self, _: object, name: str, *, grace_period: int) -> None:
        self.deleted.append((name, grace_period))


def test_only_pods_that_leave_are_hurried(tmp_path: Path) -> None:
    """A pod on its way out gets one second; those that stay, and those that have no more than that, are let be."""
    api: Any = _Api()
    hurry_leaving(api, Release(Target("existing", tmp_path, "context", "push:1", "pull:1"), "model"))
    assert api.deleted == [("leaves", 1)]
