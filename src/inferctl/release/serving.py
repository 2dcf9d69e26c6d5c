"""What a client must know of a release, read from its values: image, URL, model, and how long its pods take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inferctl.errors import UsageError
from inferctl.release.helm import CHART_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inferctl.release.helm import Release

#: The chart's defaults, which hold where a release gives nothing or null.
_MODEL, _PORT, _LOAD_SECONDS, _GRACE_SECONDS, _PRE_STOP_SECONDS, _REPLICAS = "mock/mock-8b", 8000, 600, 90, 10, 1
#: What Kubernetes needs beyond the engine: to schedule, to pull, to ask a probe.
_KUBERNETES_SECONDS = 60


@dataclass(frozen=True)
class Serving:
    """How a release serves.

    Attributes:
        repository: the engine's image, as nodes pull it.
        digest: and which one.
        url: the Service's address as pods of the same namespace reach it.
        model: the model to ask for.
        pre_stop_seconds: that a pod goes on taking requests when it has been told to stop.
        replace_seconds: within which all of its pods are replaced one after the other, by its own time-outs.
    """

    repository: str
    digest: str
    url: str
    model: str
    pre_stop_seconds: float
    replace_seconds: float

    @property
    def image(self) -> str:
        """The image's reference by digest."""
        return f"{self.repository}@{self.digest}"


def serving(release: Release, values: Mapping[str, Any]) -> Serving:
    """Read from values how a release serves.

    Args:
        release: the release, of which only the name is used.
        values: what it was given, without the chart's defaults; null means the default, as it does to Helm.

    Raises:
        UsageError: they are not those of a release of this chart.
    """

    def section(key: str) -> Mapping[str, Any]:
        found = values.get(key) or {}
        if not isinstance(found, dict):
            raise UsageError(_foreign(release, f"{key} is {found!r}"))
        return found

    def number(found: Mapping[str, Any], key: str, default: float) -> float:
        given = default if found.get(key) is None else found[key]
        if not isinstance(given, int | float):
            raise UsageError(_foreign(release, f"{key} is {given!r}"))
        return float(given)

    image, engine, rollout = section("image"), section("engine"), section("rollout")
    for key in ("repository", "digest"):
        if not image.get(key):
            raise UsageError(_foreign(release, f"it has no image.{key}"))
    per_pod = number(engine, "loadTimeoutSeconds", _LOAD_SECONDS) + _KUBERNETES_SECONDS
    grace = number(rollout, "terminationGracePeriodSeconds", _GRACE_SECONDS)
    replicas = max(1, number(values, "replicaCount", _REPLICAS))
    return Serving(
        repository=str(image["repository"]),
        digest=str(image["digest"]),
        url=f"http://{release.resource}:{section('service').get('port') or _PORT}",
        model=str(section("model").get("name") or _MODEL),
        pre_stop_seconds=number(rollout, "preStopSeconds", _PRE_STOP_SECONDS),
        replace_seconds=replicas * per_pod + grace,
    )


def _foreign(release: Release, why: str) -> str:
    return (
        f"release {release.name!r} is not of the chart {CHART_NAME}: {why}; "
        "name one that is, with --release, or install the mock engine: ./just deploy"
    )
