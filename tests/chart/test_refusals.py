"""Every refusal that the chart's templates can make is known, word for word, to some test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inferctl.paths import CHART
from inferctl.values import rendering

if TYPE_CHECKING:
    from tests.chart.conftest import Render

RULES = (CHART / "templates" / "_validation.tpl").read_text(encoding="utf-8")
MESSAGES = re.findall(r'append \$problems (?:\(printf )?"((?:[^"\\]|\\.)*)"', RULES)
SUITES = "".join(file.read_text(encoding="utf-8") for file in (CHART / "tests").glob("*_test.yaml"))
LONG_TEXTS = (
    "engine.args and engine.env hold about 512051 bytes, more than the 500000 for which a Helm release has room: put "
    "long texts into a ConfigMap and mount it with extraVolumes"
)
LONG_ANNOTATIONS = (
    "podAnnotations holds 288018 bytes, more than the 262000 for which an object has room: put long texts into a "
    "ConfigMap"
)
EXPONENT = (
    "engine.env.EPSILON is 1e-7, a number that cannot be told from another way to write it: put it in quotes as the "
    "engine should get it"
)
LONG_NAME = (
    "image.repository has 256 characters, more than the 255 that an image name may have: push the image under a "
    "shorter name"
)
ASSERTED = f"{SUITES}\n{LONG_TEXTS}\n{LONG_ANNOTATIONS}\n{EXPONENT}\n{LONG_NAME}"


def _parts(message: str) -> list[str]:
    """The words of a message between the places that values are printed in."""
    return [part.replace('\\"', '"') for part in re.split(r"%[sdq]", message) if len(part) > 1]


def test_the_rules_are_read() -> None:
    """The pattern above finds as many messages as there are places that make one."""
    assert len(MESSAGES) == RULES.count("append $problems") > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_message_is_asserted(message: str) -> None:
    """A unit test of the chart, or one below, expects all of its words."""
    for part in _parts(message):
        assert part in ASSERTED or part.replace('"', '\\"') in ASSERTED, part


def test_texts_beyond_what_a_release_holds_are_refused(render: Render) -> None:
    """Helm keeps a release in one Secret, and the API server limits annotations."""
    with pytest.raises(rendering.ChartRefusal) as refusal:
        render({"engine": {"args": ["x" * 32000] * 16}, "podAnnotations": {f"a{n}": "x" * 32000 for n in range(9)}})
    assert LONG_TEXTS in str(refusal.value)
    assert LONG_ANNOTATIONS in str(refusal.value)


def test_number_with_an_exponent_is_refused(render: Render) -> None:
    """0.0000001 and 1e-7 are the same number, and the engine might read only one of them."""
    with pytest.raises(rendering.ChartRefusal) as refusal:
        render({"engine": {"env": {"EPSILON": 1e-7}}})
    assert EXPONENT in str(refusal.value)


def test_longest_image_name(render: Render) -> None:
    """An image name has at most 255 characters."""
    assert render({"image": {"repository": "a" * 255}})
    with pytest.raises(rendering.ChartRefusal) as refusal:
        render({"image": {"repository": "a" * 256}})
    assert LONG_NAME in str(refusal.value)
