"""A container's log as it grows, each line once, however often the way to it breaks."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.resources.core_v1 import Pod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lightkube import Client

_AGAIN_SECONDS = 0.3
_NOT_FOUND = 404


def follow(client: Client, pod: str, namespace: str, *, stopped: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """Give a log's lines with their time stamps until the container has ended, the pod is gone, or `stopped`.

    The API server, the kubelet or the network may fail in between: lines already given are recognised by their
    time stamp, to the nanosecond, and their text, and are not given again. Order says nothing, as a node's clock may be
    set back. A line in which the way broke is given as far as it came, and later whole.

    Args:
        client: the cluster.
        pod: the pod's name.
        namespace: the pod's namespace.
        stopped: whether nobody wants more lines.
    """
    given: set[int] = set()
    while not stopped():
        with suppress(HTTPError, ApiError):
            phase = _phase(client, pod, namespace)
            if not phase:
                return
            # The kubelet says 404 of a pod that it has not seen yet: only the API server knows what is gone.
            ended = phase in {"Succeeded", "Failed"}
            for line in client.log(pod, namespace=namespace, follow=not ended, timestamps=True, newlines=False):
                if (known := hash(line)) not in given:
                    given.add(known)
                    stamp, _, text = line.partition(" ")
                    yield stamp, text
                if stopped():
                    return
            if ended:
                return
        time.sleep(_AGAIN_SECONDS)


def _phase(client: Client, name: str, namespace: str) -> str:
    """The pod's phase; empty when there is no such pod."""
    try:
        status = client.get(Pod, name, namespace=namespace).status
    except ApiError as error:
        if error.status.code == _NOT_FOUND:
            return ""
        raise
    return (status.phase if status else None) or "Unknown"
