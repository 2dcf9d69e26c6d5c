"""Checks a values file: what the chart refuses, what YAML misread, and what the service would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inferctl.values import misreading, names, reference, refusals, rendering, service, source
from inferctl.values.refusals import Problem

if TYPE_CHECKING:
    from pathlib import Path

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
        EnvironmentProblem: there is no Helm, or it did not come to an end of its own.
    """
    names.refuse_bad_names(release=release, namespace=namespace)
    written = source.read(file)
    problems = [
        Problem(key, "stands twice; Helm takes the last in silence", "keep one of them", line)
        for key, line in written.repeated_keys
    ] + [
        Problem(key, "is replaced by what is merged below it", "write the line with << first", line)
        for key, line in written.merged_over
    ]
    try:
        rendered = rendering.parse(rendering.render(text=written.text, release=release, namespace=namespace))
    except rendering.ChartRefusal as refusal:
        said = str(refusal).replace("failed to parse -: ", "Helm cannot read it: ")  # - is how Helm was given it
        return Finding(problems + (list(misreading.unreadable(written)) or refusals.explain(said, written)))
    told = {problem.key for problem in problems}
    problems += [problem for problem in misreading.find(written, rendered) if problem.key not in told]
    engine = _engine(written)
    behaviour = service.describe(rendered, namespace=namespace, shutdown_flag=engine["shutdownTimeoutFlag"])
    return Finding(problems, behaviour, service.advice(rendered, behaviour, engine["args"]))


def _engine(written: source.Source) -> dict[str, Any]:
    """The engine's keys of a file that the chart accepts; "" names no flag, and is the default here too."""
    values = written.values
    given = (values.get("engine") if isinstance(values, dict) else None) or {}
    defaults = (reference.at(["engine"]) or {})["properties"]
    return {key: given.get(key) or defaults[key]["default"] for key in ("args", "shutdownTimeoutFlag")}
