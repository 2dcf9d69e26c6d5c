"""When a release has come to rest, and what is done for it to come sooner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lightkube.models.apps_v1 import Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus
from lightkube.models.core_v1 import Pod as PodModel
from lightkube.models.meta_v1 import ObjectMeta

from inferctl.cluster.target import Target
from inferctl.disruption.settle import hurry_leaving, unsettled, wait_settled
from inferctl.errors import DeadlineExceeded
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


class _Stuck:
    """Stands in for a cluster with a Deployment of one pod that is not ready."""

    def __init__(self, status: dict[str, Any], *, refused: str = "") -> None:
        self.status, self.refused = status, refused

    def get(self, *_: object) -> Any:  # noqa: ANN401 - a Deployment, which from_dict does not say
        refused = DeploymentCondition(type="ReplicaFailure", status="True", reason="FailedCreate", message=self.refused)
        return Deployment.from_dict(
            {
                "metadata": {"generation": 2},
                "spec": DeploymentSpec.from_dict({"replicas": 1, "selector": {}, "template": {}}).to_dict(),
                "status": DeploymentStatus(
                    observedGeneration=2, updatedReplicas=1, replicas=1, conditions=[refused] if self.refused else []
                ).to_dict(),
            }
        )

    def list(self, *_: object, **__: object) -> list[Any]:
        return [PodModel.from_dict({"metadata": {"name": "wrong-1"}, "status": self.status})]


def _container(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a container's status
    return {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0, **fields}


_PULL = _container("engine", state={"waiting": {"reason": "ImagePullBackOff", "message": "no such\n image"}})
_CRASH = _container(
    "engine",
    state={"waiting": {"reason": "CrashLoopBackOff"}},
    lastState={"terminated": {"exitCode": 3, "reason": "Error"}},
)
_LOADS = _container("engine", state={"running": {}})
_SCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes fit"}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"containerStatuses": [_PULL]}, "pod wrong-1: engine waits: ImagePullBackOff: no such image"),
        ({"containerStatuses": [_CRASH]}, "waits: CrashLoopBackOff (it last ended with exit code 3, Error)"),
        ({"containerStatuses": [_LOADS]}, "pod wrong-1: engine runs and is not ready"),
        ({"phase": "Pending", "conditions": [_SCHEDULED]}, "pod wrong-1: Unschedulable: 0/2 nodes fit"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "pod wrong-1: Evicted: low on memory"),
    ],
)
def test_pod_that_is_not_ready_is_named_with_its_reason(tmp_path: Path, status: dict[str, Any], said: str) -> None:
    """What a release lacks names the pod, and what its containers wait for or why no node takes it."""
    api: Any = _Stuck(status)
    missing = unsettled(api, Release(Target("existing", tmp_path, "context", "push:1", "pull:1"), "wrong"))
    assert missing.startswith("of 1 pods 1 are of the newest version, 0 ready, 1 in all; ")
    assert missing.endswith(said)


def test_release_that_never_rests_is_named_with_where_help_is(tmp_path: Path) -> None:
    """The error has the release, what stops its pods from being made, and the document that says what to do."""
    api: Any = _Stuck({"phase": "Pending"}, refused="exceeded quota")
    release = Release(Target("existing", tmp_path, "context", "push:1", "pull:1"), "wrong")
    with pytest.raises(DeadlineExceeded) as failed:
        wait_settled(api, release, 0.1, tell=lambda _: None)
    assert str(failed.value).startswith("release 'wrong' did not come to rest: not after 0 s: of 1 pods")
    assert "FailedCreate: exceeded quota" in str(failed.value)
    assert str(failed.value).endswith("what to do: docs/rollout-hangs.md")
