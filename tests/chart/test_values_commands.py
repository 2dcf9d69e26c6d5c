"""``inferctl values``: what an app team sees before anything is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from inferctl.errors import EnvironmentProblem, UsageError
from inferctl.values import rendering
from inferctl.values.commands import app
from inferctl.values.starter import Wish, values_file

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

DIGEST = "sha256:" + "0" * 64
IMAGE = f"image: {{repository: a, digest: '{DIGEST}'}}\n"


def _invoke(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def _check(tmp_path: Path, text: str, *options: str) -> Result:
    file = tmp_path / "values.yaml"
    file.write_text(text, encoding="utf-8")
    return _invoke("check", file, *options)


def test_init_writes_what_check_accepts(tmp_path: Path) -> None:
    """A file that was begun with an image is good as it is."""
    file = tmp_path / "values.yaml"
    begun = _invoke("init", file, "--model", "org/model-8b", "--image", f"a/b@{DIGEST}", "--longest-answer", 300)
    assert (begun.exit_code, begun.output) == (0, f"wrote {file}\n")
    checked = _invoke("check", file, "--json")
    assert checked.exit_code == 0
    found = json.loads(checked.output)
    assert found["good"]
    assert found["behaviour"]["stream_seconds"] == 300
    assert found["behaviour"]["model"] == "org/model-8b"


def test_init_without_an_image_says_what_is_missing(tmp_path: Path) -> None:
    """The file is written, both commands name what is to be filled in."""
    file = tmp_path / "values.yaml"
    assert "image.digest are still to be filled in" in _invoke("init", file, "--model", "m").output
    checked = _invoke("check", file)
    assert checked.exit_code == 1
    assert "image.digest is required (sha256:...)" in checked.output


def test_init_replaces_nothing_unasked(tmp_path: Path) -> None:
    """A file that is there stays, and the message says how to replace it."""
    file = tmp_path / "values.yaml"
    file.write_text("mine")
    refused = _invoke("init", file, "--model", "m")
    assert isinstance(refused.exception, UsageError)
    assert "--force" in str(refused.exception)
    assert file.read_text() == "mine"
    assert _invoke("init", file, "--model", "m", "--force").exit_code == 0


@pytest.mark.parametrize("model", ["a: b", "# c", "{{x}}", "0123", "é\u2028", "null", 'q"', "x" * 300, "on"])
def test_init_writes_any_model_name_as_it_is(model: str) -> None:
    """The name is read back from the file unchanged."""
    read = yaml.safe_load(values_file(Wish(model, gpus=0)))
    assert read["model"]["name"] == model
    assert read["engine"]["args"] == [model]


def test_init_writes_what_helm_reads_as_a_text(tmp_path: Path) -> None:
    """What Helm alone takes for a number or a boolean stands in quotes."""
    for model in ("y", "N", "0o7", "1e3", "+1", ".5e1"):
        assert f"  name: '{model}'\n" in values_file(Wish(model))
    assert _check(tmp_path, values_file(Wish("1e3", image=f"a@{DIGEST}"))).exit_code == 0


def test_init_refuses_an_image_without_a_digest() -> None:
    """A tag is refused with the form that is wanted."""
    with pytest.raises(UsageError, match=r"--image a:v1: write it as repository@sha256"):
        values_file(Wish("m", image="a:v1"))


def test_check_names_key_value_and_fix_of_every_problem(tmp_path: Path) -> None:
    """The schema's terse words are completed from its descriptions."""
    checked = _check(tmp_path, IMAGE + "rolout: {}\nengine: {args: [8192], loadTimeoutSeconds: '600'}\n", "--json")
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
    problems = json.loads(_check(tmp_path, text, "--json").output)["problems"]
    lines = {problem["key"]: problem["line"] for problem in problems}
    assert lines == {"rolout": 1, "engine.args[1]": 5, "engine.port": 6}
    said = _check(tmp_path, text).output
    assert "values.yaml:5: engine.args[1]: is 8192" in said
    empty = _check(tmp_path, "", "--json").output
    assert {problem["line"] for problem in json.loads(empty)["problems"]} == {None}


def test_check_says_the_line_that_breaks_a_rule_between_keys(tmp_path: Path) -> None:
    """A refusal by the chart's templates has the line of the key that it names, or of what would hold it."""
    checked = _check(tmp_path, IMAGE + "rollout:\n  maxSurge: 1\n  terminationGracePeriodSeconds: 5\n")
    assert "values.yaml:4: rollout.terminationGracePeriodSeconds" in checked.output
    assert "values.yaml:2: image.digest is required" in _check(tmp_path, "\nimage:\n  repository: a\n").output


