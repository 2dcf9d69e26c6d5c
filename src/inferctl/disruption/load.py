"""Load as a pod: the load generator in the engine's image, its events on the timeline.

Load never comes through a port-forward: that stays with one pod and would report failures that no client of the
Service sees.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.models.core_v1 import PodStatus
from lightkube.resources.core_v1 import Pod

from inferctl.disruption.podlog import follow
from inferctl.errors import CommandFailed, ComponentFailed, DeadlineExceeded
from inferctl.paths import LOADTEST, tool
from inferctl.process.command import run
from inferctl.process.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inferctl.release.helm import Release
    from inferctl.report.recorder import Recorder

_OWNER, _LOAD = "inferctl.dev/load-of", "inferctl.dev/load"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_START_SECONDS = 60.0
_END_SECONDS = 10.0
#: A stream that is silent for so long is taken for lost. Above every pause of a healthy engine.
_STALL_SECONDS = 10.0
#: Counts need no fine clock, but a client as late as this could lose requests by its own fault: a connection may
#: take 5 s, and a pause of `_STALL_SECONDS` counts as a loss.
_LAG_LIMIT_SECONDS = 1.0
_EVENTS = frozenset({"sent", "first_token", "end"})


@dataclass(frozen=True)
class Load:
    """What one load pod sends.

    Attributes:
        name: tells it from others of the same run.
        streams: closed loops, each with one request at a time.
        tokens: length of each answer; with the mock engine's defaults 0.07 s + 0.03 s per further token.
        seconds: how long it sends, unless stopped earlier.
        keepalive: reuse connections.
        spread: seconds over which the streams begin.
        max_age: seconds after which a kept connection is not used again; None for ever.
    """

    name: str
    streams: int
    tokens: int = 20
    seconds: float = 900
    spread: float = 0.5
    keepalive: bool = False
    max_age: float | None = None

    def describe(self) -> str:
        """In a few words."""
        kept = "new connections"
        if self.keepalive:
            kept = f"kept at most {self.max_age:g} s" if self.max_age else "kept connections"
        return f"{self.streams} streams of {self.tokens} tokens, {kept}"


class LoadPod:
    """One load pod, from its start to its removal."""

    def __init__(
        self,
        load: Load,
        release: Release,
        recorder: Recorder,
        *,
        image: str,
        url: str,
        model: str,
        hear: Callable[[str], None] | None = None,
    ) -> None:
        """Describe the pod; nothing is made yet.

        Args:
            load: what it sends.
            release: whose Service it sends to, in whose namespace.
            recorder: where its events go.
            image: an image with Python, by digest.
            url: the Service's address as pods reach it.
            model: the model to ask for.
            hear: is given each line that it prints for people.
        """
        self.load = load
        # No two pods have one name: a kubelet that has not heard of the new one yet would give the log of the old one.
        self.name = f"{release.name}-load-{load.name}-{token_hex(3)}"
        self._release = release
        self._recorder = recorder
        self._client = release.target.client(release.namespace)
        self._image, self._url, self._model = image, url, model
        self._hear = hear or _ignore
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._told = False
        self._thread = threading.Thread(target=self._follow, daemon=True, name=self.name)

    def start(self, *, node: str = "", avoid: Sequence[str] = ()) -> None:
        """Make the pod and follow its log.

        Args:
            node: run it here; by default wherever it fits, on the control plane by preference.
            avoid: nodes that it must not run on, because they will be struck.
        """
        ours = {_OWNER: self._release.name, _LOAD: self.load.name}
        # What a killed run left of this load would go on sending.
        selector = ",".join(f"{key}={value}" for key, value in ours.items())
        self._kubectl("delete", "pod,configmap", f"--selector={selector}", "--now", "--timeout=60s")
        labels = {"app.kubernetes.io/managed-by": "inferctl", **ours}
        metadata = {"name": self.name, "namespace": self._release.namespace, "labels": labels}
        packed = {"load.pyz": base64.b64encode(_packed()).decode()}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": packed}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self._spec(node, avoid)}
        self._kubectl(
            "create", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [config, pod]})
        )
        load = self.load
        self._recorder.record(
            "client", client=load.name, streams=load.streams, tokens=load.tokens, keepalive=load.keepalive,
            max_age=load.max_age, text=load.describe(),
        )  # fmt: skip
        self._thread.start()

    def wait_running(self) -> None:
        """Wait for the first request.

        Raises:
            DeadlineExceeded: none was sent; the message says what the pod waits for.
        """
        self._recorder.wait(
            lambda state: "" if any(key[0] == self.load.name for key in state.requests) else self._waiting_for(),
            _START_SECONDS,
            failed=lambda: "it has ended" if self._ended.is_set() else "",
        )

    def stop(self) -> None:
        """Send nothing new; streams that have begun go on to their end."""
        # A second signal would not wait for open streams.
        if not self._told:
            self._told = True
            self._signal()

    def give_up(self) -> None:
        """After `stop`: do not wait for open streams either; they count as unfinished."""
        self._signal()

    def _signal(self) -> None:
        if not self.running:
            return
        code = "import os, signal; os.kill(1, signal.SIGTERM)"
        try:
            self._kubectl("exec", self.name, "--", "python3", "-c", code)
        except CommandFailed as error:
            # It may have ended by itself in this moment; its pod says so a little later.
            if not self._ends_within(_END_SECONDS):
                raise ComponentFailed(f"load {self.load.name!r} could not be stopped: {error}") from error

    def _ends_within(self, seconds: float) -> bool:
        def missing() -> str:
            if self._ended.is_set():
                return ""
            with suppress(ApiError, HTTPError):
                status = self._client.get(Pod, self.name).status
                if status and status.phase in {"Succeeded", "Failed"}:
                    return ""
            return f"pod {self.name} has not ended"

        try:
            wait_until(missing, seconds)
        except DeadlineExceeded:
            return False
        return True

    @property
    def running(self) -> bool:
        """Whether its log has not ended."""
        return not self._ended.is_set()

    def wait_ended(self, seconds: float) -> None:
        """Wait for its summary.

        Raises:
            DeadlineExceeded: it has none in time, or ended without one.
        """
        self._recorder.wait(
            lambda state: "" if self.load.name in state.summaries else f"load {self.load.name!r} has no summary",
            seconds,
            failed=lambda: "its pod ended or was removed" if self._ended.is_set() else "",
        )
        # What it prints for people comes after the summary.
        self._ended.wait(seconds)

    def remove(self) -> None:
        """Remove the pod and its ConfigMap at once; nothing happens if they are not there."""
        self._stopped.set()
        self._kubectl(
            "delete", "pod,configmap", self.name, "--ignore-not-found", "--now", "--wait=true", "--timeout=60s"
        )

    @staticmethod
    def sweep(release: Release) -> None:
        """Remove every load of a release that an earlier run could not remove."""
        options = (*release.target.kubectl_options, f"--namespace={release.namespace}")
        run([tool("kubectl"), *options, "delete", "pod,configmap", f"--selector={_OWNER}={release.name}", "--now"])

    def _kubectl(self, *arguments: str, stdin: str = "") -> str:
        options = (*self._release.target.kubectl_options, f"--namespace={self._release.namespace}")
        return run([tool("kubectl"), *options, *arguments], stdin=stdin, deadline=90)

    def _waiting_for(self) -> str:
        try:
            status = self._client.get(Pod, self.name).status or PodStatus()
        except (ApiError, HTTPError) as error:
            return f"load {self.load.name!r} has sent nothing: {error}"
        reasons = [c.state.waiting.reason for c in status.containerStatuses or [] if c.state and c.state.waiting]
        said = [c.message for c in status.conditions or [] if c.message]
        return f"load {self.load.name!r} has sent nothing: pod {self.name} is {status.phase} {reasons} {said}"

    def _spec(self, node: str, avoid: Sequence[str]) -> dict[str, Any]:
        field = "metadata.name"
        where = [{"key": field, "operator": "In", "values": [node]}] if node else []
        where += [{"key": field, "operator": "NotIn", "values": [name]} for name in avoid]
        prefer = {"matchExpressions": [{"key": _CONTROL_PLANE, "operator": "Exists"}]}
        affinity: dict[str, Any] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": prefer}]
        }
        if where:
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": where}]}
        return {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # A lost DNS packet must not look like a request that the service refused: ask again after 1 s, not after 5,
            # and not for two records from one port, which connection tracking may drop.
            "dnsConfig": {"options": [{"name": "single-request-reopen"}, {"name": "timeout", "value": "1"}]},
            "affinity": {"nodeAffinity": affinity},
            "tolerations": [{"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "load",
                    "image": self._image,
                    "command": ["python3", "/load/load.pyz"],
                    # Without a share of its own, a busy node would make the client late and its word worthless.
                    "resources": {"requests": {"cpu": "200m"}},
                    "env": [{"name": name, "value": value} for name, value in self._environment().items()],
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                    "volumeMounts": [{"name": "load", "mountPath": "/load", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "load", "configMap": {"name": self.name}}],
        }

    def _environment(self) -> dict[str, str]:
        load = self.load
        chosen = {
            "TARGET": self._url,
            "DURATION_SECONDS": f"{load.seconds:g}",
            "CONCURRENCY": str(load.streams),
            "MODEL_NAME": self._model,
            "MAX_TOKENS": str(load.tokens),
            "START_SPREAD_SECONDS": f"{load.spread:g}",
            "CONNECTION": "keepalive" if load.keepalive else "new",
            "STALL_SECONDS": f"{_STALL_SECONDS:g}",
            "LAG_LIMIT_SECONDS": f"{_LAG_LIMIT_SECONDS:g}",
            "END_GRACE_SECONDS": f"{60 + load.tokens / 10:g}",
            "EVENTS_FILE": "-",
            "PYTHONUNBUFFERED": "1",
        }
        if load.max_age:
            chosen["CONNECTION_MAX_AGE_SECONDS"] = f"{load.max_age:g}"
        return chosen

    def _follow(self) -> None:
        namespace = self._release.namespace
        try:
            for _, line in follow(self._client, self.name, namespace, stopped=self._stopped.is_set):
                if not line.startswith("{"):
                    self._hear(line)
                    continue
                try:
                    event = json.loads(line)
                except ValueError:
                    # Half a line, which comes again whole; if it does not, the load's own count tells.
                    continue
                self._event(event)
        finally:
            self._ended.set()

    def _event(self, event: dict[str, Any]) -> None:
        kind, at = event.pop("kind"), event.pop("t")
        if kind in _EVENTS:
            self._recorder.record(kind, at, client=self.load.name, **event)
        elif kind == "summary":
            self._recorder.record(
                "summary", at, client=self.load.name, total=event["total"], outcomes=event["outcomes"],
                latency=event["latency"], overloaded=event["client"]["overloaded"], lag=event["client"]["lag"],
                exit_code=event["exit_code"],
            )  # fmt: skip


def _packed() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "load.pyz")
        run([sys.executable, LOADTEST / "pack.py", path])
        return path.read_bytes()


def _ignore(_line: str) -> None:
    pass
