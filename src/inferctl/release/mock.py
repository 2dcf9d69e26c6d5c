"""The mock engine as a release: what ``inferctl deploy`` installs, and a test that is told to deploy first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inferctl.errors import EnvironmentProblem, InferctlError, Interrupted
from inferctl.images import engine
from inferctl.paths import ROOT
from inferctl.release.helm import Release
from inferctl.release.serving import serving

if TYPE_CHECKING:
    from inferctl.cluster.target import Target
    from inferctl.console import Progress

DEFAULT_NAME = "mock"
_DIGEST = ROOT / "local" / "mock-engine.digest"
#: What the chart allows a load to take, and what a node needs around it to pull and start an engine.
_LOAD_SECONDS, _AROUND_SECONDS = 600, 120
#: A busy machine needs some even for an engine that loads at once.
_LEAST_SECONDS = 180
#: A load that is long enough to see: pods answer 503 for this long after their start.
STARTUP_DELAY_SECONDS = 15
#: Without a share of its own, a busy node would starve the engine and its pauses would look like the rollout's doing.
_REQUESTS = {"cpu": "100m"}


def install(
    target: Target, name: str, progress: Progress, *, replicas: int, startup_delay: int = STARTUP_DELAY_SECONDS
) -> Release:
    """Build and push the mock engine's image, and install it as a release or change that release to it.

    Args:
        target: the cluster, which is up.
        name: the release's name, in the namespace ``default``.
        progress: told of each step.
        replicas: how many pods; returns when they are ready.
        startup_delay: seconds that the engine takes to load.

    Raises:
        CommandFailed: the image could not be pushed, or the pods were not ready in time.
        EnvironmentProblem: another process changes the release.
        Interrupted: the change was interrupted, and what it made could not be taken back.
    """
    digest = engine.publish(target.push, progress, plain_http=target.plain_http)
    _DIGEST.write_text(f"{digest}\n")
    values: dict[str, Any] = {
        "image": {"repository": f"{target.pull}/{engine.NAME}", "digest": digest},
        "replicaCount": replicas,
        "resources": {"requests": _REQUESTS},
        "engine": {"env": {"STARTUP_DELAY_SECONDS": startup_delay}},
    }
    if startup_delay > _LOAD_SECONDS - _AROUND_SECONDS:
        values["engine"]["loadTimeoutSeconds"] = startup_delay + _AROUND_SECONDS
    subject = Release(target, name)
    with subject.changing(progress.say):
        before = subject.last_deployed()
        try:
            with progress.step(f"helm upgrade --install {name}, until {replicas} pods are ready"):
                subject.upgrade(values, wait=max(_LEAST_SECONDS, replicas * (startup_delay + _AROUND_SECONDS)))
        except KeyboardInterrupt:
            _undo(subject, before, progress)
            raise
    return subject


def _undo(subject: Release, before: int, progress: Progress) -> None:
    """After Ctrl-C: give the release the revision that it had before, or remove it where it had none."""
    what = f"rolling release {subject.name!r} back" if before else f"removing release {subject.name!r}, which was new"
    try:
        with progress.step(f"interrupted: {what}"):
            subject.undo()
    except (KeyboardInterrupt, InferctlError) as error:
        verb = f"rollback {subject.name} {before}" if before else f"uninstall {subject.name}"
        raise Interrupted(
            f"interrupted; release {subject.name!r} is left half changed ({str(error) or 'interrupted again'}); put it "
            f"right with: helm --kube-context {subject.target.context} --namespace {subject.namespace} {verb}"
        ) from error


def install_unless_foreign(target: Target, name: str, progress: Progress, *, replicas: int) -> None:
    """Install the mock engine before a test, but never over a release that serves something else.

    Only the release "mock" comes into being by itself: any other name that is not there was most likely mistyped.

    Raises:
        EnvironmentProblem: there is no release of this name.
        UsageError: there is a release of this name that is not of this chart.
        CommandFailed: as `install`.
    """
    subject = Release(target, name)
    with subject.changing(progress.say):
        status = subject.status()
    if not status:
        if name != DEFAULT_NAME:
            raise EnvironmentProblem(subject.missing)
    elif not runs_mock(subject):
        progress.say(f"release {name!r} serves an engine of its own: it is tested as it is")
        return
    install(target, name, progress, replicas=replicas)


def runs_mock(release: Release) -> bool:
    """Whether a release that exists runs the mock engine's image.

    Raises:
        UsageError: it is not of this chart.
    """
    return serving(release, release.values()).repository.rpartition("/")[2] == engine.NAME
