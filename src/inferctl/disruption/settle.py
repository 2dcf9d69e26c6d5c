"""When a release has come to rest: what its Deployment and its pods still lack."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

if TYPE_CHECKING:
    from lightkube import Client

    from inferctl.release.helm import Release

_HURRIED_SECONDS = 1


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
        return f"of {wanted} pods {counts[0]} are of the newest version, {counts[1]} ready, {counts[2]} in all"
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
