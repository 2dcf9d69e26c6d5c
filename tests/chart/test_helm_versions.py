"""Helm 3.22 and Helm 4 make the same of every values file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inferctl.paths import CHART, tool
from inferctl.values import rendering
from tests.chart.yaml_text import as_yaml

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
HELM_3 = tool("helm3")
IMAGE = {"repository": "a", "digest": "sha256:" + "0" * 64}
HOSTILE = {
    "image": IMAGE,
    "engine": {
        "args": ["", "$(A)", "{{x}}", "<no value>", "\n---\n", "\x85\u2028\ufeff"],
        "env": {"A": 1048576, "B": 0.7, "C": True, "D": "0123"},
    },
    "podAnnotations": {"on": 1234567},
    "resources": {"limits": None},
    "affinity": None,
    "securityContext": {"pod": {"runAsUser": None}},
}
REFUSED = {
    "image": {**IMAGE, "tag": "v1"},
    "engine": {"args": [1]},
    "replicaCount": 1.5,
    "unknown": 1,
}


def _without_blank_lines(text: str) -> str:
    """Helm 4 ends each document with a blank line, Helm 3 does not."""
    return re.sub(r"\n+", "\n", text)


def test_helm_3_is_there() -> None:
    """Without it the comparison would be of Helm 4 with itself."""
    assert HELM_3.exists(), f"{HELM_3} is not built; run ./just tools"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_renders_the_same(file: Path) -> None:
    """Both versions print the same objects, byte by byte."""
    options = ["--kube-version", "1.37.0"]  # each Helm has another default
    newer = rendering.render([file], options=options)
    older = rendering.render([file], options=options, helm=HELM_3)
    assert _without_blank_lines(older) == _without_blank_lines(newer)


def test_hostile_values_render_the_same(tmp_path: Path) -> None:
    """So they do where numbers, nulls and odd characters could be read in two ways."""
    file = tmp_path / "values.yaml"
    file.write_text(as_yaml(HOSTILE))
    options = ["--kube-version", "1.37.0"]
    newer = rendering.render([file], options=options)
    older = rendering.render([file], options=options, helm=HELM_3)
    assert _without_blank_lines(older) == _without_blank_lines(newer)


def test_refusals_are_the_same(tmp_path: Path) -> None:
    """Both name the same keys in the same words, whatever their order."""
    file = tmp_path / "values.yaml"
    file.write_text(as_yaml(REFUSED))
    said = []
    for helm in (None, HELM_3):
        with pytest.raises(rendering.ChartRefusal) as refusal:
            rendering.render([file], options=["--kube-version", "1.37.0"], helm=helm)
        said.append({line.strip() for line in str(refusal.value).splitlines()})
    assert said[0] == said[1]
    assert "- at '/image': additional properties 'tag' not allowed" in said[0]
