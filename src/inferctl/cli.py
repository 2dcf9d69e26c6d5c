"""The command line: every command of inferctl, and how errors reach a person.

Exit codes: 0 done, or proven; 1 loss; 2 not measured, or something must be put right first; 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise
from typing import NoReturn

import typer
from httpx2 import HTTPError
from lightkube import ApiError

from inferctl.checks.commands import EXAMPLES as CHECK_EXAMPLES
from inferctl.checks.commands import check
from inferctl.checks.hook_commands import app as hooks
from inferctl.cluster.commands import app as cluster
from inferctl.disruption.commands import draw_report, run_drain_test, run_rollout_test, run_scenarios
from inferctl.disruption.load_command import run_load
from inferctl.doctor.commands import EXAMPLES as DOCTOR_EXAMPLES
from inferctl.doctor.commands import doctor
from inferctl.errors import InferctlError, UsageError
from inferctl.release.commands import deploy
from inferctl.tools.commands import tools
from inferctl.values.commands import app as values

app = typer.Typer(
    name="inferctl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Deploys an LLM inference service and proves that its rollouts lose no streamed answer.",
)
app.add_typer(cluster, name="cluster")
app.command()(tools)
app.command()(deploy)
app.add_typer(values, name="values")
app.command(name="load")(run_load)
app.command(name="rollout-test")(run_rollout_test)
app.command(name="drain-test")(run_drain_test)
app.command(name="test")(run_scenarios)
app.command(name="report")(draw_report)
app.command(epilog=CHECK_EXAMPLES)(check)
app.add_typer(hooks, name="hooks")
app.command(epilog=DOCTOR_EXAMPLES)(doctor)

_INTERRUPTED = 130
_DEBUG = "INFERCTL_DEBUG"


def main() -> NoReturn:
    """Run the command line; print what a user can put right without a traceback."""
    # A polite kill cleans up just as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _refuse_empty_name(sys.argv[1:])
        app()
    except InferctlError as error:
        _fail("\n".join([str(error), *getattr(error, "__notes__", [])]), error.exit_code)
    except ApiError as error:
        _fail(f"the cluster's API refused: {error.status.message or error}", InferctlError.exit_code)
    except HTTPError as error:
        _fail(f"the cluster's API does not answer: {error}; see: ./just cluster-status", InferctlError.exit_code)
    except SystemExit as done:
        if done.code == _INTERRUPTED:
            print("interrupted; what was started has been cleaned up", file=sys.stderr)
        raise
    sys.exit(0)


def _refuse_empty_name(arguments: list[str]) -> None:
    """An unset variable in a script must not mean the default cluster: ``cluster down --name "$UNSET"``."""
    if "--name=" in arguments or ("--name", "") in pairwise(arguments):
        raise UsageError("--name is empty; write a cluster's name, or leave the option out for the default one")


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get(_DEBUG):
        raise  # noqa: PLE0704 - called while an exception is handled
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)
