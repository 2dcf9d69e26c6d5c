"""``inferctl values check``: the files that it takes, wherever they are, and those that it refuses before they cost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inferctl.errors import UsageError
from inferctl.values import composing, reading, source
from inferctl.values.commands import app

GOOD = f"image: {{repository: a, digest: 'sha256:{'0' * 64}'}}\n"
CHECK = [sys.executable, "-m", "inferctl", "values", "check"]
SECONDS = 30  # what a check may take on a busy machine


def _run(*words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CHECK, *words], input=given, capture_output=True, text=True, check=False, timeout=SECONDS, encoding="utf-8"
    )


def _refusal(file: Path) -> str:
    """The one line with which a file is refused that cannot be judged."""
    refused = CliRunner().invoke(app, ["check", str(file)])
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.exit_code == 2
    assert str(refused.exception).isprintable()
    return str(refused.exception)


def _written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "values.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "name",
    ["a,b.yaml", 'it\'s "mine".yaml', "two\nlines.yaml", "%zz.yaml", "http:x.yaml", "-x.yaml", "\udcff.yaml", "{a}"],
)
def test_a_good_file_is_good_under_any_name(tmp_path: Path, name: str) -> None:
    """Helm never sees the name; the result shows it on one printable line."""
    file = tmp_path / name
    file.write_text(GOOD, encoding="utf-8")
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert checked.exit_code == 0, checked.output
    first = checked.output.splitlines()[0]
    assert first.endswith(": the chart accepts it, and every value arrives as written")
    assert reading.name(file) in first


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
def test_standard_input_is_read_once(name: str) -> None:
    """What comes through a pipe is gone once it is read, and Helm is given that text."""
    assert _run(name, given=GOOD).returncode == 0
    wrong = _run(name, given=GOOD + "rolout: {}\n")
    assert (wrong.returncode, wrong.stderr) == (1, "")
    called = "standard input" if name == "-" else name
    assert wrong.stdout.splitlines()[0] == f"{called}:2: rolout: is no key of a values file"


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """A pipe may be opened by its writer later, and give its text in pieces."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("w", encoding="utf-8") as stream:
            for line in (GOOD, "replicaCount: 2\n"):
                stream.write(line)
                stream.flush()

    writer = threading.Thread(target=write)
    writer.start()
    checked = CliRunner().invoke(app, ["check", str(pipe), "--json"])
    writer.join(SECONDS)
    assert json.loads(checked.output)["behaviour"]["replicas"] == 2


def test_a_pipe_without_a_writer_is_named_and_may_be_interrupted(tmp_path: Path) -> None:
    """What is waited for is said, and Ctrl-C ends it with the exit code of an interrupt."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([*CHECK, str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for {pipe}; Ctrl-C gives up\n"
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in "".join(said)


@pytest.mark.parametrize(("name", "said"), [("/dev/zero", "is no regular file"), ("/", "is a folder")])
def test_what_is_no_file_is_refused_unread(name: str, said: str) -> None:
    """A device or a folder is named as what it is."""
    assert f"{name}: {said}; name a values file" in _refusal(Path(name))


def test_a_file_larger_than_a_release_is_refused_unread(tmp_path: Path) -> None:
    """The limit is exact, and a file of a tebibyte is refused like one of a byte too much."""
    file = tmp_path / "values.yaml"
    file.write_bytes(b"#" * reading.LARGEST)
    assert len(reading.text(file)) == reading.LARGEST
    for size in (reading.LARGEST + 1, 2**40):
        os.truncate(file, size)
        assert f"is larger than {reading.LARGEST} bytes" in _refusal(file)


def test_an_endless_standard_input_is_refused() -> None:
    """It is read up to the limit and no further."""
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run([*CHECK, "-"], stdin=endless, capture_output=True, check=False, timeout=SECONDS)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: standard input: is larger than")


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]
    return "\n".join(lines)


def _merges() -> str:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{level}: &a{level} {{<<: [*a{level - 1}, *a{level - 1}]}}" for level in range(1, 30)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_bomb(), f"holds more than {composing.MOST_NODES} keys and values with its aliases expanded"),
        (_merges(), f"holds more than {composing.MOST_NODES} keys and values with its aliases expanded"),
        ("a: [" + "1," * composing.MOST_NODES + "]", f"holds more than {composing.MOST_NODES} keys"),
        ("a:\n  b: &a [*a]\n", "line 2: holds an alias of itself"),
        ("a: 1" + ":1" * 400_000, "line 1: holds a number of 800001 characters"),
        ("[" * 100_000, "is nested too deeply"),
    ],
    ids=["lists", "merges", "items", "itself", "number", "depth"],
)
def test_what_would_take_for_ever_to_expand_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The file is named and refused before anything follows its aliases."""
    assert f"values.yaml: {said}" in _refusal(_written(tmp_path, text))


