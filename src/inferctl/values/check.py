"""Checks a values file: what the chart refuses, what YAML misread, and what the service would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inferctl.values import names, reference, refusals, rendering, service, source
from inferctl.values.refusals import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from inferctl.values.rendering import Release
    from inferctl.values.service import Behaviour


@dataclass(frozen=True)
class Finding:
    """The result of a check; ``behaviour`` is None where the chart refused the file."""

    problems: list[Problem]
    behaviour: Behaviour | None = None
    remarks: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether the file may be installed as it is."""
        return not self.problems


def check(file: Path, *, release: str, namespace: str) -> Finding:
    """Check one values file as the release ``release`` would use it.

    Raises:
        UsageError: a name is none that Kubernetes takes; the file cannot be read or is not YAML.
        EnvironmentProblem: there is no Helm.
    """
    names.refuse_bad_names(release=release, namespace=namespace)
    written = source.read(file)
    problems = [
        Problem(key, "stands twice; Helm takes the last in silence", "keep one of them", line)
        for key, line in written.repeated_keys
    ]
    try:
        rendered = rendering.parse(rendering.render(text=written.text, release=release, namespace=namespace))
    except rendering.ChartRefusal as refusal:
        said = str(refusal).replace("failed to parse -: ", "Helm cannot read it: ")  # - is how Helm was given it
        return Finding(problems + refusals.explain(said, written))
    problems += _misread(written, rendered)
    engine = _engine(written)
    behaviour = service.describe(rendered, namespace=namespace, shutdown_flag=engine["shutdownTimeoutFlag"])
    return Finding(problems, behaviour, service.advice(rendered, behaviour, engine["args"]))


def _engine(written: source.Source) -> dict[str, Any]:
    """The engine's keys of a file that the chart accepts; "" names no flag, and is the default here too."""
    values = written.values
    given = (values.get("engine") if isinstance(values, dict) else None) or {}
    defaults = (reference.at(["engine"]) or {})["properties"]
    return {key: given.get(key) or defaults[key]["default"] for key in ("args", "shutdownTimeoutFlag")}


def _misread(written: source.Source, rendered: Release) -> list[Problem]:
    """Unquoted words of the file that arrive as something else."""
    template = rendered.deployment["spec"]["template"]
    places: dict[tuple[str, ...], Mapping[str, str]] = {
        ("model",): {"name": rendered.environment["MODEL_NAME"]},
        ("engine", "env"): rendered.environment,
        ("podAnnotations",): template["metadata"].get("annotations", {}),
        ("podLabels",): template["metadata"]["labels"],
        ("nodeSelector",): rendered.pod.get("nodeSelector", {}),
    }
    return [
        Problem(
            ".".join((*path, name)),
            f"is written {text.written}, but YAML makes it {arrived[name]}",
            f'put it in quotes: "{text.written}"',
            text.line,
        )
        for path, arrived in places.items()
        for name, text in written.texts(*path).items()
        if not text.quoted and name in arrived and text.written != arrived[name]
    ]
