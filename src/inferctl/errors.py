"""Every error that a user may see: one message that names the thing, the value and the fix."""

from __future__ import annotations

#: The exit code of a command that was interrupted, as shells have it for SIGINT.
INTERRUPTED = 130


class InferctlError(Exception):
    """Something outside the program is not as it must be; printed without a traceback, exit code 2."""

    exit_code = 2


class UsageError(InferctlError):
    """What the user typed cannot be meant."""


class EnvironmentProblem(InferctlError):
    """The machine or the cluster lacks something; the message lists every lack with its fix."""


class CommandFailed(InferctlError):
    """A program that inferctl ran exited with an error."""


class ComponentFailed(InferctlError):
    """A part of the cluster exited, or was not ready in time."""


class DeadlineExceeded(InferctlError):
    """A state that was waited for did not come; the message says what was seen last."""


class Interrupted(InferctlError):
    """Ctrl-C, and not everything that was half done could be undone; the message says what is left."""

    exit_code = INTERRUPTED
