"""``inferctl values check``: what an app team hears of a values file before anything is installed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inferctl.errors import EnvironmentProblem, UsageError
from inferctl.values import rendering
from tests.chart.values_command import IMAGE, check, invoke

if TYPE_CHECKING:
    from pathlib import Path


def test_check_names_key_value_and_fix_of_every_problem(tmp_path: Path) -> None:
    """The schema's terse words are completed from its descriptions."""
    checked = check(tmp_path, IMAGE + "rolout: {}\nengine: {args: [8192], loadTimeoutSeconds: '600'}\n", "--json")
    assert checked.exit_code == 1
    problems = {problem["key"]: problem for problem in json.loads(checked.output)["problems"]}
    assert problems["rolout"]["fix"] == "is rollout meant?"
    assert problems["engine.args[0]"]["message"] == "is 8192: got number, want string"
    assert '"8192"' in problems["engine.args[0]"]["fix"]
    assert problems["engine.loadTimeoutSeconds"]["message"] == 'is "600": got string, want integer'
    assert "engine.loadTimeoutSeconds: 1800" in problems["engine.loadTimeoutSeconds"]["fix"]


def test_check_says_the_line_of_every_refusal(tmp_path: Path) -> None:
    """The line of the key or of the list's item, in both outputs; where nothing of it stands in the file, none."""
    text = "rolout: {}\nengine:\n  args:\n    - a\n    - 8192\n  port: '1'\n"
    problems = json.loads(check(tmp_path, text, "--json").output)["problems"]
    lines = {problem["key"]: problem["line"] for problem in problems}
    assert lines == {"rolout": 1, "engine.args[1]": 5, "engine.port": 6}
    said = check(tmp_path, text).output
    assert "values.yaml:5: engine.args[1]: is 8192" in said
    empty = check(tmp_path, "", "--json").output
    assert {problem["line"] for problem in json.loads(empty)["problems"]} == {None}


def test_check_says_the_line_that_breaks_a_rule_between_keys(tmp_path: Path) -> None:
    """A refusal by the chart's templates has the line of the key that it names, or of what would hold it."""
    checked = check(tmp_path, IMAGE + "rollout:\n  maxSurge: 1\n  terminationGracePeriodSeconds: 5\n")
    assert "values.yaml:4: rollout.terminationGracePeriodSeconds" in checked.output
    assert "values.yaml:2: image.digest is required" in check(tmp_path, "\nimage:\n  repository: a\n").output


def test_check_passes_the_rules_between_keys_on(tmp_path: Path) -> None:
    """What the chart's templates refuse is said with its key."""
    checked = check(tmp_path, IMAGE + "rollout: {terminationGracePeriodSeconds: 5}\n", "--json")
    (problem,) = json.loads(checked.output)["problems"]
    assert problem["key"] == "rollout.terminationGracePeriodSeconds"
    assert "is not above rollout.preStopSeconds (10)" in problem["message"]


def test_check_names_an_unknown_key_as_it_is(tmp_path: Path) -> None:
    """However Helm quotes it, the key is found in the file, and shown on one line without control characters."""
    names = ["it's", "a', 'b", "end\\", 'back\\slash"q', "a\nb", "\x1b[31mred", "é\u200b"]
    text = f"{IMAGE}engine:\n" + "".join(f"  {json.dumps(name)}: 1\n" for name in names)
    problems = json.loads(check(tmp_path, text, "--json").output)["problems"]
    found = {problem["key"]: problem["line"] for problem in problems}
    assert found == {f"engine.{name}": line for line, name in enumerate(names, start=3)}
    lines = check(tmp_path, text).output.split("\n")
    assert all(line.isprintable() for line in lines)
    assert sum(line.endswith("is no key of engine") for line in lines) == len(names)


