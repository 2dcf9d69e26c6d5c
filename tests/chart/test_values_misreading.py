"""``inferctl values check``: words, names and keys that YAML or Helm makes others than their author wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.chart.values_command import IMAGE, check

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("written", "read"), [("0123", "83"), ("on", "true"), ("1.10", "1.1"), ("1_000", "1000"), ("1e3", "1000")]
)
def test_check_finds_words_that_yaml_misreads(tmp_path: Path, written: str, read: str) -> None:
    """No chart can see this: an unquoted word arrives as another one."""
    checked = check(tmp_path, f"{IMAGE}engine:\n  env:\n    PIN: {written}\n", "--json")
    assert checked.exit_code == 1
    (problem,) = json.loads(checked.output)["problems"]
    assert problem == {
        "key": "engine.env.PIN",
        "message": f"is written {written}, but YAML makes it {read}",
        "fix": f'put it in quotes: "{written}"',
        "line": 4,
    }


def test_check_finds_names_that_yaml_misreads(tmp_path: Path) -> None:
    """A name may arrive as another one, as a value may; in quotes, and where it is the same, it is good."""
    names = {"on": "true", "y": "true", "0x10": "16", "1.10": "1.1"}
    places = ("podLabels", "podAnnotations", "nodeSelector")
    text = IMAGE + "".join(f"{place}:\n" + "".join(f"  {name}: x\n" for name in names) for place in places)
    problems = json.loads(check(tmp_path, text, "--json").output)["problems"]
    assert {problem["key"] for problem in problems} == {f"{place}.{name}" for place in places for name in names}
    assert problems[0] == {
        "key": "podLabels.on",
        "message": "is a name that YAML makes another one",
        "fix": 'put it in quotes: "on"',
        "line": 3,
    }
    same = ", ".join([*(f"'{name}': x" for name in names), *(f"{name}: x" for name in set(names.values()))])
    assert check(tmp_path, IMAGE + "".join(f"{place}: {{{same}}}\n" for place in places)).exit_code == 0


def test_check_finds_numbers_that_begin_with_a_zero(tmp_path: Path) -> None:
    """YAML reads them in base 8, which is meant for a file's mode alone; 08000 and 07 are the same in both."""
    numbers = "replicaCount: 010\nengine: {port: 08000, loadTimeoutSeconds: 07}\n"
    mode = "extraVolumes: [{name: a, secret: {secretName: a, defaultMode: 0440}}]\nglobal: {any: 010}\n"
    checked = check(tmp_path, IMAGE + numbers + mode, "--json")
    assert checked.exit_code == 1
    (problem,) = json.loads(checked.output)["problems"]
    assert (problem["key"], problem["line"]) == ("replicaCount", 2)
    assert problem["message"] == "is written 010, but YAML makes it 8"


@pytest.mark.parametrize("null", ["null", ""])
def test_check_takes_a_null_for_the_default(tmp_path: Path, null: str) -> None:
    """A key that was left empty is no word that was misread."""
    checked = check(tmp_path, f"{IMAGE}model:\n  name: {null}\n", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.output)["behaviour"]["model"] == "mock/mock-8b"


def test_check_finds_values_that_a_tag_changes(tmp_path: Path) -> None:
    """Quotes do not keep a text from what YAML is told to make of it."""
    text = "engine: {env: {A: !!int '0123', B: !!bool 'on'}, args: [!!binary aGVsbG8=]}\n"
    problems = json.loads(check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert {problem["key"]: problem["message"] for problem in problems} == {
        "engine.env.A": "is written 0123, but YAML makes it 83",
        "engine.env.B": "is written on, but YAML makes it true",
        "engine.args[0]": "is written aGVsbG8=, but YAML makes it hello",
    }


def test_check_finds_a_key_that_a_merge_replaces(tmp_path: Path) -> None:
    """Helm goes from top to bottom: what is merged below a key wins over it, and what is merged above does not."""
    bases = f"{IMAGE}global: {{a: &a {{A: '1'}}, b: &b {{B: '1'}}, c: &c {{<<: *a}}}}\nengine:\n  env:\n"
    for merged, replaced in (("*c", {"A"}), ("[*b, *c]", {"A", "B"})):
        checked = check(tmp_path, f"{bases}    A: '2'\n    B: '2'\n    <<: {merged}\n", "--json")
        problems = json.loads(checked.output)["problems"]
        assert {problem["key"] for problem in problems} == {f"engine.env.{name}" for name in replaced}
        assert {problem["line"] for problem in problems} == {7}
        assert {problem["fix"] for problem in problems} == {"write the line with << first"}
    assert check(tmp_path, f"{bases}    <<: [*b, *c]\n    A: '2'\n").exit_code == 0


def test_check_shows_a_refused_word_as_it_is_written(tmp_path: Path) -> None:
    """And not what YAML makes of it, which its author has never seen."""
    said = check(tmp_path, f"{IMAGE}engine: {{args: [0123, on, y], port: 1:30}}\n").output
    for place, word in (("args[0]", "0123"), ("args[1]", "on"), ("args[2]", "y"), ("port", "1:30")):
        assert f"engine.{place}: is {word}: got " in said


def test_check_finds_what_helm_cannot_read(tmp_path: Path) -> None:
    """Endless numbers and names that are null have no place in JSON: each is named with its line and what to write."""
    text = (
        "engine:\n  env:\n    A: .inf\n    B: -.Inf\n    C: .NaN\n    D: '.inf'\npodLabels:\n  ~: x\n~:\nglobal: .nan"
    )
    problems = json.loads(check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert [(problem["key"], problem["line"], problem["fix"]) for problem in problems] == [
        ("engine.env.A", 4, 'put it in quotes: ".inf"'),
        ("engine.env.B", 5, 'put it in quotes: "-.Inf"'),
        ("engine.env.C", 6, 'put it in quotes: ".NaN"'),
        ("podLabels.~", 9, 'put it in quotes: "~"'),
        ("~", 10, 'put it in quotes: "~"'),
        ("global", 11, 'put it in quotes: ".nan"'),
    ]


def test_check_takes_dates_for_texts(tmp_path: Path) -> None:
    """As Helm does, whether there is such a day or not."""
    text = "engine: {args: [2024-02-30, 2024-02-01, =]}\npodAnnotations: {2024-02-30: 2024-02-29}\n"
    assert check(tmp_path, IMAGE + text).exit_code == 0


def test_check_finds_a_key_that_stands_twice(tmp_path: Path) -> None:
    """Helm would take the last in silence."""
    checked = check(tmp_path, IMAGE + "replicaCount: 1\nreplicaCount: 2\n")
    assert checked.exit_code == 1
    assert "values.yaml:3: replicaCount: stands twice" in checked.output
