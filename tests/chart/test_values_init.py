"""``inferctl values init``: the file that an app team begins with, and what is never written over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from inferctl.errors import UsageError
from inferctl.values.starter import Wish, values_file
from tests.chart.values_command import DIGEST, check, invoke

if TYPE_CHECKING:
    from pathlib import Path


def test_init_writes_what_check_accepts(tmp_path: Path) -> None:
    """A file that was begun with an image is good as it is."""
    file = tmp_path / "values.yaml"
    begun = invoke("init", file, "--model", "org/model-8b", "--image", f"a/b@{DIGEST}", "--longest-answer", 300)
    assert (begun.exit_code, begun.output) == (0, f"wrote {file}\n")
    checked = invoke("check", file, "--json")
    assert checked.exit_code == 0
    found = json.loads(checked.output)
    assert found["good"]
    assert found["behaviour"]["stream_seconds"] == 300
    assert found["behaviour"]["model"] == "org/model-8b"


def test_init_without_an_image_says_what_is_missing(tmp_path: Path) -> None:
    """The file is written, both commands name what is to be filled in."""
    file = tmp_path / "values.yaml"
    assert "image.digest are still to be filled in" in invoke("init", file, "--model", "m").output
    checked = invoke("check", file)
    assert checked.exit_code == 1
    assert "image.digest is required (sha256:...)" in checked.output


def test_init_replaces_nothing_unasked(tmp_path: Path) -> None:
    """A file that is there stays, and the message says how to replace it."""
    file = tmp_path / "values.yaml"
    file.write_text("mine")
    refused = invoke("init", file, "--model", "m")
    assert isinstance(refused.exception, UsageError)
    assert "--force" in str(refused.exception)
    assert file.read_text() == "mine"
    assert invoke("init", file, "--model", "m", "--force").exit_code == 0


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
    assert check(tmp_path, values_file(Wish("1e3", image=f"a@{DIGEST}"))).exit_code == 0


def test_init_refuses_an_image_without_a_digest() -> None:
    """A tag is refused with the form that is wanted."""
    with pytest.raises(UsageError, match=r"--image a:v1: write it as repository@sha256"):
        values_file(Wish("m", image="a:v1"))


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
    refused = invoke("init", link, "--model", "m")
    assert isinstance(refused.exception, UsageError)
    assert "is there already" in str(refused.exception)
    assert not target.exists()
    assert invoke("init", link, "--model", "m", "--force").exit_code == 0
    assert link.is_symlink()
    assert "name: m" in target.read_text()


def test_init_keeps_the_permissions_of_a_file_that_it_replaces(tmp_path: Path) -> None:
    """A file that only its owner reads stays so."""
    file = tmp_path / "values.yaml"
    file.write_text("mine")
    file.chmod(0o600)
    assert invoke("init", file, "--model", "m", "--force").exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600


def test_init_replaces_no_device(tmp_path: Path) -> None:
    """What is no regular file stays what it is."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused = invoke("init", pipe, "--model", "m", "--force")
    assert isinstance(refused.exception, UsageError)
    assert "is no regular file" in str(refused.exception)
    assert pipe.is_fifo()


@pytest.mark.parametrize("model", ["", " ", "--force", "a\nb", "a\x1b[31m", "a\x7f", "a\udcff", "m" * 4097])
def test_init_refuses_a_model_without_a_name_that_is_text(tmp_path: Path, model: str) -> None:
    """One printable line names the option and the value, and nothing is written."""
    refused = invoke("init", tmp_path / "values.yaml", "--model", model)
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
