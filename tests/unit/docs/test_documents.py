"""Documents lead somewhere: their links exist, their commands are real, and what is generated is current."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import typer
from markdown_it import MarkdownIt
from typer.core import TyperGroup
from typer.main import get_command

from inferctl import reference
from inferctl.application import app
from inferctl.checks.files import of_checkout
from inferctl.checks.programs import environment
from inferctl.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENTS = [name for name in of_checkout(ROOT) if name.endswith(".md")]
_ADR = ROOT / "docs" / "adr"
_SECTIONS = ["Context", "Options", "Decision", "Consequences", "Confirmation"]
_TEMPLATE = ROOT / "docs" / "walkthrough.template.md"
#: Made by `just walkthrough` from a real run, so it may not be there in the middle of a change.
_WALKTHROUGH = ROOT / "docs" / "walkthrough.md"
_JUST = shutil.which("just", path=environment()["PATH"]) or "just"


def _links(document: str) -> list[str]:
    """Where the links and images of a document lead."""
    found = []
    for token in MarkdownIt().parse((ROOT / document).read_text()):
        for inner in token.children or ():
            found += [str(inner.attrs[key]) for key in ("href", "src") if key in inner.attrs]
    return found


def _anchors(path: Path) -> set[str]:
    """The anchors that a document's headings make, as code hosts name them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken(document: str) -> list[str]:
    broken = []
    for link in _links(document):
        if re.match(r"https?://|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        path = (ROOT / document).parent / name if name else ROOT / document
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in _anchors(path)):
            broken.append(link)
    return broken


def _commands(document: str) -> list[list[str]]:
    """Every command line in the code of a document that is ours, as words; comments and continuations are gone."""
    lines = []
    for token in MarkdownIt().parse((ROOT / document).read_text()):
        if token.type == "fence" and token.info.strip() in {"", "sh", "bash", "console"}:
            lines += token.content.replace("\\\n", " ").splitlines()
        lines += [inner.content for inner in token.children or () if inner.type == "code_inline"]
    return [words for line in lines if (words := _ours(line))]


def _ours(line: str) -> list[str]:
    line = re.sub(r"^(\$ |sudo |nix develop \S+ -c |[A-Z_]+=\S+ |\.venv/bin/)*", "", line.strip())
    if not line.startswith(("./just ", "just ", "inferctl ")):
        return []
    words = shlex.split(re.split(r" [|>]| && |\s{2,}", line)[0], comments=True)
    return [words[0].removeprefix("./"), *words[1:]]


def _wrong_with(words: list[str]) -> str:
    """Why this command could not be run; empty if it could."""
    if any(word.isupper() or "…" in word or word == "..." for word in words[1:]):
        words = words[:2]  # names in capitals stand for something
    return _unknown_recipe(words[1:]) if words[0] == "just" else _unknown_command(words[1:])


def _unknown_recipe(words: list[str]) -> str:
    if words[0].startswith("-") or words[0].isupper():
        return ""
    ended = subprocess.run(
        [_JUST, "--dry-run", *words], cwd=ROOT, check=False, capture_output=True, text=True, env=environment()
    )
    return ended.stderr.strip() if ended.returncode else ""


def _unknown_command(words: list[str]) -> str:
    command, parent = get_command(app), None
    while words and isinstance(command, TyperGroup):
        if words[0].startswith("-") or words[0].isupper():
            return ""
        name, *words = words
        # Several commands may be named at once: up|down.
        inner = [command.commands.get(one) for one in name.split("|")]
        if None in inner:
            return f"there is no command {name}"
        command, parent = inner[0], typer.Context(command, parent=parent)  # type: ignore[assignment]
    if not words:
        return ""
    try:
        command.make_context("x", list(words), parent=parent)
    except Exception as error:  # noqa: BLE001 - whatever typer says of these words is the finding
        return "" if type(error).__name__ in {"Exit", "MissingParameter"} else str(error)
    return ""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files_and_headings_that_exist(document: str) -> None:
    """Every relative link has its file, and every anchor its heading."""
    assert _broken(document) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """The control: a wrong file and a wrong heading are both reported, and right ones are not."""
    (tmp_path / "a.md").write_text("# One thing\n[x](b.md) [y](#one-thing) [z](#two) [u](https://example.com/)\n")
    assert _broken(str(tmp_path / "a.md")) == ["b.md", "#two"]


