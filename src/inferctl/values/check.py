"""Checks a values file: what the chart refuses, what YAML misread, and what the service would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferctl.values import refusals, rendering, service, source
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
        UsageError: the file cannot be read or is not YAML.
        EnvironmentProblem: there is no Helm.
    """
    written = source.read(file)
    problems = [
        Problem(key, "stands twice; Helm takes the last in silence", "keep one of them", line)
        for key, line in written.repeated_keys()
    ]
    try:
        rendered = rendering.parse(rendering.render([file], release=release, namespace=namespace))
    except rendering.ChartRefusal as refusal:
        return Finding(problems + refusals.explain(str(refusal), written.values))
    problems += _misread(written, rendered)
    behaviour = service.describe(rendered, namespace=namespace)
    return Finding(problems, behaviour, service.advice(rendered, behaviour))


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
