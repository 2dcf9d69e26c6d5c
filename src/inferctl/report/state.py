"""The state of a run as its timeline tells it: requests, pods, and what is open on which pod.

The same class follows a run while it goes on and rebuilds one from its file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inferctl.report.timeline import Record

OK = "ok"
#: The kubelet tells when a container ended in whole seconds, rounded down.
_KUBELET_SECONDS = 1.0


@dataclass(slots=True)
class Request:
    """One request. Times are Unix seconds; None where the moment never came.

    Attributes:
        client: the load that sent it.
        number: unique within that load.
        pod: the pod that answered; empty where none did.
        outcome: ``ok`` or the kind of failure; empty while it is open.
        chunks: content chunks that arrived.
        reused: it was sent on a connection that had carried another.
        detail: what the outcome was decided from.
        last_bytes: the end of what came of an answer that was not ok, framing included.
    """

    client: str
    number: int
    sent: float | None = None
    first_token: float | None = None
    end: float | None = None
    pod: str = ""
    outcome: str = ""
    http: int = 0
    chunks: int = 0
    ttft: float | None = None
    e2e: float | None = None
    reused: bool = False
    detail: str = ""
    last_bytes: str = ""


@dataclass(slots=True)
class Pod:
    """One pod of the releases under test.

    Attributes:
        states: when it entered each state: Pending, Running, Ready, Unready, Terminating, Gone.
        deleted: when it was first seen to be told to stop.
        sigterm: when its engine said that it had the signal.
        exits: when its engine's container ended, at most 1 s late; more than once if it was started again.
        gone: when it was gone.
        restarts: of its container.
    """

    name: str
    release: str = ""
    node: str = ""
    states: list[tuple[float, str]] = field(default_factory=list)
    deleted: float | None = None
    sigterm: float | None = None
    exits: list[float] = field(default_factory=list)
    gone: float | None = None
    restarts: int = 0
    reason: str = ""

    @property
    def state(self) -> str:
        """The last state."""
        return self.states[-1][1] if self.states else "Pending"

    @property
    def serving(self) -> bool:
        """Ready, and not told to stop."""
        return self.state == "Ready"


class State:
    """Applies records one after another.

    Attributes:
        requests: every request by load and number.
        pods: every pod by name, gone ones too.
        outcomes: how many requests ended how, by load.
        begun: requests past their first token and not ended, by pod.
        ready: pods that the Service sends new connections to.
        facts: the last record of each kind that occurs once.
        notes: our own actions and the cluster's warnings, in order.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.requests: dict[tuple[str, int], Request] = {}
        self.pods: dict[str, Pod] = {}
        self.outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.begun: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
        self.open = 0
        self.ready: tuple[str, ...] = ()
        self.facts: dict[str, Record] = {}
        self.summaries: dict[str, Record] = {}
        self.clients: dict[str, Record] = {}
        self.notes: list[Record] = []

    @property
    def total(self) -> int:
        """Requests that have ended."""
        return sum(sum(counts.values()) for counts in self.outcomes.values())

    def apply(self, record: Record) -> None:
        """Take one record; kinds that are unknown are left alone."""
        match record["kind"]:
            case "sent" | "first_token" | "end":
                self._request(record)
            case "pod":
                self._pod(record)
            case "sigterm" | "exit":
                self._engine(record)
            case "slice":
                self.ready = tuple(record["ready"])
            case "client":
                self.clients[record["client"]] = record
            case "summary":
                self.summaries[record["client"]] = record
            case "action" | "event" | "node":
                self.notes.append(record)
            case "run" | "disrupt" | "settled" | "verdict":
                self.facts[record["kind"]] = record
                self.notes.append(record)

    def _request(self, record: Record) -> None:
        key = (record["client"], record["id"])
        request = self.requests.get(key)
        if request is None:
            request = self.requests[key] = Request(*key)
        match record["kind"]:
            case "sent":
                request.sent = record["t"]
                self.open += 1
            case "first_token":
                request.first_token, request.pod = record["t"], record["pod"]
                self.begun[request.pod].add(key)
            case "end":
                if request.sent is not None:
                    self.open -= 1
                self.begun[request.pod].discard(key)
                request.end = record["t"]
                request.pod = record["pod"] or request.pod
                request.outcome, request.detail = record["outcome"], record["detail"]
                request.last_bytes = record.get("last_bytes", "")
                request.http, request.chunks, request.reused = record["http"], record["chunks"], record["reused"]
                request.ttft, request.e2e = record["ttft"], record["e2e"]
                self.outcomes[request.client][request.outcome] += 1

    def _pod(self, record: Record) -> None:
        pod = self.pods.setdefault(record["pod"], Pod(record["pod"]))
        pod.release, pod.node = record["release"], record["node"] or pod.node
        pod.restarts, pod.reason = record["restarts"], record["reason"]
        state = record["state"]
        if not pod.states or pod.state != state:
            pod.states.append((record["t"], state))
        if state == "Terminating" and pod.deleted is None:
            pod.deleted = record["t"]
        if state == "Gone":
            pod.gone = record["t"]
            pod.deleted = pod.deleted or record["t"]

    def _engine(self, record: Record) -> None:
        if (pod := self.pods.get(record["pod"])) is None:
            return
        if record["kind"] == "exit":
            # The latest moment that the kubelet's word and ours leave: no answer shall seem to outlive it.
            ended = min(record["t"], record["finished"] + _KUBELET_SECONDS)
            pod.exits.append(max(ended, pod.sigterm or ended))
        elif pod.sigterm is None:
            pod.sigterm = record["t"]
