"""One run of a scenario, as the scenario sees it: verbs to act with and states to wait for."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from httpx2 import HTTPError
from lightkube import ApiError
from lightkube.resources.core_v1 import Pod

from inferctl.disruption.cordons import Cordons
from inferctl.disruption.settle import hurry_leaving, wait_settled
from inferctl.errors import CommandFailed, InferctlError, UsageError
from inferctl.paths import tool
from inferctl.process.command import run as run_program
from inferctl.release.helm import merged
from inferctl.release.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from inferctl.console import Progress
    from inferctl.disruption.load import LoadPod
    from inferctl.disruption.nodes import Nodes
    from inferctl.disruption.scenario import Control
    from inferctl.release.helm import Release
    from inferctl.report.recorder import Recorder
    from inferctl.report.state import State

#: Time that kubectl needs beyond what it was told to wait.
_MARGIN_SECONDS = 30.0
_FAULTS = "import sys,urllib.request as u;u.urlopen(u.Request('http://127.0.0.1:8000/mock/faults',sys.argv[1].encode(),method='PUT'))"


class Run:
    """What a scenario works with.

    Attributes:
        release: the release under test.
        values: what it is deployed with.
        recorder: the timeline.
        control: the control that this run is, or None.
        loads: the load pods, once they run.
    """

    def __init__(
        self,
        release: Release,
        values: Mapping[str, Any],
        recorder: Recorder,
        *,
        nodes: Nodes | None,
        control: Control | None,
        progress: Progress,
    ) -> None:
        """Begin with a release and the values that it is to have."""
        self.release = release
        self.values = dict(values)
        self.recorder = recorder
        self.control = control
        self.loads: list[LoadPod] = []
        self.aimed_at: list[str] = []
        #: Pushes a new image of the same engine, and gives its digest.
        self.new_image: Callable[[], str] = _no_image
        self._programs: list[subprocess.Popen[str]] = []
        self._nodes = nodes
        self._progress = progress
        self._api = release.target.client(release.namespace)
        self._cordons = Cordons(release)

    @property
    def nodes(self) -> Nodes:
        """The machines' side of the nodes.

        Raises:
            UsageError: this cluster does not give it.
        """
        if self._nodes is None:
            raise UsageError("this scenario acts on the nodes' machines; use --backend embedded")
        return self._nodes

    def act(self, text: str) -> None:
        """Write down what is about to be done."""
        self.recorder.record("action", text=text)
        self._progress.say(text)

    def upgrade(self, extra: Mapping[str, Any], *, wait: float | None = None) -> None:
        """Lay values over those that the release has, and have Helm bring it about."""
        self.values = merged(self.values, extra)
        self.release.upgrade(self.values, wait=wait)

    def replaced(self) -> dict[str, Any]:
        """Values that change nothing but make every pod a new one."""
        return {"engine": {"env": {"ROLLOUT": self.recorder.path.parent.name}}}

    @property
    def replace_seconds(self) -> float:
        """Within which the release's pods are replaced, by the time-outs in its values: to load, and to end."""
        return serving(self.release, self.values).replace_seconds

    def deploy(self, *, alone: bool) -> None:
        """Have Helm bring the values about, and wait until the release is at rest; load must not run yet.

        Args:
            alone: nobody else sends to the release, so that pods on their way out have nothing to drain.
        """
        self.release.upgrade(self.values)
        if alone:
            self._wait_at_rest(leaving=lambda: hurry_leaving(self._api, self.release))
        else:
            self._wait_at_rest()

    def wait_at_rest(self) -> None:
        """Wait until every wanted pod is Ready and of the newest version, and no other is left."""
        self._wait_at_rest()

    def _wait_at_rest(self, leaving: Callable[[], None] = lambda: None) -> None:
        seconds = self.replace_seconds
        with self.recorder.within(seconds):
            wait_settled(self._api, self.release, seconds, tell=self._progress.say, before_asking=leaving)

    def pods(self) -> dict[str, str]:
        """The release's pods that are not ending, and their nodes."""
        found = self._api.list(Pod, labels=dict(self.release.labels))
        return {
            str(pod.metadata.name): str(pod.spec.nodeName)
            for pod in found
            if pod.metadata and pod.spec and not pod.metadata.deletionTimestamp
        }

    def serving(self) -> list[str]:
        """The release's pods that are Ready."""
        return self.recorder.look(
            lambda state: sorted(p.name for p in state.pods.values() if p.serving and p.release == self.release.name)
        )

    def node_of(self, pod: str) -> str:
        """The node that a pod is on."""
        return self.recorder.look(lambda state: state.pods[pod].node)

    def on_node(self, node: str) -> list[str]:
        """The serving pods of a node."""
        return [pod for pod in self.serving() if self.node_of(pod) == node]

    def kill_engine(self, pod: str) -> None:
        """Send SIGKILL to a pod's engine."""
        self.act(f"SIGKILL to the engine of {pod}")
        self.nodes.kill_engine(self.uid(pod))

    def uid(self, pod: str) -> str:
        """A pod's unique identity, which its processes' control group is named after."""
        metadata = self._api.get(Pod, pod).metadata
        return str(metadata.uid if metadata else "")

    def set_faults(self, pod: str, plan: str) -> None:
        """Tell a mock engine which faults to have; empty for none."""
        self.act(f"faults of {pod}: {plan or 'none'}")
        self.kubectl("exec", pod, "--", "python3", "-c", _FAULTS, plan)

    def wait(self, missing: Callable[[State], str], seconds: float) -> None:
        """Wait for a state of the timeline."""
        self.recorder.wait(missing, seconds)

    def shows(self, state: State, symptoms: Container[str]) -> bool:
        """Whether a pod that the disruption was not aimed at waits for one of these reasons."""
        return any(pod.reason in symptoms for pod in state.pods.values() if pod.name not in self.aimed_at)

    def wait_requests(self, count: int, seconds: float = 120) -> None:
        """Wait until so many more requests have ended well."""
        goal = self.recorder.look(_ok) + count
        self.wait(
            lambda state: "" if _ok(state) >= goal else f"{goal - _ok(state)} more requests must end well", seconds
        )

    def wait_loss(self, seconds: float = 60) -> None:
        """Wait until the control has lost a request."""
        self.wait(lambda state: "" if state.total > _ok(state) else "the control has lost nothing yet", seconds)

    def wait_seconds(self, seconds: float) -> None:
        """Let an outage last for the time that defines it."""
        end = time.monotonic() + seconds
        self.wait(lambda _: "" if time.monotonic() >= end else "the outage goes on", seconds + 5)

    def kubectl(self, *arguments: str, seconds: float = 120) -> str:
        """Run kubectl in the release's namespace."""
        return run_program(self._command(arguments), deadline=seconds)

    def start_drain(self, node: str, *, seconds: float | None = None) -> subprocess.Popen[str]:
        """Begin to drain a node and go on; `finish_drain` waits for it, `end_programs` ends it if nobody did.

        It gives up after so many seconds, by default what the release's own time-outs allow. The node is cordoned
        first, by the same field as kubectl sets, so that the cordon can be marked as ours.
        """
        self.cordon(node)
        self.act(f"kubectl drain {node}")
        seconds = self.replace_seconds if seconds is None else seconds
        # The release's pods are evicted, and no others.
        words = self._command((
            "drain", node, f"--pod-selector={self.release.selector}", "--ignore-daemonsets",
            "--delete-emptydir-data", f"--timeout={seconds:.0f}s",
        ))  # fmt: skip
        # A drain that outlives this process goes on to hold the release's lock, until it evicts nothing any more.
        program = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=self.release.lock.files
        )
        self._programs.append(program)
        return program

    def finish_drain(self, drain: subprocess.Popen[str]) -> None:
        """Wait until a drain has ended, which it does by its own time-out.

        Raises:
            CommandFailed: it did not drain the node; the message is kubectl's.
        """
        try:
            said, _ = drain.communicate(timeout=self.replace_seconds + _MARGIN_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(f"kubectl drain: not done after {error.timeout:.0f} s") from error
        if drain.returncode:
            raise CommandFailed(f"kubectl drain: exit code {drain.returncode}\n{said.strip()}")

    def end_programs(self) -> None:
        """End what was started and not waited for, so that no drain goes on after the run."""
        for program in self._programs:
            if program.poll() is None:
                program.terminate()
                program.communicate()

    def drain(self, node: str, *, seconds: float | None = None) -> None:
        """Evict the release's pods from a node, and no others, as `kubectl drain` does.

        Raises:
            CommandFailed: they are not gone in time, or may not be evicted; the message is kubectl's.
        """
        self.finish_drain(self.start_drain(node, seconds=seconds))

    def cordon(self, *nodes: str) -> None:
        """Keep new pods off nodes; what a person has cordoned stays theirs."""
        self.act(f"kubectl cordon {' '.join(nodes)}")
        self._cordons.cordon(*nodes)

    def uncordon(self, *nodes: str) -> None:
        """Let pods onto nodes again; nothing happens to nodes that this release's runs have not cordoned."""
        if nodes := tuple(filter(None, nodes)):
            self.act(f"kubectl uncordon {' '.join(nodes)}")
            self._cordons.uncordon(*nodes)

    def workers(self) -> list[str]:
        """Nodes that engines may run on: Ready and without a taint."""
        listed = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return [node["metadata"]["name"] for node in listed if not node["spec"].get("taints")]

    def show(self, *kinds: str) -> None:
        """Print what kubectl says of the release's objects."""
        for kind in kinds:
            chosen = () if kind == "nodes" else (f"--selector={self.release.selector}",)
            wide = () if kind == "pdb" else ("-o", "wide")
            try:
                said = self.kubectl("get", kind, *chosen, *wide)
            except CommandFailed as error:
                said = str(error)
            for line in said.splitlines():
                self._progress.say(f"  {line}")

    def finish_long_streams(self) -> None:
        """Send no new long answers: those that were at risk go on, and the run need not wait for others."""
        long = [load for load in self.loads if load.load.tokens > _SHORT_ENOUGH]
        with ThreadPoolExecutor(len(long) or 1) as pool:
            list(pool.map(lambda load: load.stop(), long))

    def quietly(self, undo: Callable[[], object]) -> None:
        """Undo something in a clean-up: what fails is told, and the clean-up goes on."""
        try:
            undo()
        except (InferctlError, ApiError, HTTPError) as error:
            self._progress.say(f"clean-up: {error}")

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        options = (*self.release.target.kubectl_options, f"--namespace={self.release.namespace}")
        return [str(tool("kubectl")), *options, *arguments]


#: Answers of at most so many tokens need not be waited for.
_SHORT_ENOUGH = 100


def _ok(state: State) -> int:
    return sum(counts["ok"] for counts in state.outcomes.values())


def _no_image() -> str:
    raise UsageError("this run cannot push an image")