def test_check_passes_the_rules_between_keys_on(tmp_path: Path) -> None:
    """What the chart's templates refuse is said with its key."""
    checked = _check(tmp_path, IMAGE + "rollout: {terminationGracePeriodSeconds: 5}\n", "--json")
    (problem,) = json.loads(checked.output)["problems"]
    assert problem["key"] == "rollout.terminationGracePeriodSeconds"
    assert "is not above rollout.preStopSeconds (10)" in problem["message"]


@pytest.mark.parametrize(
    ("written", "read"), [("0123", "83"), ("on", "true"), ("1.10", "1.1"), ("1_000", "1000"), ("1e3", "1000")]
)
def test_check_finds_words_that_yaml_misreads(tmp_path: Path, written: str, read: str) -> None:
    """No chart can see this: an unquoted word arrives as another one."""
    checked = _check(tmp_path, f"{IMAGE}engine:\n  env:\n    PIN: {written}\n", "--json")
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
    problems = json.loads(_check(tmp_path, text, "--json").output)["problems"]
    assert {problem["key"] for problem in problems} == {f"{place}.{name}" for place in places for name in names}
    assert problems[0] == {
        "key": "podLabels.on",
        "message": "is a name that YAML makes another one",
        "fix": 'put it in quotes: "on"',
        "line": 3,
    }
    same = ", ".join([*(f"'{name}': x" for name in names), *(f"{name}: x" for name in set(names.values()))])
    assert _check(tmp_path, IMAGE + "".join(f"{place}: {{{same}}}\n" for place in places)).exit_code == 0


def test_check_finds_numbers_that_begin_with_a_zero(tmp_path: Path) -> None:
    """YAML reads them in base 8, which is meant for a file's mode alone; 08000 and 07 are the same in both."""
    numbers = "replicaCount: 010\nengine: {port: 08000, loadTimeoutSeconds: 07}\n"
    mode = "extraVolumes: [{name: a, secret: {secretName: a, defaultMode: 0440}}]\nglobal: {any: 010}\n"
    checked = _check(tmp_path, IMAGE + numbers + mode, "--json")
    assert checked.exit_code == 1
    (problem,) = json.loads(checked.output)["problems"]
    assert (problem["key"], problem["line"]) == ("replicaCount", 2)
    assert problem["message"] == "is written 010, but YAML makes it 8"


@pytest.mark.parametrize("null", ["null", ""])
def test_check_takes_a_null_for_the_default(tmp_path: Path, null: str) -> None:
    """A key that was left empty is no word that was misread."""
    checked = _check(tmp_path, f"{IMAGE}model:\n  name: {null}\n", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.output)["behaviour"]["model"] == "mock/mock-8b"