def test_check_hears_nothing_but_refusals_of_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Helm says to those who look for its faults is no part of a problem."""
    monkeypatch.setenv("HELM_DEBUG", "true")
    (problem,) = json.loads(check(tmp_path, IMAGE + 'a: "\\ud800"\n', "--json").output)["problems"]
    assert problem["message"].startswith("Helm cannot read it: ")
    assert "\n" not in problem["message"]


def test_check_says_of_a_forbidden_value_that_it_is(tmp_path: Path) -> None:
    """And not how the schema forbids it."""
    text = "engine: {env: {A: {secretKeyRef: {name: a, key: ..}}}}\nresources: {limits: {kubernetes.io/x: 1}}\n"
    problems = json.loads(check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert {problem["key"]: problem["message"] for problem in problems} == {
        "engine.env.A.secretKeyRef.key": "is ..: not allowed here",
        "resources.limits.kubernetes.io/x": "is 1: not allowed here",
    }


def test_check_says_what_the_service_will_do(tmp_path: Path) -> None:
    """Load, drain, pods in a rollout and address, in words."""
    text = IMAGE + "replicaCount: 3\nengine: {loadTimeoutSeconds: 900}\n"
    checked = check(tmp_path, text, "--release", "chat", "--namespace", "search")
    assert checked.exit_code == 0
    for said in (
        "http://chat-inference-service.search:8000",
        "up to 900 s; a pod that takes longer is restarted",
        "up to 90 s a pod: 10 s sleep, 75 s for streams that have begun",
        "at most 4 pod(s), at least 3 ready",
        "evicts a pod only while 1 other(s) are ready",
    ):
        assert said in checked.output


def test_check_leaves_the_number_of_pods_to_an_autoscaler(tmp_path: Path) -> None:
    """It claims nothing about a number that it cannot know."""
    checked = check(tmp_path, IMAGE + "externalAutoscaler: true\n", "--json")
    behaviour = json.loads(checked.output)["behaviour"]
    assert (behaviour["replicas"], behaviour["most_pods"], behaviour["least_ready"]) == (None, None, None)
    assert "as many as the autoscaler says" in check(tmp_path, IMAGE + "externalAutoscaler: true\n").output


@pytest.mark.parametrize(
    ("surge", "said"),
    [(0, "one pod at a time is replaced in place"), (1, "at most 1 pod(s) more"), (3, "at most 3 pod(s) more")],
)
def test_check_says_how_an_autoscalers_pods_are_replaced(tmp_path: Path, surge: int, said: str) -> None:
    """The words follow rollout.maxSurge."""
    checked = check(tmp_path, f"{IMAGE}externalAutoscaler: true\nrollout: {{maxSurge: {surge}}}\n")
    assert checked.exit_code == 0
    assert said in checked.output


@pytest.mark.parametrize(
    ("engine", "seconds"),
    [
        ("{shutdownTimeoutFlag: --drain-seconds}", 75),
        ("{shutdownTimeoutFlag: --drain-seconds, args: [--drain_seconds, '60']}", 60),
        ("{shutdownTimeoutFlag: --drain-seconds, args: [--shutdown-timeout=60]}", 75),
        ("{shutdownTimeoutFlag: '', args: [--shutdown-timeout=60]}", 60),
        ("{shutdownTimeoutFlag: null}", 75),
        ("{shutdownTimeoutFlag: ''}", None),
        ("null", 75),
    ],
)
def test_check_knows_the_engines_flag_by_its_name(tmp_path: Path, engine: str, seconds: int | None) -> None:
    """The time for streams is read behind the flag that the file names, and nothing false is said of it."""
    checked = check(tmp_path, f"{IMAGE}engine: {engine}\n", "--json")
    found = json.loads(checked.output)
    assert found["behaviour"]["stream_seconds"] == seconds
    assert any("nobody tells" in remark for remark in found["remarks"]) == (seconds is None)


@pytest.mark.parametrize(
    ("engine", "empty"),
    [
        ("{port: 9000}", True),
        ("{shutdownTimeoutFlag: --drain-seconds}", True),
        ("{args: []}", True),
        ("{args: [--shutdown-timeout, '60']}", False),
        ("{args: [m]}", False),
    ],
)
def test_check_says_whether_the_file_has_arguments(tmp_path: Path, engine: str, *, empty: bool) -> None:
    """What the chart adds is not taken for the file's own."""
    remarks = json.loads(check(tmp_path, f"{IMAGE}engine: {engine}\n", "--json").output)["remarks"]
    assert any("engine.args is empty" in remark for remark in remarks) == empty


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        ("", "replicaCount is 1"),
        ("", "names no accelerator"),
        ("replicaCount: 0\n", "nothing serves"),
        ("rollout: {maxSurge: 0}\n", "every rollout has an outage"),
        ("rollout: {preStopSeconds: 0, terminationGracePeriodSeconds: 5}\n", "0 s to finish its streams"),
        ("engine: {args: [--shutdown-timeout=500]}\n", "gives streams 500 s, but the engine is killed 80 s after"),
        (
            f"engine: {{args: [--shutdown-timeout={'9' * 5000}]}}\n",
            "gives streams 1000000000 s, but the engine is killed",
        ),
        ("engine: {shutdownTimeoutFlag: ''}\n", "nobody tells the engine"),
        ("engine: {args: [--shutdown-timeout=long]}\n", "nobody tells the engine in seconds"),
        ("resources: {limits: {memory: 500m}}\n", "limits.memory is 500m, in thousandths of a byte"),
        ("", "engine.env.HOME is not set"),
        ("", "engine.args is empty"),
    ],
)
def test_check_points_at_what_may_not_be_meant(tmp_path: Path, values: str, remark: str) -> None:
    """A good file can still surprise its author."""
    checked = check(tmp_path, IMAGE + values)
    assert checked.exit_code == 0
    assert remark in checked.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: b: c\n", "line 1, column 5: mapping values are not allowed here"),
        (b"- a\n", "holds no keys"),
        (b"a: 1\n\nb: \xff", "line 3: byte 0xff is not UTF-8"),
        (b"a: 1\n\nb: \x01\n", r"line 3: '\x01' cannot stand in YAML"),
        (b"a: 1\n---\nb: 2\n", "line 2, column 1: expected a single document"),
        (b"a: &a 1\nb: &a 2\n", "line 2, column 4: found duplicate anchor 'a'; keep one document, and one anchor"),
        (b"a: !other 1\n", "line 1, column 4: holds a value without a meaning (could not determine a constructor"),
        (b"a: !!int one\n", "line 1, column 4: holds a value without a meaning ('one' is not what its tag says)"),
        (b"a: {[1]: 2}\n", "line 1, column 5: holds a value without a meaning (found unhashable key)"),
    ],
)
def test_check_refuses_what_is_no_values_file(tmp_path: Path, content: bytes, said: str) -> None:
    """One message with the place, no traceback of YAML's."""
    file = tmp_path / "values.yaml"
    file.write_bytes(content)
    refused = invoke("check", file)
    assert isinstance(refused.exception, UsageError)
    assert said in str(refused.exception)