def _missing_tests(text: str) -> list[str]:
    """The tests that a document names and nothing defines."""
    sources = [ROOT / name for name in of_checkout(ROOT) if re.search(r"(^|/)test_\w+\.py$", name)]
    defined = {name for source in sources for name in re.findall(r"^def (test_\w+)", source.read_text(), re.MULTILINE)}
    return [name for name in re.findall(r"`(test_\w+)`", text) if name not in defined]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_tests_that_documents_name_exist(document: str) -> None:
    """A document that says which test holds something names one that there is."""
    assert _missing_tests((ROOT / document).read_text()) == []


def test_a_test_that_does_not_exist_is_found() -> None:
    """The control: a made-up name is reported, this test's own is not."""
    assert _missing_tests("`test_nothing` `test_a_test_that_does_not_exist_is_found`") == ["test_nothing"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_in_documents_exist(document: str) -> None:
    """Every recipe, command and option that a document tells people to type is one."""
    wrong = {" ".join(words): why for words in _commands(document) if (why := _wrong_with(words))}
    assert wrong == {}


@pytest.mark.parametrize(
    "line",
    ["./just rolout-test", "inferctl clutser up", "inferctl cluster up --nmae x", "inferctl check --jobs none"],
)
def test_a_wrong_command_is_found(line: str) -> None:
    """The control: a misspelt recipe, command or option, and a value of the wrong kind, are reported."""
    assert _wrong_with(_ours(line))


def test_command_reference_is_current() -> None:
    """docs/commands.md is what `just docs` writes now."""
    assert reference.PAGE.read_text() == reference.page(), "run: ./just docs"


def test_walkthrough_is_made_from_its_template() -> None:
    """Without its output, the walkthrough is the template: no hand has changed one of them alone."""
    spec = importlib.util.spec_from_file_location("make_walkthrough", ROOT / "docs" / "make_walkthrough.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.without_output(_WALKTHROUGH.read_text()) == _TEMPLATE.read_text(), "run: ./just walkthrough"


@pytest.mark.parametrize("page", sorted(_ADR.glob("0*.md")), ids=lambda page: page.stem)
def test_decision_has_every_part_and_its_place_in_the_list(page: Path) -> None:
    """A decision is one page with its number, five parts, tests that confirm it, and an entry in the list."""
    text = page.read_text()
    assert text.startswith(f"# {page.name[:4]} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == _SECTIONS
    confirmed_by = re.findall(r"\]\((\S+)\)", text.rpartition("## Confirmation")[2])
    assert [link for link in confirmed_by if re.search(r"/tests(/|$)", link) and (_ADR / link).exists()]
    assert len(text.split()) < 600
    assert f"]({page.name})" in (_ADR / "README.md").read_text()


def test_decisions_are_numbered_without_gaps() -> None:
    """Numbers are never used twice and never left out."""
    numbers = [int(page.name[:4]) for page in sorted(_ADR.glob("0*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_first_screen_of_the_readme_has_the_two_commands() -> None:
    """Whoever opens the project sees what to type, what it does and how long it takes."""
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:40])
    assert "./just rollout-test" in screen
    assert "./just check" in screen
    assert "verdict: proven" in screen


def test_every_document_of_a_task_is_in_the_list() -> None:
    """docs/README.md leads to every page."""
    listed = set(_links("docs/README.md"))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md", _TEMPLATE.name}
    assert pages - listed == set()
