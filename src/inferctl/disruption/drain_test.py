"""The drain test of a deployed release: the drain scenario on it, and its own values back afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.disruption.scenarios.drains import Drain
from inferctl.disruption.session import Session
from inferctl.disruption.settle import wait_restored
from inferctl.disruption.verdict import Outcome
from inferctl.errors import EnvironmentProblem
from inferctl.release.helm import Release, merged
from inferctl.release.serving import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from inferctl.cluster.target import Target
    from inferctl.console import Progress
    from inferctl.disruption.result import Result
    from inferctl.report.recorder import Recorder

#: Lets the mock engine give answers that are longer than the preStop sleep.
_LONG_ANSWERS = {"engine": {"env": {"ANSWER_TOKENS": 4096}}}


def drain_test(
    target: Target,
    *,
    release: str = "mock",
    control: bool = False,
    nodes_allowed: str = "",
    progress: Progress,
    observe: Callable[[Recorder], Callable[[], None]] | None = None,
) -> Result:
    """Give a release two replicas, drain the node of the first under load, and count how every request ended.

    Args:
        target: the cluster.
        release: a release that is deployed there, in the namespace ``default``.
        control: take the protection away; then only loss is a result.
        nodes_allowed: the context on whose nodes this may act; only an existing cluster needs this word.
        progress: told of each step.
        observe: is given the run's recorder, and returns what to call when the run has ended.

    Raises:
        EnvironmentProblem: there is no such release, or another process changes it.
        UsageError: this cluster's nodes may not be acted on, or the release is not of this chart.
    """
    subject = Release(target, release)
    with subject.changing(progress.say):
        if not subject.status():
            raise EnvironmentProblem(subject.missing)
        own = subject.values()
        how = serving(subject, own)
        session = Session(
            target,
            repository=how.repository,
            digest=how.digest,
            progress=progress,
            nodes_allowed=nodes_allowed,
            observe=observe,
            release=subject,
            base=merged(own, _LONG_ANSWERS),
        )
        try:
            with subject.lent():
                session.prepare()
                result = session.run(Drain, Drain.controls[0] if control else None)
        finally:
            session.close()
            with progress.step("giving the release its own values back"):
                subject.recover()
                # Only until the API has them: a release that cannot start must not keep the verdict back.
                subject.upgrade(own)
        if result.verdict.outcome is not Outcome.NOT_MEASURED:
            wait_restored(target.client(), subject, how.replace_seconds, progress)
        return result