def test_check_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The message names the file."""
    refused = invoke("check", tmp_path / "none.yaml")
    assert isinstance(refused.exception, UsageError)
    assert "none.yaml: No such file or directory" in str(refused.exception)


def test_check_takes_an_empty_file_for_no_values(tmp_path: Path) -> None:
    """Then only what is required is missing."""
    checked = check(tmp_path, "", "--json")
    assert {problem["key"] for problem in json.loads(checked.output)["problems"]} == {
        "image.digest",
        "image.repository",
    }


@pytest.mark.parametrize(
    ("option", "value", "longest"),
    [
        ("--release", "--skip-schema-validation", 53),
        ("--release", "--help", 53),
        ("--release", "", 53),
        ("--release", "Chat", 53),
        ("--release", "chat\n", 53),
        ("--release", "a" * 54, 53),
        ("--namespace", "", 63),
        ("--namespace", "a b/c", 63),
        ("--namespace", "--debug", 63),
        ("--namespace", "a" * 64, 63),
    ],
)
def test_check_refuses_a_name_that_kubernetes_would_not_take(
    tmp_path: Path, option: str, value: str, longest: int
) -> None:
    """One line with the option, the value and the rule; no name reaches Helm as an option of its own."""
    refused = check(tmp_path, IMAGE + "rolout: {}\n", f"{option}={value}")
    assert isinstance(refused.exception, UsageError)
    assert str(refused.exception).startswith(f"{option} {value!r}: use 1 to {longest} lower-case letters")
    assert "\n" not in str(refused.exception)


def test_check_takes_the_longest_namespace(tmp_path: Path) -> None:
    """63 characters are within the limit of a DNS label."""
    assert check(tmp_path, IMAGE, "--namespace", "a" * 63).exit_code == 0


def test_no_name_reaches_helm_as_an_option(tmp_path: Path) -> None:
    """Whoever renders with a name that looks like an option gets Helm's refusal of the name."""
    file = tmp_path / 'a,b "c".yaml'
    file.write_text("rolout: {}\n", encoding="utf-8")
    with pytest.raises(rendering.ChartRefusal, match="invalid release name"):
        rendering.render([file], release="--skip-schema-validation")
    with pytest.raises(rendering.ChartRefusal, match="'rolout' not allowed"):
        rendering.render([file], namespace="--skip-schema-validation")


def test_helm_that_is_killed_has_refused_nothing(tmp_path: Path) -> None:
    """The file is not called wrong when nobody has judged it."""
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho working >&2\nkill -KILL $$\n")
    helm.chmod(0o700)
    with pytest.raises(EnvironmentProblem, match=r"helm ended with code -9 .*\nworking") as ended:
        rendering.render(text=IMAGE, helm=helm)
    assert ended.value.exit_code == 2
