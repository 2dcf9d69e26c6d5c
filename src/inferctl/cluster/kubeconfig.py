"""The user's own kubeconfig: a context is added to it and taken out again, and nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from inferctl.errors import CommandFailed
from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from inferctl.cluster.spec import ClusterSpec

_RECORD = "user-kubeconfig"
#: The lists of a kubeconfig, and what kubectl calls taking something out of each.
_KINDS = {"contexts": "delete-context", "users": "delete-user", "clusters": "delete-cluster"}


def user_file() -> Path:
    """The file that kubectl would change: the first of ``KUBECONFIG``, else ``~/.kube/config``."""
    first = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(first) if first else Path.home() / ".kube" / "config"


def add_context(spec: ClusterSpec) -> Path:
    """Add the cluster's context; the current context changes only if there was none."""
    path = user_file()
    # What is about to be changed is written down first, so that a crash in between is undone too.
    (spec.folder / _RECORD).write_text("\n".join([str(path), *_missing_parents(path)]))
    admin = yaml.safe_load(spec.kubeconfig.read_text())
    user, cluster = admin["users"][0]["user"], admin["clusters"][0]["cluster"]
    path.parent.mkdir(parents=True, exist_ok=True)
    had_context = path.exists() and bool((yaml.safe_load(path.read_text()) or {}).get("current-context"))
    name = spec.context
    _config(
        path, "set-cluster", name, f"--server={cluster['server']}",
        f"--certificate-authority={cluster['certificate-authority']}", "--embed-certs=true",
    )  # fmt: skip
    _config(
        path, "set-credentials", name, f"--client-certificate={user['client-certificate']}",
        f"--client-key={user['client-key']}", "--embed-certs=true",
    )  # fmt: skip
    _config(path, "set-context", name, f"--cluster={name}", f"--user={name}")
    if not had_context:
        _config(path, "use-context", name)
    return path


def remove_context(spec: ClusterSpec) -> list[str]:
    """Take the context out again, and the file and folders with it if they were made for it and hold nothing else.

    Returns:
        What stays behind because the user's file cannot be read any more, with what to do about it.
    """
    record = spec.folder / _RECORD
    if not record.exists():
        return []
    try:
        target, *made = record.read_text().splitlines()
        path = Path(target)
        readable = path.is_absolute()
    except (OSError, ValueError):
        readable = False
    if not readable:
        # Which file it was is not known any more; nothing says that anything else in it was made for the cluster.
        path, made = user_file(), []
    if problem := unreadable(path):
        return [f"{problem}, so the context {spec.context} may still be in it; remove it there yourself"]
    try:
        _take_out(spec, path, made)
    except (CommandFailed, OSError) as error:
        why = str(error).splitlines()[-1]
        return [f"the context {spec.context} may still be in the kubeconfig {path} ({why}); remove it there yourself"]
    return []


def unreadable(path: Path) -> str:
    """Why a kubeconfig cannot be read; empty if it can, or if there is none."""
    try:
        content = yaml.safe_load(path.read_text()) if path.exists() else {}
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"the kubeconfig {path} cannot be read ({line}{error.problem})"
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        return f"the kubeconfig {path} cannot be read ({str(error).splitlines()[0]})"
    listed = [content.get(kind) or [] for kind in _KINDS] if isinstance(content, dict) else [content or []]
    entries = [entry for kind in listed if isinstance(kind, list) for entry in kind]
    if all(isinstance(kind, list) for kind in listed) and all(isinstance(e, dict) and "name" in e for e in entries):
        return ""
    return f"the kubeconfig {path} holds no kubeconfig"


def _take_out(spec: ClusterSpec, path: Path, made: list[str]) -> None:
    if path.exists():
        content = yaml.safe_load(path.read_text()) or {}
        for kind, verb in _KINDS.items():
            if any(entry["name"] == spec.context for entry in content.get(kind) or ()):
                _config(path, verb, spec.context)
        content = yaml.safe_load(path.read_text()) or {}
        if content.get("current-context") == spec.context:
            _config(path, "unset", "current-context")
        if made and not any(content.get(kind) for kind in _KINDS):
            path.unlink()
    for folder in made[1:]:
        if Path(folder).is_dir() and not any(Path(folder).iterdir()):
            Path(folder).rmdir()


def _missing_parents(path: Path) -> list[str]:
    """The path itself and the folders above it that do not exist, innermost first."""
    missing = []
    while not path.exists():
        missing.append(str(path))
        path = path.parent
    return missing


def _config(path: Path, *arguments: str) -> None:
    run([tool("kubectl"), "config", *arguments], env={"KUBECONFIG": str(path)}, deadline=30)
