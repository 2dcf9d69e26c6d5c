"""What the cluster says while a run goes on: pods, the Service's endpoints, nodes and warnings.

Each kind is listed and then watched from there; when the API server is away, that is done again as soon as it
is back, and what went in between is noticed by its absence.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.resources.core_v1 import Event, Node
from lightkube.resources.core_v1 import Pod as PodResource
from lightkube.resources.discovery_v1 import EndpointSlice

from inferctl.disruption.podlog import follow
from inferctl.release.helm import CHART_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lightkube import Client
    from lightkube.operators import Operator

    from inferctl.release.helm import Release
    from inferctl.report.recorder import Recorder

    _Labels = dict[str, str | Operator[Any] | Iterable[Any] | None] | None

_AGAIN_SECONDS = 0.2
#: The chart's name for the container that serves.
_ENGINE = "engine"
_OPEN = re.compile(r"SIGTERM: (\d+)")


class Watch:
    """Watches a release's namespace for as long as the process lives; each run attaches its recorder."""

    def __init__(self, release: Release) -> None:
        """Begin to watch in threads of their own."""
        self._release = release
        self._recorder: Recorder | None = None
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        self._listed: set[str] = set()
        self._complete = threading.Event()
        self._logs: set[str] = set()
        self._exits: set[str] = set()
        pods: _Labels = {"app.kubernetes.io/name": CHART_NAME}
        service: _Labels = {"kubernetes.io/service-name": release.resource}
        kinds: list[tuple[type[Any], _Labels]] = [
            (PodResource, pods), (EndpointSlice, service), (Node, None), (Event, None),
        ]  # fmt: skip
        # Before the threads, which look at it as soon as they run.
        self._wanted = {kind.__name__ for kind, _ in kinds}
        for kind, labels in kinds:
            threading.Thread(target=self._follow, args=(kind, labels), daemon=True, name=kind.__name__).start()

    def attach(self, recorder: Recorder) -> None:
        """Report to this recorder from now on, beginning with how things are."""
        self._complete.wait(30)
        with self._lock:
            self._recorder = recorder
            for fields in self._known.values():
                recorder.record(**fields)
            if not any(kind == EndpointSlice.__name__ for kind, _ in self._known):
                recorder.record("slice", ready=[], terminating=[])

    def detach(self) -> None:
        """Report to nobody."""
        with self._lock:
            self._recorder = None

    def _follow(self, kind: type[Any], labels: _Labels) -> None:
        client = self._release.target.client(self._release.namespace)
        while True:
            try:
                listing = client.list(kind, labels=labels)
                present = list(listing)
                self._reconcile(kind, present)
                for change, thing in client.watch(kind, labels=labels, resource_version=listing.resourceVersion):
                    self._take(kind, thing, gone=change == "DELETED")
            except (ApiError, HTTPError):
                time.sleep(_AGAIN_SECONDS)

    def _reconcile(self, kind: type[Any], present: list[Any]) -> None:
        names = {thing.metadata.name for thing in present}
        with self._lock:
            missing = [(key, fields) for key, fields in self._known.items() if key[0] == kind.__name__]
            for key, fields in missing:
                if key[1] not in names:
                    self._forget(key, fields)
        for thing in present:
            # Warnings from before the first listing are history, as are exits.
            if kind is not Event or kind.__name__ in self._listed:
                self._take(kind, thing, gone=False)
        with self._lock:
            self._listed.add(kind.__name__)
            if self._wanted <= self._listed:
                self._complete.set()

    def _take(self, kind: type[Any], thing: Any, *, gone: bool) -> None:  # noqa: ANN401 - one of four kinds
        key = (kind.__name__, thing.metadata.name)
        if kind is Event:
            self._warn(thing)
            return
        fields = _DESCRIBE[kind](thing)
        with self._lock:
            if kind is PodResource:
                self._exited(thing)
            if gone:
                self._forget(key, fields)
            elif self._known.get(key) != fields:
                self._known[key] = fields
                self._report(fields)
        if kind is PodResource and fields["pod"] not in self._logs and fields["state"] in {"Running", "Ready"}:
            self._logs.add(fields["pod"])
            threading.Thread(target=self._listen, args=(fields["pod"],), daemon=True).start()

    def _forget(self, key: tuple[str, str], fields: dict[str, Any]) -> None:
        self._known.pop(key, None)
        if fields["kind"] == "pod":
            self._report({**fields, "state": "Gone"})
        elif fields["kind"] == "slice":
            self._report({**fields, "ready": [], "terminating": []})
        else:
            self._report({**fields, "state": "Gone"})

    def _exited(self, pod: Any) -> None:  # noqa: ANN401 - a Pod
        """Report the last end of its engine's container, once."""
        if (fields := _describe_exit(pod)) is None:
            return
        container = fields.pop("container")
        new = container not in self._exits
        self._exits.add(container)
        if new and PodResource.__name__ in self._listed:
            self._report(fields)

    def _warn(self, event: Any) -> None:  # noqa: ANN401 - an Event
        if event.type == "Warning" or event.reason in {"Killing", "NodeNotReady", "TaintManagerEviction"}:
            about = f"{event.involvedObject.kind}/{event.involvedObject.name}"
            with self._lock:
                self._report({"kind": "event", "reason": event.reason, "object": about, "message": event.message})

    def _report(self, fields: dict[str, Any]) -> None:
        if self._recorder is not None:
            self._recorder.record(**fields)

    def _listen(self, pod: str) -> None:
        """Follow an engine's log for the one line that says when SIGTERM came."""
        client: Client = self._release.target.client(self._release.namespace)
        for _, line in follow(client, pod, self._release.namespace, stopped=lambda: False):
            if found := _OPEN.search(line):
                with self._lock:
                    self._report({"kind": "sigterm", "pod": pod, "open": int(found.group(1))})


