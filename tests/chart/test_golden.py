"""What each example values file renders to, word for word."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from inferctl.paths import CHART
from inferctl.values import rendering

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
EXPECTED = {
    "minimal",
    "lint",
    "gpu",
    "no-spare-gpu",
    "slow-load",
    "private-registry",
    "secrets",
    "restricted",
}


def _name(file: Path) -> str:
    return file.name.removesuffix("-values.yaml")


def test_there_is_an_example_for_every_situation() -> None:
    """The situations that the chart is made for each have a values file."""
    assert {_name(file) for file in EXAMPLES} == EXPECTED


@pytest.mark.parametrize("file", EXAMPLES, ids=_name)
def test_example_renders_to_its_golden_manifest(file: Path, request: pytest.FixtureRequest) -> None:
    """A change of what is rendered shows in a reviewed file."""
    rendered = rendering.render([file], release="mock", namespace="team")
    golden = GOLDEN / f"{_name(file)}.yaml"
    if request.config.getoption("--update-golden", default=False):
        golden.write_text(rendered, encoding="utf-8")
    wanted = golden.read_text(encoding="utf-8") if golden.exists() else ""
    difference = difflib.unified_diff(wanted.splitlines(), rendered.splitlines(), "golden", "rendered", lineterm="")
    assert rendered == wanted, "\n".join(
        [*difference, "if this is meant: pytest tests/chart/test_golden.py --update-golden"]
    )