def test_as_many_values_as_are_allowed_are_read() -> None:
    """The limit is exact, whether values are written out or stand for others."""
    written = composing.MOST_NODES - 3  # beside the document, its key and the list
    aliased = composing.MOST_NODES // 2 - 2  # twice, with their list, beside the document
    for form, items in (("a: [{}]", written), ("- &a [{}]\n- *a\n", aliased)):
        composing.compose(form.format("x," * items))
        with pytest.raises(UsageError, match="holds more than"):
            composing.compose(form.format("x," * (items + 1)))


def test_repeated_keys_are_found_in_lists_and_said_once() -> None:
    """A mapping inside a list is looked into, and one that an alias stands for only where it is written."""
    text = "extraVolumes:\n  - &v\n    name: a\n    name: b\n  - *v\n  - [{k: 1, k: 2}]\n"
    assert source.parse(text, "values.yaml").repeated_keys == [
        ("extraVolumes[0].name", 4),
        ("extraVolumes[2][0].k", 6),
    ]


def test_a_merged_key_is_not_taken_for_a_repeated_one() -> None:
    """A mapping may replace a key of the one that it merges."""
    read = source.parse("a: &a {k: 1}\nb: {<<: *a, k: 2}\n", "values.yaml")
    assert read.repeated_keys == []
    assert read.values == {"a": {"k": 1}, "b": {"k": 2}}


def test_check_finds_a_key_that_stands_twice_in_a_list(tmp_path: Path) -> None:
    """Helm would take the last in silence: the check fails and names the item."""
    file = _written(tmp_path, GOOD + "extraVolumes:\n  - name: a\n    name: b\n    emptyDir: {}\n")
    checked = CliRunner().invoke(app, ["check", str(file)])
    assert checked.exit_code == 1
    assert "values.yaml:4: extraVolumes[0].name: stands twice" in checked.output


def test_as_many_problems_as_keys_are_told_in_time(tmp_path: Path) -> None:
    """Each of as many wrong keys as a file can hold has its line; nothing is searched anew for each."""
    most = (composing.MOST_NODES - 1) // 2  # a key and a value each, in one document
    file = _written(tmp_path, "".join(f"k{number}: 1\n" for number in range(1, most + 1)))
    done = _run(str(file), "--json")
    assert done.returncode == 1
    lines = {problem["key"]: problem["line"] for problem in json.loads(done.stdout)["problems"]}
    assert lines[f"k{most}"] == most


def test_half_a_character_is_told_without_a_traceback(tmp_path: Path) -> None:
    """Helm refuses it in its own words, which can be printed, as JSON too."""
    file = _written(tmp_path, GOOD + '"k\\ud800": 1\n"k\\ud800": 2\n')
    for options in ([], ["--json"]):
        done = _run(str(file), *options)
        assert (done.returncode, done.stderr) == (1, "")
        assert "Helm cannot read it" in done.stdout
        assert "\\ud800" in done.stdout
