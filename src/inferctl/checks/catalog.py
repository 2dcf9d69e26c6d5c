"""Every check as data: its name, the command, and the files it looks at.

A check is a program that exits with 0 when all is well. Which version of it runs is pinned where all versions are:
in requirements.lock, a go.mod below kube, or flake.lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from inferctl.tools.programs import Program, Purpose, needed_for

if TYPE_CHECKING:
    from collections.abc import Iterable

_PYTHON = ("*.py",)
_SHELL = ("*.sh", "just", ".ci/run")
_YAML = ("*.yml", "*.yaml")
# Templates of Helm are not YAML yet, and what Helm renders is compared byte by byte instead.
_NOT_WRITTEN_AS_YAML = ("charts/inference-service/templates/*", "tests/chart/golden/*")
_PYTEST = ("pytest", "--no-header", "-m", "not cluster and not browser")
_TOOLS = tuple(program.name for program in needed_for({Purpose.CHECK}))
_LOAD_TESTS = "tests/unit/loadtest"
# These start programs by the dozen and take as long as all other unit tests: the two run beside each other.
_COMMAND_TESTS = ("tests/unit/checks", "tests/unit/docs", "tests/unit/test_command_line.py", "tests/unit/test_names.py")


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what a person calls it.
        command: the program and its arguments; it runs in the root of the checkout.
        files: patterns of the files it looks at, which are added to the command; if empty, it finds its own.
        excluded: patterns of files that it leaves out.
        staged: whether it is quick enough to run before each commit, on the staged files alone.
        silent: whether printing anything means failure; some formatters list what they would change and exit with 0.
        closing_line: whether its last line belongs in the report, such as a test runner's count.
        tools: programs that this project builds and that the check runs beside the one of its command.
        nix_only: whether its program comes with the Nix shell alone; elsewhere the report says that it did not run.
    """

    name: str
    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    staged: bool = False
    silent: bool = False
    closing_line: bool = False
    tools: tuple[str, ...] = ()
    nix_only: bool = False

    def select(self, paths: Iterable[str]) -> list[str]:
        """Those of ``paths`` (relative to the root) that this check looks at, in their order."""
        return [path for path in paths if _matches(path, self.files) and not _matches(path, self.excluded)]


#: Those that take longest come first, so that the last one to end is a short one.
CHECKS = (
    Check("command tests", (*_PYTEST, *_COMMAND_TESTS), closing_line=True, tools=_TOOLS),
    Check("load tests", (*_PYTEST, _LOAD_TESTS), closing_line=True),
    Check(
        "unit tests",
        (*_PYTEST, "tests/unit", *(f"--ignore={path}" for path in (_LOAD_TESTS, *_COMMAND_TESTS))),
        closing_line=True,
        tools=_TOOLS,
    ),
    Check("chart tests", (*_PYTEST, "tests/chart"), closing_line=True, tools=_TOOLS),
    Check("mock engine tests", (*_PYTEST, "engines/mock/tests"), closing_line=True),
    Check("mypy", ("mypy", "src", "engines/mock/src", "engines/mock/tests", "loadtest", "tests", "bench", "docs")),
    Check("helm unittest", ("just", "test"), tools=("helm", "helm-unittest")),
    Check("helm lint, kubeconform", ("just", "lint"), tools=("helm", "kubeconform")),
    Check("import-linter", ("lint-imports",)),
    Check("ruff format", ("ruff", "format", "--check", "--quiet", "--force-exclude"), _PYTHON, staged=True),
    Check(
        "ruff check", ("ruff", "check", "--quiet", "--force-exclude", "--output-format=concise"), _PYTHON, staged=True
    ),
    Check("shellcheck", ("shellcheck",), _SHELL, staged=True),
    Check("shfmt", ("shfmt", "-d"), _SHELL, staged=True),
    Check(
        "yamlfmt",
        ("yamlfmt", "-lint", "-quiet", "-no_global_conf", "-conf=.yamlfmt.yml"),
        _YAML,
        _NOT_WRITTEN_AS_YAML,
        staged=True,
    ),
    Check("yamllint", ("yamllint", "--strict", "--format=parsable"), _YAML, _NOT_WRITTEN_AS_YAML, staged=True),
    Check("gofmt", ("gofmt", "-l"), ("*.go",), staged=True, silent=True),
    Check("just --fmt", ("just", "--fmt", "--check", "--justfile"), ("justfile",), staged=True),
    Check("actionlint", ("actionlint",), (".github/workflows/*.yml",), staged=True),
    Check("hadolint", ("hadolint",), ("*Dockerfile",), staged=True),
    Check("nixfmt", ("nixfmt", "--check"), ("*.nix",), nix_only=True),
)


def named(names: Iterable[str]) -> tuple[Check, ...]:
    """The checks with these names, or all of them if none is named.

    Raises:
        LookupError: there is no check of a name.
    """
    wanted = list(names)
    unknown = set(wanted) - {check.name for check in CHECKS}
    if unknown:
        raise LookupError(", ".join(sorted(unknown)))
    return tuple(check for check in CHECKS if not wanted or check.name in wanted)


def tools_of(checks: Iterable[Check]) -> tuple[Program, ...]:
    """The programs of this project that these checks run, in building order."""
    wanted = {name for check in checks for name in (check.command[0], *check.tools)}
    return tuple(program for program in needed_for({Purpose.CHECK}) if program.name in wanted)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)
