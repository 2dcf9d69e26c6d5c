"""A session of runs on one cluster: its own namespace, one release, one watch, and the way every run goes."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from httpx2 import HTTPError
from lightkube import ApiError

from inferctl.disruption import variants
from inferctl.disruption.cordons import Cordons
from inferctl.disruption.load import LoadPod
from inferctl.disruption.nodes import Nodes
from inferctl.disruption.result import Result
from inferctl.disruption.run import Run
from inferctl.disruption.scenario import LONG_TOKENS, LONGER_TOKENS
from inferctl.disruption.verdict import Outcome, Verdict, judge
from inferctl.disruption.watch import Watch
from inferctl.errors import CommandFailed, EnvironmentProblem, InferctlError, UsageError
from inferctl.paths import RUNS, tool
from inferctl.process.command import run as run_program
from inferctl.release.helm import Release, merged
from inferctl.release.serving import serving
from inferctl.report.findings import find, unnamed
from inferctl.report.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inferctl.cluster.target import Target
    from inferctl.console import Progress
    from inferctl.disruption.scenario import Control, Scenario
    from inferctl.report.findings import Findings
    from inferctl.report.state import State

NAMESPACE = "inferctl-test"
_OWNER = {"app.kubernetes.io/managed-by": "inferctl"}
_AT_RISK_SECONDS = 90.0
_END_SECONDS = 120.0
#: Loads fast, so that a run takes a minute; its answers may be long. What waits for a load waits no longer than it may
#: take, which on a busy machine is far more than the delay.
_VALUES: dict[str, Any] = {
    "engine": {"env": {"STARTUP_DELAY_SECONDS": 2, "ANSWER_TOKENS": 4096}, "loadTimeoutSeconds": 120},
    "probes": {"periodSeconds": 2},
    "resources": {"requests": {"cpu": "200m"}},
}


class Session:
    """Runs scenarios one after another."""

    def __init__(
        self,
        target: Target,
        *,
        repository: str,
        digest: str,
        progress: Progress,
        nodes_allowed: str = "",
        observe: Callable[[Recorder], Callable[[], None]] | None = None,
        release: Release | None = None,
        base: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a cluster.

        Args:
            target: the cluster.
            repository: the engine's image, as nodes pull it.
            digest: and which one.
            progress: told of each step.
            nodes_allowed: the context on whose nodes scenarios may act; only an existing cluster needs this word.
            observe: is given each run's recorder, and returns what to call when the run has ended.
            release: a release that exists; by default one of the session's own, in its own namespace.
            base: the values that every run lays its own over; by default those of the mock engine.
        """
        self.target = target
        self._repository, self._digest = repository, digest
        self._progress = progress
        self._nodes = Nodes.of(target)
        self._nodes_allowed = nodes_allowed
        self._observe = observe
        self._own_namespace = release is None
        self.release = release or Release(target, "model", NAMESPACE)
        self._base = base
        self._watch: Watch | None = None
        self._held = ExitStack()

    def refusal(self, scenario: type[Scenario]) -> str:
        """Why a scenario cannot run here; empty if it can."""
        if scenario.own_nodes and self._nodes is None:
            return "it acts on the nodes' machines: use --backend embedded"
        if scenario.on_nodes and self.target.backend == "existing" and self._nodes_allowed != self.target.context:
            return (
                f"it acts on the nodes of context {self.target.context!r}; "
                f"if that is meant, say so: --allow-nodes {self.target.context}"
            )
        return ""

    def prepare(self) -> None:
        """Make the namespace, and hold the release's lock until `close`.

        Raises:
            UsageError: there is one of this name that is not ours.
            EnvironmentProblem: another process changes the release; the message names it.
        """
        self._held.enter_context(self.release.changing(self._progress.say))
        if self._own_namespace:
            self._make_namespace()
        Cordons(self.release).sweep(self._progress.say)
        LoadPod.sweep(self.release)
        if self._watch is None:
            self._watch = Watch(self.release)

    def close(self) -> None:
        """Remove the session's own namespace and what is in it, and let others change the release."""
        with self._held:
            if self._own_namespace:
                with suppress(CommandFailed):
                    self._kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")

    def run(self, kind: type[Scenario], control: Control | None = None) -> Result:
        """Run a scenario, or one of its controls, from arrangement to verdict.

        What goes wrong on the way is the verdict's reason.

        Raises:
            UsageError: it cannot run on this cluster.
        """
        if reason := self.refusal(kind):
            raise UsageError(f"scenario {kind.name!r}: {reason}")
        if self._watch is None:
            self.prepare()
        began = time.monotonic()
        name = f"{kind.name}/{control.name}" if control else kind.name
        folder = RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{name.replace('/', '-')}"
        recorder = Recorder(folder / "timeline.jsonl")
        recorder.record(
            "run", scenario=name, promise=kind.promise.name, text=kind.summary, environment=self._environment()
        )
        values = self._values(kind, control)
        run = Run(self.release, values, recorder, nodes=self._nodes, control=control, progress=self._progress)
        run.new_image = lambda: variants.labelled(self.target, self._name, self._digest, folder.name)
        ended = self._observe(recorder) if self._observe else None
        try:
            verdict, found = self._go(kind(), run)
        finally:
            if ended:
                ended()
            recorder.close()
        return Result(name, verdict, found, time.monotonic() - began, folder)

    def _go(self, scenario: Scenario, run: Run) -> tuple[Verdict, Findings]:
        recorder, progress = run.recorder, self._progress
        trouble = ""
        try:
            with progress.step("deploying the release, waiting until it is at rest"):
                # A release that was there may have clients of its own, whose answers are finished as ever.
                run.deploy(alone=self._own_namespace)
            scenario.arrange(run)
            self._attach(recorder)
            run.wait(lambda _: "" if run.serving() else "no pod serves", run.replace_seconds)
            with progress.step("starting load"):
                self._start_loads(scenario, run)
            self._wait_at_risk(scenario, run)
            recorder.record("disrupt", text=scenario.summary, pods=run.aimed_at, retires=scenario.retires)
            progress.say(f"disruption: {scenario.summary}")
            scenario.disrupt(run)
            run.finish_long_streams()
            with progress.step("waiting until it has settled"):
                scenario.settled(run)
            recorder.record("settled", text="settled")
            with progress.step("ending load"):
                self._end_loads(run)
        except (InferctlError, ApiError, HTTPError) as error:
            # The run came to no end, and other scenarios need not suffer: what it counted may still show loss.
            trouble = str(error)
            progress.say(trouble)
        finally:
            if self._watch:
                self._watch.detach()
            run.end_programs()
            run.quietly(self.release.recover)
            scenario.restore(run)
            for load in run.loads:
                run.quietly(load.remove)
        return self._judge(scenario, run, trouble)

    def _judge(self, scenario: Scenario, run: Run, trouble: str) -> tuple[Verdict, Findings]:
        found = find(run.recorder.state)
        loads = [load.load for load in run.loads]
        # A release may have a shorter sleep than the chart's own: then no connection is young enough.
        sleep = serving(self.release, run.values).pre_stop_seconds
        young = frozenset(load.name for load in loads if load.max_age and load.max_age < sleep)
        verdict = judge(
            found,
            scenario.promise,
            control=run.control is not None,
            enough=scenario.enough,
            restored_within=scenario.restored_within,
            kept=sum(load.streams for load in loads if load.keepalive and load.name not in young),
            young=young,
        )
        verdict = verdict.unless_cut_short(trouble, control=run.control is not None)
        if run.control is None and verdict.outcome is Outcome.PROVEN:
            complaints = scenario.expect(run.recorder.state, found)
            verdict = Verdict(Outcome.LOSS, "; ".join(complaints)) if complaints else verdict
        run.recorder.record("verdict", outcome=verdict.outcome.value, reason=verdict.reason)
        return verdict, found

    def _attach(self, recorder: Recorder) -> None:
        if self._watch is None:
            raise EnvironmentProblem("the session is not prepared")
        self._watch.attach(recorder)

    def _start_loads(self, scenario: Scenario, run: Run) -> None:
        how = serving(self.release, run.values)
        image = f"{self._repository}@{self._digest}"
        avoid = scenario.avoid(run)
        longer = run.control is not None and run.control.longer_answers
        run.loads = [
            LoadPod(
                replace(load, tokens=LONGER_TOKENS) if longer and load.tokens == LONG_TOKENS else load,
                self.release, run.recorder, image=image, url=how.url, model=how.model,
            )
            for load in scenario.loads
        ]  # fmt: skip
        with ThreadPoolExecutor(len(run.loads)) as pool:
            list(pool.map(lambda load: load.start(avoid=avoid), run.loads))
        for load in run.loads:
            load.wait_running()

    @staticmethod
    def _wait_at_risk(scenario: Scenario, run: Run) -> None:
        run.aimed_at = scenario.struck(run)
        long = {load.load.name for load in run.loads if load.load.tokens >= LONG_TOKENS}

        def missing(state: State) -> str:
            streams = [key for pod in run.aimed_at for key in state.begun[pod]]
            if len(streams) < scenario.enough:
                return f"{len(streams)} streams are past their first token on {run.aimed_at}, wanted {scenario.enough}"
            # Kept connections may all have gone to other pods; a long answer comes to every pod sooner or later.
            is_long = any(key[0] in long for key in streams)
            return "" if is_long else f"no long answer has begun on {run.aimed_at}"

        run.recorder.wait(missing, _AT_RISK_SECONDS, failed=lambda: run.recorder.look(unnamed))

    @staticmethod
    def _end_loads(run: Run) -> None:
        with ThreadPoolExecutor(len(run.loads)) as pool:
            list(pool.map(lambda load: load.stop(), run.loads))
            if run.control:
                # Its losses are counted by now; how answers on healthy pods end is of no interest.
                list(pool.map(lambda load: load.give_up(), run.loads))
        for load in run.loads:
            load.wait_ended(_END_SECONDS)

    def _values(self, kind: type[Scenario], control: Control | None) -> dict[str, Any]:
        digest = self._digest
        if control and control.swallow_sigterm:
            digest = variants.swallowing_sigterm(self.target, self._name, digest)
        image = {"image": {"repository": self._repository, "digest": digest}, "replicaCount": 2}
        values = merged(_VALUES if self._base is None else self._base, image)
        changes: list[Mapping[str, Any]] = [kind.values, control.values if control else {}]
        for change in changes:
            values = merged(values, change)
        return values

    @property
    def _name(self) -> str:
        return self._repository.rpartition("/")[2]

    def _make_namespace(self) -> None:
        labels = {**_OWNER, "pod-security.kubernetes.io/enforce": "restricted"}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        found = self._kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "json")
        metadata = json.loads(found)["metadata"] if found.strip() else {}
        if metadata and not _OWNER.items() <= metadata.get("labels", {}).items():
            raise UsageError(
                f"namespace {NAMESPACE!r} exists and is not inferctl's; remove it, or label it: "
                f"kubectl label namespace {NAMESPACE} app.kubernetes.io/managed-by=inferctl"
            )
        if "deletionTimestamp" in metadata:
            with self._progress.step("waiting until the namespace of an earlier session is gone"):
                self._kubectl("wait", "--for=delete", f"namespace/{NAMESPACE}", "--timeout=170s")
            metadata = {}
        if not metadata:
            self._kubectl("create", "--filename=-", stdin=json.dumps(manifest))

    def _environment(self) -> dict[str, str]:
        version = json.loads(self._kubectl("version", "-o", "json")).get("serverVersion", {}).get("gitVersion", "")
        return {"backend": self.target.backend, "kubernetes": version, "image": f"{self._name}@{self._digest}"}

    def _kubectl(self, *arguments: str, stdin: str = "") -> str:
        return run_program([tool("kubectl"), *self.target.kubectl_options, *arguments], stdin=stdin, deadline=180)