def _describe_pod(pod: Any) -> dict[str, Any]:  # noqa: ANN401 - a Pod
    statuses = pod.status.containerStatuses or []
    ready = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or [])
    waiting = [s.state.waiting.reason for s in statuses if s.state and s.state.waiting]
    ended = [s.lastState.terminated.reason for s in statuses if s.lastState and s.lastState.terminated]
    if pod.metadata.deletionTimestamp:
        state = "Terminating"
    elif ready:
        state = "Ready"
    elif any(s.state and s.state.running for s in statuses):
        was = any(s.started for s in statuses)
        state = "Unready" if was else "Running"
    else:
        state = "Pending"
    return {
        "kind": "pod",
        "pod": pod.metadata.name,
        "release": pod.metadata.labels.get("app.kubernetes.io/instance", ""),
        "node": pod.spec.nodeName or "",
        "state": state,
        "restarts": sum(s.restartCount for s in statuses),
        "reason": (waiting or ended or [""])[0] or "",
    }


def _describe_exit(pod: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a Pod
    """The last end of its engine's container; None if it has not ended yet."""
    for status in pod.status.containerStatuses or []:
        for state in (status.state, status.lastState):
            if status.name == _ENGINE and state and (ended := state.terminated) and ended.finishedAt:
                return {
                    "kind": "exit",
                    "pod": pod.metadata.name,
                    "finished": int(ended.finishedAt.timestamp()),
                    "code": ended.exitCode,
                    "reason": ended.reason or "",
                    "container": ended.containerID or f"{pod.metadata.uid} {status.restartCount}",
                }
    return None


def _describe_slice(piece: Any) -> dict[str, Any]:  # noqa: ANN401 - an EndpointSlice
    def names(condition: str) -> list[str]:
        return sorted(
            e.targetRef.name
            for e in piece.endpoints or []
            if e.targetRef and e.conditions and getattr(e.conditions, condition)
        )

    return {"kind": "slice", "ready": names("ready"), "terminating": names("terminating")}


def _describe_node(node: Any) -> dict[str, Any]:  # noqa: ANN401 - a Node
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or [])
    state = "Ready" if ready else "NotReady"
    return {"kind": "node", "node": node.metadata.name, "state": state, "cordoned": bool(node.spec.unschedulable)}


_DESCRIBE: dict[type[Any], Callable[[Any], dict[str, Any]]] = {
    PodResource: _describe_pod,
    EndpointSlice: _describe_slice,
    Node: _describe_node,
}
