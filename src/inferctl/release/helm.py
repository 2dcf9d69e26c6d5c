"""One Helm release of the chart, from install to uninstall.

Helm runs in a session of its own: Ctrl-C reaches it only through here, as the signal after which it writes down
that the release has failed. Killed outright it would leave the release locked (`pending-upgrade`).

Whoever changes a release holds its lock, and so does every helm that was started meanwhile: a release that is pending
while its lock is free is worked on by nobody that was started here.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import yaml

from inferctl.errors import CommandFailed, EnvironmentProblem
from inferctl.paths import CHART, lock_folder, tool
from inferctl.process.command import tail
from inferctl.process.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inferctl.cluster.target import Target

CHART_NAME = "inference-service"
#: How long helm may take to write its last word after a signal.
_CANCEL_SECONDS = 30.0
#: Time that helm needs beyond what it was told to wait.
_MARGIN_SECONDS = 60.0
_NOT_FOUND = "release: not found"
#: How the description of a revision begins that a test has made for itself; then comes the revision to go back to.
_LENT = "values of an inferctl test; the release's own are those of revision "


class Release:
    """A release by name; it need not exist yet.

    Attributes:
        target: the cluster.
        name: the release's name.
        namespace: the namespace it is in.
        lock: held by whoever changes it.
    """

    def __init__(self, target: Target, name: str, namespace: str = "default") -> None:
        """Name a release; nothing is asked of the cluster."""
        self.target = target
        self.name = name
        self.namespace = namespace
        what = f"release {name!r} in namespace {namespace!r} of context {target.context!r}"
        # A context's name may hold what a file's name may not.
        file = hashlib.sha256(f"{target.context}\0{namespace}\0{name}".encode()).hexdigest()[:16]
        self.lock = Lock(lock_folder() / file, what, "let INFERCTL_STATE name a folder that can be")
        self._what = what
        self._unfinished = False
        self._own = 0

    @contextmanager
    def changing(self, say: Callable[[str], object]) -> Iterator[None]:
        """Hold the release's lock during the block, and first put right what an inferctl that was killed left of it.

        Args:
            say: is told what was put right.

        Raises:
            EnvironmentProblem: another process changes it; the message names the process.
            CommandFailed: helm could not put it right.
        """
        with self.lock.held():
            before = self.status()
            self.recover()
            if before.startswith("pending"):
                say(f"release {self.name!r} was left {before} by an inferctl that was killed: that is undone")
            if own := self._lent_by():
                self.rollback(own)
                say(f"release {self.name!r} had values of a test that was killed: it has those of revision {own} again")
            yield

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Have every upgrade in the block say that its values are not the release's own, which are those of now.

        A test that is killed cannot give them back: whoever changes the release next does, by what the revision says.
        """
        self._own = self.last_deployed()
        try:
            yield
        finally:
            self._own = 0

    @property
    def resource(self) -> str:
        """The name of the release's Deployment, Service and PodDisruptionBudget."""
        return f"{self.name}-{CHART_NAME}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels that the release's pods have and no others."""
        return {"app.kubernetes.io/name": CHART_NAME, "app.kubernetes.io/instance": self.name}

    @property
    def selector(self) -> str:
        """The same labels as kubectl writes them."""
        return ",".join(f"{key}={value}" for key, value in self.labels.items())

    @property
    def missing(self) -> str:
        """What a person is told where there is no such release: what is lacking, and how it comes to be."""
        return (
            f"release {self.name!r} is not deployed in namespace {self.namespace!r} of context "
            f"{self.target.context!r}; install your own with helm, or the mock engine under this name with: "
            f"inferctl deploy --release {self.name}"
        )

    def status(self) -> str:
        """Helm's word for the release: ``deployed``, ``failed``, ``pending-upgrade``, ...; empty if there is none."""
        record = self._record()
        return str(record["status"]) if record else ""

    def revision(self) -> int:
        """The number of the newest revision; 0 if there is none."""
        record = self._record()
        return int(record["revision"]) if record else 0

    def values(self) -> dict[str, Any]:
        """The values that the newest revision was given, without the chart's defaults."""
        given: dict[str, Any] = json.loads(self._helm("get", "values", self.name, "-o", "json")) or {}
        return given

    def upgrade(self, values: Mapping[str, Any], *, wait: float | None = None) -> None:
        """Install the release or change it to exactly these values.

        Args:
            values: what a values file would hold.
            wait: seconds within which every pod must be ready; None returns when the API has the objects.

        Raises:
            CommandFailed: the chart refuses the values, the cluster the objects, or the pods were not ready in time.
            EnvironmentProblem: another process changes it.
        """
        options = ["--wait", f"--timeout={wait:.0f}s"] if wait else []
        options += [f"--description={_LENT}{self._own}"] if self._own else []
        self._change(
            "upgrade", "--install", self.name, str(CHART), "--create-namespace", "--values=-", *options,
            stdin=yaml.safe_dump(dict(values)), seconds=wait or 0,
        )  # fmt: skip

    def rollback(self, revision: int, *, wait: float | None = None) -> None:
        """Go back to an earlier revision.

        Raises:
            CommandFailed: there is no such revision, or its pods were not ready in time.
            EnvironmentProblem: another process changes it.
        """
        waiting = ["--wait", f"--timeout={wait:.0f}s"] if wait else []
        self._change("rollback", self.name, str(revision), *waiting, seconds=wait or 0)

    def uninstall(self) -> None:
        """Remove the release; nothing happens if there is none. Pods may still be ending.

        Raises:
            CommandFailed: helm could not.
            EnvironmentProblem: another process changes it.
        """
        self._change("uninstall", self.name, "--ignore-not-found")

    def recover(self) -> None:
        """Free a release that an interrupted helm left pending, so that the next upgrade is accepted.

        It goes back to the last revision that was deployed; a release that never was is removed.

        Raises:
            EnvironmentProblem: another process changes it, or another program than inferctl left it pending.
            CommandFailed: helm could not.
        """
        with self.lock.held():
            record = self._record()
            if record is None or not str(record["status"]).startswith("pending"):
                return
            if not (self.lock.cut_short or self._unfinished):
                raise EnvironmentProblem(
                    f"{self._what} is {record['status']}, revision {record['revision']}, and no inferctl of this "
                    f"machine left it so: wait for the helm that works on it; if there is none any more, free it with: "
                    f"helm --kube-context {self.target.context} --namespace {self.namespace} rollback {self.name}"
                )
            self.undo()

    def undo(self) -> None:
        """Take back a change that came to no end: go back to what was deployed last, or to no release.

        Raises:
            CommandFailed: helm could not.
            EnvironmentProblem: another process changes it.
        """
        with self.lock.held():
            if self.status() in {"", "deployed"}:
                return
            last = self.last_deployed()
            if last:
                self.rollback(last)
            else:
                self.uninstall()

    def last_deployed(self) -> int:
        """The newest revision with values of its own that is or was deployed; 0 if there is none."""
        history = [one for one in self._history() if not _lent_for(one)]
        for status in ("deployed", "superseded"):
            if found := [int(one["revision"]) for one in history if one["status"] == status]:
                return max(found)
        return 0

    def _lent_by(self) -> int:
        """The revision that the one which is deployed should give way to; 0 if it is the release's own."""
        history = self._history()
        own = next((_lent_for(one) for one in reversed(history) if one["status"] == "deployed"), 0)
        # Helm forgets the oldest revisions.
        return own if own in {int(one["revision"]) for one in history} else 0

    def _change(self, *arguments: str, stdin: str = "", seconds: float = 0) -> None:
        with self.lock.held():
            try:
                self._helm(*arguments, stdin=stdin, seconds=seconds)
            except BaseException:
                self._unfinished = True
                raise
            self._unfinished = False

    def _record(self) -> dict[str, Any] | None:
        history = self._history()
        return history[-1] if history else None

    def _history(self) -> list[dict[str, Any]]:
        """Helm's records of the revisions that it keeps, the newest last; empty if there is no release."""
        try:
            listed: list[dict[str, Any]] = json.loads(self._helm("history", self.name, "-o", "json"))
        except CommandFailed as error:
            if _NOT_FOUND in str(error):
                return []
            raise
        return listed

    def _helm(self, *arguments: str, stdin: str = "", seconds: float = 0) -> str:
        command = [str(tool("helm")), *self.target.helm_options, f"--namespace={self.namespace}", *arguments]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                pass_fds=self.lock.files,
            )
        except FileNotFoundError as error:
            raise CommandFailed(f"{command[0]} is not built; run: ./just tools") from error
        try:
            output, said = process.communicate(stdin, timeout=seconds + _MARGIN_SECONDS)
        except subprocess.TimeoutExpired as error:
            _cancel(process)
            raise CommandFailed(f"helm {shlex.join(arguments)}: not done after {error.timeout:.0f} s, ended") from error
        except BaseException:
            _cancel(process)
            raise
        if process.returncode:
            raise CommandFailed(f"helm {shlex.join(arguments)}: exit code {process.returncode}\n{tail(said.strip())}")
        return output


def _lent_for(record: Mapping[str, Any]) -> int:
    """The revision with the release's own values, as a record of another one says it; 0 for any other record."""
    description = str(record.get("description", ""))
    number = description.removeprefix(_LENT)
    return int(number) if description.startswith(_LENT) and number.isascii() and number.isdigit() else 0


def _cancel(process: subprocess.Popen[str]) -> None:
    """Have helm write down that it was cancelled; kill it only if it does not."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=_CANCEL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Values with others laid over them, as a further ``--values`` file would be; neither is changed."""
    result = dict(base)
    for key, value in extra.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
