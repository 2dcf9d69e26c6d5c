"""Looking into an embedded cluster, also one whose start failed: its logs, and everything at once."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from inferctl.cluster import init_client
from inferctl.errors import CommandFailed, EnvironmentProblem, UsageError
from inferctl.paths import tool
from inferctl.process.command import run

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.cluster.spec import ClusterSpec

# Private keys and the credentials that refer to them stay behind.
_EXPORTED = ("plan.json", "status.json", "init.log", "kubelet.yaml", "kube-proxy.yaml", "containerd.toml")
_API_SECONDS = 30


def running_version(*options: str) -> str:
    """The version of Kubernetes that answers, such as ``v1.2.3``; empty if none does.

    Args:
        options: what tells kubectl which cluster is meant.
    """
    try:
        answer = run(
            [tool("kubectl"), *options, "get", "--raw", "/version", "--request-timeout=10s"], deadline=_API_SECONDS
        )
        return str(json.loads(answer)["gitVersion"])
    except (CommandFailed, ValueError, LookupError, TypeError):
        return ""


def logs(spec: ClusterSpec) -> dict[str, Path]:
    """The log of each component that has one, by ``node/component``."""
    return {f"{log.parent.parent.name}/{log.stem}": log for log in sorted(spec.folder.glob("nodes/*/logs/*.log"))}


def export(spec: ClusterSpec, folder: Path) -> None:
    """Copy logs, configuration and API objects to a new folder.

    Raises:
        UsageError: the folder exists.
        EnvironmentProblem: the cluster has no files.
    """
    if folder.exists():
        raise UsageError(f"{folder} exists; name a folder that does not, nothing is overwritten")
    if not spec.folder.exists():
        raise EnvironmentProblem(
            f"cluster {spec.name!r} has no files in {spec.folder}; bring it up with: ./just cluster-up"
        )
    for node in spec.nodes:
        source, target = spec.node_folder(node), folder / node.name
        target.mkdir(parents=True)
        for name in _EXPORTED:
            if (source / name).exists():
                shutil.copy(source / name, target)
        if (source / "logs").exists():
            shutil.copytree(source / "logs", target / "logs")
        (target / "components.json").write_text(json.dumps(init_client.status(source), indent=1))
    for kind in ("nodes", "pods,services,endpointslices,deployments,poddisruptionbudgets", "events"):
        (folder / f"{kind.partition(',')[0]}.yaml").write_text(_objects(spec, kind))


def _objects(spec: ClusterSpec, kind: str) -> str:
    command: list[str | Path] = [tool("kubectl"), f"--kubeconfig={spec.kubeconfig}", "get", kind, "-A", "-o", "yaml"]
    try:
        return run([*command, "--request-timeout=10s"], deadline=_API_SECONDS)
    except CommandFailed as error:
        return f"# the API did not answer: {error}\n".replace("\n", "\n# ")
