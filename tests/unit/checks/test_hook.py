"""The pre-commit hook, in real git repositories: what is staged is checked, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from inferctl.checks import staged
from inferctl.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_GOOD = '"""Says nothing."""\n'
_BAD = "import os\n"
# What ./just _staged runs, in a repository that is not this one.
_JUST = f"""\
#!/bin/sh
[ "$1" = _staged ] || exit 9
exec '{sys.executable}' -c '
import pathlib
from inferctl.checks import hook_commands
hook_commands.ROOT = pathlib.Path.cwd()
hook_commands.app(["staged"])
'
"""


@dataclass(frozen=True)
class Repository:
    """A git repository with the hook in it."""

    root: Path

    def git(self, *words: str) -> str:
        """Run git; an error fails the test."""
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def write(self, name: str, content: str) -> None:
        """Write a file of the working tree."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def commit(self, *options: str) -> tuple[bool, str]:
        """Try to commit; whether git did, and what was said."""
        ended = subprocess.run(
            ["git", "commit", "--message=x", *options], cwd=self.root, check=False, capture_output=True, text=True
        )
        return ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit and the hook installed."""
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    repository = Repository(tmp_path / "a repository")
    repository.root.mkdir()
    repository.git("init", "--quiet")
    repository.git("config", "user.name", "Somebody")
    repository.git("config", "user.email", "somebody@example.com")
    repository.write("pyproject.toml", '[tool.ruff.lint]\nselect = ["F"]\n')
    repository.write("just", _JUST)
    (repository.root / "just").chmod(0o755)
    repository.write("good.py", _GOOD)
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message=first")
    staged.install(repository.root)
    return repository


def test_bad_file_is_not_committed(repository: Repository) -> None:
    """The commit is refused, and the message has the file, the line and what to do."""
    repository.write("bad.py", _BAD)
    repository.git("add", "bad.py")
    committed, said = repository.commit()
    assert not committed
    assert "bad.py:1:8: F401" in said
    assert "not committed: ruff check failed; mend, git add, commit" in said


def test_staged_content_counts_although_the_working_tree_is_mended(repository: Repository) -> None:
    """What would be committed is bad, so mending it without staging does not help."""
    repository.write("file.py", _BAD)
    repository.git("add", "file.py")
    repository.write("file.py", _GOOD)
    assert not repository.commit()[0]
    repository.git("add", "file.py")
    assert repository.commit()[0]


def test_working_tree_does_not_count(repository: Repository) -> None:
    """Bad work that is not staged, tracked or not, holds up no commit and is left as it is."""
    repository.write("file.py", _GOOD)
    repository.git("add", "file.py")
    repository.write("file.py", _BAD)
    repository.write("untracked.py", _BAD)
    assert repository.commit()[0]
    assert (repository.root / "file.py").read_text() == _BAD
    assert repository.git("show", "HEAD:file.py") == _GOOD


def test_any_name_is_checked(repository: Repository) -> None:
    """Names with spaces, quotes, dashes and line breaks are one file each, and none is left out."""
    names = ["a b.py", "it's.py", 'quo"ted.py', "-dash.py", "né.py", "new\nline.py", "$(touch x).py"]
    for name in names:
        repository.write(name, _BAD)
        repository.git("add", "--", name)
    committed, said = repository.commit()
    assert not committed
    assert said.count(": F401 ") == len(names)
    for name in names:
        repository.write(name, _GOOD)
        repository.git("add", "--", name)
    assert repository.commit()[0]


def test_renamed_file_is_checked_under_its_new_name(repository: Repository) -> None:
    """A file that was never looked at before is looked at when it becomes Python."""
    repository.write("notes.txt", _BAD)
    repository.git("add", "notes.txt")
    assert repository.commit()[0]
    repository.git("mv", "notes.txt", "notes.py")
    committed, said = repository.commit()
    assert not committed
    assert "notes.py" in said


def test_renamed_good_file_is_committed(repository: Repository) -> None:
    """The old name, which is gone, troubles nobody."""
    repository.git("mv", "good.py", "better one.py")
    assert repository.commit()[0]


def test_deleted_file_is_committed(repository: Repository) -> None:
    """A file that is gone cannot be linted, also when it is there again in the working tree."""
    repository.git("rm", "--quiet", "good.py")
    repository.write("good.py", _BAD)
    assert repository.commit()[0]


def test_commit_of_everything_and_of_one_path_see_what_they_commit(repository: Repository) -> None:
    """With -a, and with a path, git makes an index for the commit alone; that is the one that is checked."""
    repository.write("good.py", _BAD)
    assert not repository.commit("--all")[0]
    repository.write("other.py", _GOOD)
    repository.git("add", "other.py")
    assert not repository.commit("good.py")[0]
    assert repository.commit("other.py")[0]


def test_staged_configuration_is_the_one_that_counts(repository: Repository) -> None:
    """Linters are configured by what is staged too."""
    repository.write("bad.py", _BAD)
    repository.write("pyproject.toml", '[tool.ruff.lint]\nselect = ["W"]\n')
    repository.git("add", "bad.py")
    assert not repository.commit()[0]
    repository.git("add", "pyproject.toml")
    assert repository.commit()[0]


def test_first_commit_of_all_is_checked(tmp_path: Path, repository: Repository) -> None:
    """A repository without any commit has staged files too."""
    fresh = Repository(tmp_path / "fresh")
    fresh.root.mkdir()
    fresh.git("init", "--quiet")
    fresh.git("config", "user.name", "Somebody")
    fresh.git("config", "user.email", "somebody@example.com")
    fresh.write("just", (repository.root / "just").read_text())
    (fresh.root / "just").chmod(0o755)
    staged.install(fresh.root)
    fresh.write("bad.py", _BAD)
    fresh.git("add", "bad.py")
    assert not fresh.commit()[0]


def test_link_is_not_followed(repository: Repository) -> None:
    """A symbolic link to a bad file elsewhere is no content of this commit."""
    outside = repository.root.parent / "outside.py"
    outside.write_text(_BAD)
    (repository.root / "link.py").symlink_to(outside)
    repository.git("add", "link.py")
    assert repository.commit()[0]


def test_worktree_uses_its_own_files(repository: Repository) -> None:
    """The hook serves every worktree, each with what is staged there."""
    other = Repository(repository.root.parent / "worktree")
    repository.git("worktree", "add", "--quiet", str(other.root))
    other.write("bad.py", _BAD)
    other.git("add", "bad.py")
    assert not other.commit()[0]
    assert not repository.git("status", "--porcelain")


def test_another_hook_is_left_alone(repository: Repository) -> None:
    """A hook that was not made here is not replaced; our own is written anew as often as one likes."""
    hook = staged.install(repository.root)
    assert hook == repository.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match="was not made here; move it away"):
        staged.install(repository.root)
    assert hook.read_text() == "#!/bin/sh\n"


def test_hook_goes_where_git_looks(repository: Repository) -> None:
    """A repository whose hooks are elsewhere gets it there."""
    repository.git("config", "core.hooksPath", "our hooks")
    assert staged.install(repository.root) == repository.root / "our hooks" / "pre-commit"
