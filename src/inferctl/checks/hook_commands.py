"""``inferctl hooks``: the pre-commit hook, and what it runs."""

from __future__ import annotations

import typer

from inferctl.checks import staged
from inferctl.checks.catalog import CHECKS
from inferctl.checks.runner import State, run_all
from inferctl.paths import ROOT

app = typer.Typer(no_args_is_help=True, help="Checks before each commit.", rich_markup_mode=None)

_INSTALL_EXAMPLES = """\b
Example:
  inferctl hooks install
"""
_STAGED_EXAMPLES = """\b
Example:
  git add file.py && inferctl hooks staged

\b
Exit codes: 0 all is well, 1 a check failed, 2 a program is missing.
"""


@app.command(epilog=_INSTALL_EXAMPLES)
def install() -> None:
    """Have git run the quick checks on what is staged, before each commit."""
    typer.echo(f"wrote {staged.install(ROOT)}")


@app.command("staged", epilog=_STAGED_EXAMPLES)
def check_staged() -> None:
    """Run the quick checks on the staged content of the files that the next commit changes."""
    checks = [check for check in CHECKS if check.staged]
    with staged.content(ROOT) as folder:
        # A link's target is checked under its own name.
        paths = [path for path in staged.changed(ROOT) if not (folder / path).is_symlink()]
        results = run_all(checks, paths, root=folder, jobs=len(checks), done=lambda _: None)
        failed = [result for result in results if result.state is State.FAILED]
        for result in failed:
            typer.echo(f"--- {result.check.name}, on staged content ---")
            typer.echo(result.output.replace(f"{folder}/", "").rstrip())
    if failed:
        typer.echo(f"not committed: {', '.join(result.check.name for result in failed)} failed; mend, git add, commit")
        raise typer.Exit(1)
