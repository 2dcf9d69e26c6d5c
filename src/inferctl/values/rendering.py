"""Renders the chart with Helm, the only judge of what the chart accepts."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from inferctl.errors import EnvironmentProblem, InferctlError
from inferctl.paths import CHART, tool
from inferctl.process.command import tail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Kubernetes objects are read as what YAML gives; their shape is the API server's business.
KubernetesObject = dict[str, Any]

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_REFUSED = 1  # Helm's exit code for every error that it foresees
_DEADLINE = 60  # seconds; a rendering takes about 0.1


class ChartRefusal(InferctlError):
    """Helm did not render the chart with these values; the message is Helm's own."""

    exit_code = 1


@dataclass(frozen=True)
class Release:
    """The objects of one release, as the chart renders them."""

    objects: tuple[KubernetesObject, ...]

    def of_kind(self, kind: str) -> KubernetesObject | None:
        """The object of this kind, if there is one; the chart never makes two."""
        return next((item for item in self.objects if item["kind"] == kind), None)

    @property
    def deployment(self) -> KubernetesObject:
        """The Deployment, which every release has."""
        return next(item for item in self.objects if item["kind"] == "Deployment")

    @property
    def service(self) -> KubernetesObject:
        """The Service, which every release has."""
        return next(item for item in self.objects if item["kind"] == "Service")

    @property
    def pod(self) -> KubernetesObject:
        """The pod's spec."""
        spec: KubernetesObject = self.deployment["spec"]["template"]["spec"]
        return spec

    @property
    def engine(self) -> KubernetesObject:
        """The engine's container."""
        container: KubernetesObject = self.pod["containers"][0]
        return container

    @property
    def argv(self) -> list[str]:
        """The engine's arguments as the kubelet passes them on."""
        variables = {item["name"]: f"<{item['name']}>" for item in self.engine["env"]} | self.environment
        return [_expanded(argument, variables) for argument in self.engine.get("args", [])]

    @property
    def environment(self) -> dict[str, str]:
        """The engine's variables that have a value in the Deployment, as the kubelet passes them on."""
        variables: dict[str, str] = {}
        for item in self.engine["env"]:
            if "valueFrom" not in item:  # the API server leaves an empty value out
                variables[item["name"]] = _expanded(item.get("value", ""), variables)
        return variables


def render(
    files: Sequence[Path] = (),
    *,
    text: str | None = None,
    release: str = "model",
    namespace: str = "default",
    chart: Path = CHART,
    helm: Path | None = None,
    options: Sequence[str] = (),
) -> str:
    """What ``helm template`` prints for these values files.

    Args:
        files: values files; later ones win.
        text: one more values file, as its content; it wins over all.
        release: the release's name.
        namespace: where it would be installed.
        chart: the chart's folder or package.
        helm: the Helm program; the project's own if absent.
        options: further options of ``helm template``.

    Raises:
        ChartRefusal: Helm refused.
        EnvironmentProblem: there is no Helm, or it did not come to an end of its own.
    """
    program = helm or tool("helm")
    command = [str(program if program.exists() else "helm"), "template", f"--namespace={namespace}", *options]
    command += [f"--values={_one_path(file)}" for file in files]
    if text is not None:
        command += ["--values=-"]  # Helm reads it from its standard input
    command += ["--", release, str(chart)]  # a name behind -- is never an option
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            input=text or "",
            encoding="utf-8",
            check=False,
            timeout=_DEADLINE,
            # A rendering allocates little: collecting garbage doubles its processor time. What it says is for programs.
            env={**os.environ, "GOGC": "off", "HELM_DEBUG": "false"},
        )
    except FileNotFoundError as error:
        raise EnvironmentProblem("helm is not installed; run ./just tools to build what this project uses") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(
            f"helm has not rendered the chart after {_DEADLINE} s; is the machine busy?"
        ) from error
    if done.returncode == _REFUSED:
        raise ChartRefusal(done.stderr.strip())
    if done.returncode:  # a signal, or a fault of Helm's own
        said = f"helm ended with code {done.returncode} before it had judged the values; has the machine memory left?"
        raise EnvironmentProblem("\n".join([said, tail(done.stderr)]).rstrip())
    return done.stdout


def _one_path(file: Path) -> str:
    """A path as Helm takes it for one: the option's value is a line of comma-separated values."""
    return '"{}"'.format(str(file).replace('"', '""'))


def parse(manifests: str) -> Release:
    """The objects in what ``render`` returned."""
    return Release(tuple(item for item in yaml.load_all(manifests, Loader=yaml.CSafeLoader) if item))


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """What the kubelet makes of a text: $(NAME) is the variable if there is one, and $$ is $.

    See https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), text)
