"""What a release and a namespace may be called, judged before Helm could take a name for an option."""

from __future__ import annotations

import re

from inferctl.errors import UsageError

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_RELEASE = 53  # Helm's limit
_LONGEST_NAMESPACE = 63  # Kubernetes' limit for a DNS label
_SHOWN = 80  # characters of a refused name that are shown


def refuse_bad_names(*, release: str, namespace: str) -> None:
    """Refuse names that Helm or Kubernetes would not take.

    Raises:
        UsageError: one is no DNS label, or too long.
    """
    _refuse("--release", release, _LONGEST_RELEASE)
    _refuse("--namespace", namespace, _LONGEST_NAMESPACE)


def _refuse(option: str, name: str, longest: int) -> None:
    if len(name) <= longest and _LABEL.fullmatch(name):
        return
    shown = repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}..."
    raise UsageError(
        f"{option} {shown}: use 1 to {longest} lower-case letters, digits and '-', "
        "beginning and ending with a letter or digit"
    )
