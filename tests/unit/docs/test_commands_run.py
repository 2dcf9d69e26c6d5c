"""What the first documents tell people to type is run: here all that needs no cluster, the rest in tests/e2e."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inferctl.paths import ROOT
from inferctl.process.command import run as output_of
from tests.documents import DOCUMENTS, LEFT_OUT, commands, lay_out, needs_cluster, run

if TYPE_CHECKING:
    from pathlib import Path

_VARIABLES = {"IMAGE": f"registry.example.com/team/engine@sha256:{'0' * 64}"}
#: What is run here in place of a command, and how the two begin.
_IN_PLACE_OF = {"helm upgrade --install ": "helm template "}
#: That something is lacking is an answer too.
_ALSO_ENDS_WITH = {"./just doctor": 2}
_SECONDS = 120


def _without_cluster(text: str) -> list[str]:
    """The commands of a document that need no cluster; for an installation, the rendering of what it would install."""
    lines = []
    for command in commands(text):
        in_place = [command.replace(one, other, 1) for one, other in _IN_PLACE_OF.items() if command.startswith(one)]
        if in_place:
            lines += in_place
        elif command in _ALSO_ENDS_WITH:
            lines.append(f"{command} || [ $? = {_ALSO_ENDS_WITH[command]} ]")
        elif command not in LEFT_OUT and not needs_cluster(command):
            lines.append(command)
    return lines


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_that_need_no_cluster_work(document: str, tmp_path: Path) -> None:
    """Typed one after the other, each succeeds, and the values file that they make is one that the chart takes."""
    done = run(_without_cluster((ROOT / document).read_text()), tmp_path, _VARIABLES, seconds=_SECONDS)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "my-model.yaml").is_file()
    assert "kind: Deployment" in done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("inferctl values check my-model.yaml", "inferctl values check my-modle.yaml"),
        ("inferctl values init my-model.yaml", "inferctl values int my-model.yaml"),
    ],
)
def test_readme_with_a_wrong_command_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    """The control: one misspelt file or command, and the test above fails."""
    text = (ROOT / "README.md").read_text()
    assert right in text
    assert run(_without_cluster(text.replace(right, wrong)), tmp_path, _VARIABLES, seconds=_SECONDS).returncode != 0


def test_commands_that_are_not_run_are_still_there() -> None:
    """No reason outlives its command, and what needs a cluster is what the tests with a cluster run."""
    typed = [command for document in DOCUMENTS for command in commands((ROOT / document).read_text())]
    assert set(LEFT_OUT) <= set(typed)
    assert [command for command in typed if needs_cluster(command)]


@pytest.mark.parametrize("recipe", ["./just cluster-up", "./just deploy", "./just something-new"])
def test_recipe_that_a_text_names_is_not_run_without_a_cluster_for_it(recipe: str) -> None:
    """Whatever a document mentions, these tests run only what is known to touch neither a cluster nor the machine."""
    text = f"Type `{recipe}`, then `./just doctor`."
    assert recipe in commands(text)
    (line,) = _without_cluster(text)
    assert line.startswith("./just doctor ")


def test_files_of_a_persons_own_are_out_of_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A values file that somebody wrote beside the README is not there, and no file there leads back to theirs."""
    theirs, copy = tmp_path / "theirs", tmp_path / "copy"
    for folder in (theirs / "docs", copy):
        folder.mkdir(parents=True)
    for name in ("README.md", "docs/page.md", "my-model.yaml"):
        (theirs / name).write_text("theirs")
    output_of(["git", "init", "--quiet"], cwd=theirs)
    output_of(["git", "add", "README.md", "docs"], cwd=theirs)
    lay_out(copy, theirs)
    assert {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()} == {"README.md", "docs/page.md"}
    assert "my-model.yaml" in capsys.readouterr().out
    (copy / "docs" / "page.md").write_text("changed")
    assert (theirs / "docs" / "page.md").read_text() == "theirs"
