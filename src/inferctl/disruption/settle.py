"""When a release has come to rest: what its Deployment and its pods still lack."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from inferctl.errors import DeadlineExceeded, InferctlError
from inferctl.process.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightkube import Client
    from lightkube.models.apps_v1 import DeploymentStatus
    from lightkube.models.core_v1 import ContainerStatus, PodStatus
    from lightkube.models.core_v1 import Pod as PodModel

    from inferctl.console import Progress
    from inferctl.release.helm import Release

_HURRIED_SECONDS = 1
_HELP = "docs/rollout-hangs.md"


def wait_settled(
    client: Client,
    release: Release,
    seconds: float,
    *,
    tell: Callable[[str], object],
    before_asking: Callable[[], None] = lambda: None,
) -> None:
    """Wait until a release is at rest.

    Args:
        client: of the release's namespace.
        release: the release.
        seconds: how long to wait.
        tell: is given what is missing, whenever that changes for good.
        before_asking: is called before each look.

    Raises:
        DeadlineExceeded: it did not come to rest; the message names the release, the pods and what each lacks.
    """

    def missing() -> str:
        before_asking()
        return unsettled(client, release)

    try:
        wait_until(missing, seconds, tell=tell)
    except DeadlineExceeded as error:
        raise DeadlineExceeded(
            f"release {release.name!r} did not come to rest: {error}; what to do: {_HELP}"
        ) from error


def wait_restored(client: Client, release: Release, seconds: float, progress: Progress) -> None:
    """Wait for a release that was given its own values back; a verdict stands even if its pods are late."""
    try:
        with progress.step("waiting for the release with its own values"):
            wait_settled(client, release, seconds, tell=progress.say)
    except InferctlError as error:
        progress.say(f"clean-up: {error}")


def unsettled(client: Client, release: Release) -> str:
    """Say why a release is not at rest: every wanted pod Ready and of the newest version, and no other left."""
    try:
        deployment = client.get(Deployment, release.resource)
        pods = list(client.list(Pod, labels=dict(release.labels)))
    except (ApiError, HTTPError) as error:
        return f"the API does not answer: {error}"
    wanted = (deployment.spec.replicas if deployment.spec else None) or 0
    status = deployment.status
    generation = deployment.metadata.generation if deployment.metadata else None
    if status is None or status.observedGeneration != generation:
        return "the Deployment's controller has not looked at it yet"
    counts = (status.updatedReplicas or 0, status.readyReplicas or 0, status.replicas or 0)
    if any(count != wanted for count in counts):
        told = f"of {wanted} pods {counts[0]} are of the newest version, {counts[1]} ready, {counts[2]} in all"
        return "; ".join([told, *_refusals(status), *filter(None, map(_lack, pods))])
    ending = [pod.metadata.name for pod in pods if pod.metadata and pod.metadata.deletionTimestamp]
    if ending:
        return f"still ending: {', '.join(map(str, ending))}"
    return "" if len(pods) == wanted else f"{len(pods)} pods, wanted are {wanted}"


def hurry_leaving(client: Client, release: Release) -> None:
    """End a release's pods that are on their way out at once: where nobody sends, there is nothing to drain."""
    with suppress(ApiError, HTTPError):  # one that is gone by now, or an API that is asked again
        for pod in client.list(Pod, labels=dict(release.labels)):
            metadata = pod.metadata
            if metadata and metadata.name and (metadata.deletionGracePeriodSeconds or 0) > _HURRIED_SECONDS:
                client.delete(Pod, metadata.name, grace_period=_HURRIED_SECONDS)


def _refusals(status: DeploymentStatus) -> list[str]:
    """Why pods could not even be made: a quota, or what may not run in the namespace."""
    conditions = status.conditions or []
    return [_said(c.reason, c.message) for c in conditions if c.type == "ReplicaFailure" and c.status == "True"]


def _lack(pod: PodModel) -> str:
    """Name a pod that is not ready, and say why; empty if it is, or if it is ending."""
    if pod.metadata is None or pod.status is None or pod.metadata.deletionTimestamp:
        return ""
    conditions = {condition.type: condition for condition in pod.status.conditions or []}
    if (ready := conditions.get("Ready")) and ready.status == "True":
        return ""
    scheduled = conditions.get("PodScheduled")
    if scheduled and scheduled.status == "False":
        why = _said(scheduled.reason, scheduled.message)
    else:
        why = "; ".join(_containers(pod.status)) or _said(pod.status.reason or pod.status.phase, pod.status.message)
    return f"pod {pod.metadata.name}: {why}"


def _containers(status: PodStatus) -> list[str]:
    """What each container waits for; those that have done their part are left out."""
    every = [*(status.initContainerStatuses or []), *(status.containerStatuses or [])]
    return [f"{container.name} {doing}" for container in every if (doing := _doing(container))]


def _doing(container: ContainerStatus) -> str:
    state, before = container.state, container.lastState.terminated if container.lastState else None
    last = f" (it last ended with exit code {before.exitCode}, {before.reason})" if before else ""
    if state and state.waiting:
        return f"waits: {_said(state.waiting.reason, state.waiting.message)}{last}"
    if state and state.terminated:
        code = state.terminated.exitCode
        return f"ended with exit code {code}, {state.terminated.reason}" if code else ""
    return "" if container.ready else f"runs and is not ready{last}"


def _said(reason: str | None, message: str | None) -> str:
    """Both on one line, whatever a runtime wrote into its message."""
    return ": ".join(filter(None, (reason, " ".join((message or "").split())))) or "no reason is given"