def test_check_finds_values_that_a_tag_changes(tmp_path: Path) -> None:
    """Quotes do not keep a text from what YAML is told to make of it."""
    text = "engine: {env: {A: !!int '0123', B: !!bool 'on'}, args: [!!binary aGVsbG8=]}\n"
    problems = json.loads(_check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert {problem["key"]: problem["message"] for problem in problems} == {
        "engine.env.A": "is written 0123, but YAML makes it 83",
        "engine.env.B": "is written on, but YAML makes it true",
        "engine.args[0]": "is written aGVsbG8=, but YAML makes it hello",
    }


def test_check_finds_a_key_that_a_merge_replaces(tmp_path: Path) -> None:
    """Helm goes from top to bottom: what is merged below a key wins over it, and what is merged above does not."""
    bases = f"{IMAGE}global: {{a: &a {{A: '1'}}, b: &b {{B: '1'}}, c: &c {{<<: *a}}}}\nengine:\n  env:\n"
    for merged, replaced in (("*c", {"A"}), ("[*b, *c]", {"A", "B"})):
        checked = _check(tmp_path, f"{bases}    A: '2'\n    B: '2'\n    <<: {merged}\n", "--json")
        problems = json.loads(checked.output)["problems"]
        assert {problem["key"] for problem in problems} == {f"engine.env.{name}" for name in replaced}
        assert {problem["line"] for problem in problems} == {7}
        assert {problem["fix"] for problem in problems} == {"write the line with << first"}
    assert _check(tmp_path, f"{bases}    <<: [*b, *c]\n    A: '2'\n").exit_code == 0


def test_check_names_an_unknown_key_as_it_is(tmp_path: Path) -> None:
    """However Helm quotes it, the key is found in the file, and shown on one line without control characters."""
    names = ["it's", "a', 'b", "end\\", 'back\\slash"q', "a\nb", "\x1b[31mred", "é\u200b"]
    text = f"{IMAGE}engine:\n" + "".join(f"  {json.dumps(name)}: 1\n" for name in names)
    problems = json.loads(_check(tmp_path, text, "--json").output)["problems"]
    found = {problem["key"]: problem["line"] for problem in problems}
    assert found == {f"engine.{name}": line for line, name in enumerate(names, start=3)}
    lines = _check(tmp_path, text).output.split("\n")
    assert all(line.isprintable() for line in lines)
    assert sum(line.endswith("is no key of engine") for line in lines) == len(names)


def test_check_shows_a_refused_word_as_it_is_written(tmp_path: Path) -> None:
    """And not what YAML makes of it, which its author has never seen."""
    said = _check(tmp_path, f"{IMAGE}engine: {{args: [0123, on, y], port: 1:30}}\n").output
    for place, word in (("args[0]", "0123"), ("args[1]", "on"), ("args[2]", "y"), ("port", "1:30")):
        assert f"engine.{place}: is {word}: got " in said


def test_check_finds_what_helm_cannot_read(tmp_path: Path) -> None:
    """Endless numbers and names that are null have no place in JSON: each is named with its line and what to write."""
    text = (
        "engine:\n  env:\n    A: .inf\n    B: -.Inf\n    C: .NaN\n    D: '.inf'\npodLabels:\n  ~: x\n~:\nglobal: .nan"
    )
    problems = json.loads(_check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert [(problem["key"], problem["line"], problem["fix"]) for problem in problems] == [
        ("engine.env.A", 4, 'put it in quotes: ".inf"'),
        ("engine.env.B", 5, 'put it in quotes: "-.Inf"'),
        ("engine.env.C", 6, 'put it in quotes: ".NaN"'),
        ("podLabels.~", 9, 'put it in quotes: "~"'),
        ("~", 10, 'put it in quotes: "~"'),
        ("global", 11, 'put it in quotes: ".nan"'),
    ]


def test_check_hears_nothing_but_refusals_of_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Helm says to those who look for its faults is no part of a problem."""
    monkeypatch.setenv("HELM_DEBUG", "true")
    (problem,) = json.loads(_check(tmp_path, IMAGE + 'a: "\\ud800"\n', "--json").output)["problems"]
    assert problem["message"].startswith("Helm cannot read it: ")
    assert "\n" not in problem["message"]


def test_check_says_of_a_forbidden_value_that_it_is(tmp_path: Path) -> None:
    """And not how the schema forbids it."""
    text = "engine: {env: {A: {secretKeyRef: {name: a, key: ..}}}}\nresources: {limits: {kubernetes.io/x: 1}}\n"
    problems = json.loads(_check(tmp_path, IMAGE + text, "--json").output)["problems"]
    assert {problem["key"]: problem["message"] for problem in problems} == {
        "engine.env.A.secretKeyRef.key": "is ..: not allowed here",
        "resources.limits.kubernetes.io/x": "is 1: not allowed here",
    }


def test_check_takes_dates_for_texts(tmp_path: Path) -> None:
    """As Helm does, whether there is such a day or not."""
    text = "engine: {args: [2024-02-30, 2024-02-01, =]}\npodAnnotations: {2024-02-30: 2024-02-29}\n"
    assert _check(tmp_path, IMAGE + text).exit_code == 0


def test_check_finds_a_key_that_stands_twice(tmp_path: Path) -> None:
    """Helm would take the last in silence."""
    checked = _check(tmp_path, IMAGE + "replicaCount: 1\nreplicaCount: 2\n")
    assert checked.exit_code == 1
    assert "values.yaml:3: replicaCount: stands twice" in checked.output


def test_check_says_what_the_service_will_do(tmp_path: Path) -> None:
    """Load, drain, pods in a rollout and address, in words."""
    text = IMAGE + "replicaCount: 3\nengine: {loadTimeoutSeconds: 900}\n"
    checked = _check(tmp_path, text, "--release", "chat", "--namespace", "search")
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
    checked = _check(tmp_path, IMAGE + "externalAutoscaler: true\n", "--json")
    behaviour = json.loads(checked.output)["behaviour"]
    assert (behaviour["replicas"], behaviour["most_pods"], behaviour["least_ready"]) == (None, None, None)
    assert "as many as the autoscaler says" in _check(tmp_path, IMAGE + "externalAutoscaler: true\n").output


@pytest.mark.parametrize(
    ("surge", "said"),
    [(0, "one pod at a time is replaced in place"), (1, "at most 1 pod(s) more"), (3, "at most 3 pod(s) more")],
)
def test_check_says_how_an_autoscalers_pods_are_replaced(tmp_path: Path, surge: int, said: str) -> None:
    """The words follow rollout.maxSurge."""
    checked = _check(tmp_path, f"{IMAGE}externalAutoscaler: true\nrollout: {{maxSurge: {surge}}}\n")
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
    checked = _check(tmp_path, f"{IMAGE}engine: {engine}\n", "--json")
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
    remarks = json.loads(_check(tmp_path, f"{IMAGE}engine: {engine}\n", "--json").output)["remarks"]
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
    checked = _check(tmp_path, IMAGE + values)
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
    refused = _invoke("check", file)
    assert isinstance(refused.exception, UsageError)
    assert said in str(refused.exception)


def test_check_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The message names the file."""
    refused = _invoke("check", tmp_path / "none.yaml")
    assert isinstance(refused.exception, UsageError)
    assert "none.yaml: No such file or directory" in str(refused.exception)


def test_check_takes_an_empty_file_for_no_values(tmp_path: Path) -> None:
    """Then only what is required is missing."""
    checked = _check(tmp_path, "", "--json")
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
    refused = _check(tmp_path, IMAGE + "rolout: {}\n", f"{option}={value}")
    assert isinstance(refused.exception, UsageError)
    assert str(refused.exception).startswith(f"{option} {value!r}: use 1 to {longest} lower-case letters")
    assert "\n" not in str(refused.exception)


def test_check_takes_the_longest_namespace(tmp_path: Path) -> None:
    """63 characters are within the limit of a DNS label."""
    assert _check(tmp_path, IMAGE, "--namespace", "a" * 63).exit_code == 0


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


def _init_without_room(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run init as a process that may write no byte to a file, as on a full disk."""
    limited = ["prlimit", "--fsize=0", sys.executable, "-m", "inferctl", "values", "init", str(file), "--model", "m"]
    return subprocess.run([*limited, *options], capture_output=True, text=True, check=False)


def test_init_keeps_the_old_file_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    """With --force the old content survives a full disk, and nothing else is left in the folder."""
    file = tmp_path / "values.yaml"
    file.write_text("mine")
    done = _init_without_room(file, "--force")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [f"error: {file}: File too large; choose a place that can be written"]
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_init_leaves_no_half_file(tmp_path: Path) -> None:
    """A new file that cannot be written whole is not there afterwards."""
    done = _init_without_room(tmp_path / "values.yaml")
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_init_writes_through_no_dangling_link_unasked(tmp_path: Path) -> None:
    """Without --force a link that leads nowhere counts as a file; with it, the link stays and its target is written."""
    link, target = tmp_path / "values.yaml", tmp_path / "elsewhere.yaml"
    link.symlink_to(target)
    refused = _invoke("init", link, "--model", "m")
    assert isinstance(refused.exception, UsageError)
    assert "is there already" in str(refused.exception)
    assert not target.exists()
    assert _invoke("init", link, "--model", "m", "--force").exit_code == 0
    assert link.is_symlink()
    assert "name: m" in target.read_text()


def test_init_keeps_the_permissions_of_a_file_that_it_replaces(tmp_path: Path) -> None:
    """A file that only its owner reads stays so."""
    file = tmp_path / "values.yaml"
    file.write_text("mine")
    file.chmod(0o600)
    assert _invoke("init", file, "--model", "m", "--force").exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600


def test_init_replaces_no_device(tmp_path: Path) -> None:
    """What is no regular file stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused = _invoke("init", pipe, "--model", "m", "--force")
    assert isinstance(refused.exception, UsageError)
    assert "is no regular file" in str(refused.exception)
    assert pipe.is_fifo()


@pytest.mark.parametrize("model", ["", " ", "--force", "a\nb", "a\x1b[31m", "a\x7f", "a\udcff", "m" * 4097])
def test_init_refuses_a_model_without_a_name_that_is_text(tmp_path: Path, model: str) -> None:
    """One printable line names the option and the value, and nothing is written."""
    refused = _invoke("init", tmp_path / "values.yaml", "--model", model)
    assert isinstance(refused.exception, UsageError)
    assert str(refused.exception).startswith(f"--model {model[:80]!a}")
    assert str(refused.exception).isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("image", [f"a b@{DIGEST}", f"a@{DIGEST}\n", f"\n@{DIGEST}", f"\udcff@{DIGEST}"])
def test_init_refuses_an_image_that_is_no_address(image: str) -> None:
    """Blanks, line ends and bytes that are not text are in no repository's name."""
    with pytest.raises(UsageError, match="write it as repository@sha256") as refused:
        values_file(Wish("m", image=image))
    assert str(refused.value).isprintable()
