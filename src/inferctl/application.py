"""Every command of inferctl, and how errors reach a person.

Exit codes: 0 done, or proven; 1 loss; 2 not measured, or something must be put right first; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections import UserDict
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from inferctl import interrupt
from inferctl.errors import INTERRUPTED, InferctlError, UsageError

#: Where each command is, below this package. It is imported when it is asked for: together they bring the cluster's
#: client, cryptography and more, which take longer to load than most commands take to run.
_PLACES = {
    "cluster": "cluster.commands:app",
    "tools": "tools.commands:tools",
    "deploy": "release.commands:deploy",
    "values": "values.commands:app",
    "load": "disruption.load_command:run_load",
    "rollout-test": "disruption.commands:run_rollout_test",
    "drain-test": "disruption.commands:run_drain_test",
    "test": "disruption.commands:run_scenarios",
    "report": "disruption.commands:draw_report",
    "check": "checks.commands:check",
    "hooks": "checks.hook_commands:app",
    "doctor": "doctor.commands:doctor",
}


class _Commands(UserDict[str, Any]):
    """Commands by name; each is made from its place when it is first looked at."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer has no name for what it makes
        kept = self.data[name]
        if isinstance(kept, str):
            kept = self.data[name] = _made(name, *kept.split(":"))
        return kept


class _Group(TyperGroup):
    """The whole command line, whose names are known before anything is imported."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - handed on as it is
        super().__init__(**attributes)
        self.commands = _Commands(_PLACES)

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - as typer calls it
        return list(self.commands)


def _made(name: str, place: str, attribute: str) -> object:
    module = import_module(f"inferctl.{place}")
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        return get_group(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, epilog=getattr(module, "EXAMPLES", None))(found)
    return get_command(alone)


app = typer.Typer(
    name="inferctl",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_DEBUG = "INFERCTL_DEBUG"


def _tell_version(asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - a fifth of the time that most commands take to start

        typer.echo(f"inferctl {version('inferctl')}")
        raise typer.Exit


@app.callback()
def inferctl(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Deploys an LLM inference service and proves that its rollouts lose no streamed answer."""
    # By now the command's modules are imported; from here on there may be something to clean up.
    interrupt.raise_from_now()


def run() -> NoReturn:
    """Run the command that the process was started with; print what a user can put right without a traceback."""
    try:
        _refuse_empty_name(sys.argv[1:])
        app()
    except InferctlError as error:
        _fail("\n".join([str(error), *getattr(error, "__notes__", [])]), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", InferctlError.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except SystemExit as done:
        if done.code == INTERRUPTED:
            print("interrupted; what was half done has been undone", file=sys.stderr)
        if isinstance(done.__context__, BrokenPipeError):  # typer's 1 would mean a loss
            _fail("nobody reads the output to its end", InferctlError.exit_code)
        raise
    except Exception as error:
        said = _said_of_the_cluster(error)
        if said is None:
            raise
        _fail(said, InferctlError.exit_code)
    sys.exit(0)


def _refuse_empty_name(arguments: list[str]) -> None:
    """An unset variable in a script must not mean the default cluster: ``cluster down --name "$UNSET"``."""
    if "--name=" in arguments or ("--name", "") in pairwise(arguments):
        raise UsageError("--name is empty; write a cluster's name, or leave the option out for the default one")


def _said_of_the_cluster(error: Exception) -> str | None:
    """What a person is told when the cluster's API refuses or does not answer; None if the error is another."""
    from httpx2 import HTTPError  # noqa: PLC0415 - the cluster's client takes half of the time to start
    from lightkube import ApiError  # noqa: PLC0415 - the same

    if isinstance(error, ApiError):
        return f"the cluster's API refused: {error.status.message or error}"
    if isinstance(error, HTTPError):
        return f"the cluster's API does not answer: {error}; see: ./just cluster-status"
    return None


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get(_DEBUG):
        raise  # noqa: PLE0704 - called while an exception is handled
    print(message if code == INTERRUPTED else f"error: {message}", file=sys.stderr)
    sys.exit(code)
