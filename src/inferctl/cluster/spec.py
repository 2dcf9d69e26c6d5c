"""What an embedded cluster is: its name, its nodes and every address, derived from one number.

Only the node network is visible to the host. Pod and service ranges exist inside the nodes' network
namespaces alone, so all clusters can use the same ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from inferctl.errors import UsageError
from inferctl.images import registry
from inferctl.paths import state_root

if TYPE_CHECKING:
    from pathlib import Path

#: The name of the cluster that a person works with, unless told otherwise.
DEFAULT_CLUSTER = "inference"
#: The file of a cluster's folder that says which cluster it is.
SPEC_FILE = "cluster.json"
#: Where node networks come from: one /24 per cluster, by index.
NODE_NETWORKS = IPv4Network("10.197.0.0/16")
POD_NETWORK = IPv4Network("10.244.0.0/16")
SERVICE_NETWORK = IPv4Network("10.96.0.0/16")
API_SERVICE = SERVICE_NETWORK[1]
DNS_SERVICE = SERVICE_NETWORK[10]
DOMAIN = "cluster.local"
API_PORT = 6443
REGISTRY_PORT = registry.PORT
#: The registry's name as nodes and pod specs write it, whatever its address.
REGISTRY_NAME = registry.NAME

# Node names are "<cluster>-control-plane" and label values end at 63 characters; socket paths end at 107 bytes.
# What a node adds is "/nodes/control-plane/init.sock".
_LONGEST_FOLDER = 107 - 30
#: What would end a path or begin something else in a mount's options, the kernel's list of mounts, or a configuration.
_BREAKS = ":,\\\"'"
#: Addresses of a /24 that are left beside the network's own, the bridge, the control plane, the host and broadcast.
_MOST_WORKERS = 250
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?")


@dataclass(frozen=True)
class NodeSpec:
    """One node: its name, its address on the node network, and the range its pods get."""

    name: str
    address: IPv4Address
    pods: IPv4Network
    control_plane: bool


@dataclass(frozen=True)
class ClusterSpec:
    """One embedded cluster.

    Attributes:
        name: begins node names, the state folder, cgroups and the kubeconfig context.
        index: which /24 of `NODE_NETWORKS` its nodes use.
        kubernetes: the version of Kubernetes, such as ``1.37``; the newest if empty.
        workers: how many nodes beside the control plane.
    """

    name: str
    index: int = 0
    kubernetes: str = ""
    workers: int = 2

    def __post_init__(self) -> None:
        """Refuse a name that cannot begin a node's name."""
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"cluster name {self.name!r}: use 1 to 30 lower-case letters, digits and '-', beginning with a letter, "
                "for example 'inference'"
            )
        if reason := _unusable(state_root(), self.name):
            raise UsageError(
                f"INFERCTL_STATE={state_root()!s}: {reason}; write an absolute path of a folder without '..', spaces "
                f"and any of {_BREAKS}; with the cluster's name it may have {_LONGEST_FOLDER} bytes, because paths of "
                "sockets end at 107"
            )
        numbers = {"index": (self.index, range(2**8)), "workers": (self.workers, range(1, _MOST_WORKERS + 1))}
        for what, (number, allowed) in numbers.items():
            if type(number) is not int or number not in allowed:
                raise UsageError(f"{what} of cluster {self.name!r} is {number!r}: write {allowed[0]} to {allowed[-1]}")
        if not isinstance(self.kubernetes, str):
            raise UsageError(f"the version of cluster {self.name!r} is {self.kubernetes!r}: write it as a text")

    @property
    def network(self) -> IPv4Network:
        """The node network."""
        return list(NODE_NETWORKS.subnets(new_prefix=24))[self.index]

    @property
    def host_address(self) -> IPv4Address:
        """The host's own address on the node network."""
        return self.network[254]

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        """Control plane first; names as kind gives them."""
        pods = list(POD_NETWORK.subnets(new_prefix=24))
        names = ["control-plane", *("worker" if i == 1 else f"worker{i}" for i in range(1, self.workers + 1))]
        return tuple(
            NodeSpec(f"{self.name}-{name}", self.network[2 + i], pods[i], control_plane=i == 0)
            for i, name in enumerate(names)
        )

    @property
    def control_plane(self) -> NodeSpec:
        """The node that runs the API server, etcd and the registry."""
        return self.nodes[0]

    @property
    def api_url(self) -> str:
        """The API server, as the host and the nodes reach it."""
        return f"https://{self.control_plane.address}:{API_PORT}"

    @property
    def registry_address(self) -> str:
        """The registry as the host reaches it (plain HTTP)."""
        return f"{self.control_plane.address}:{REGISTRY_PORT}"

    @property
    def context(self) -> str:
        """The name of its context in a kubeconfig."""
        return f"inferctl-{self.name}"

    @property
    def folder(self) -> Path:
        """Where all its files are."""
        return state_root() / self.name

    @property
    def marker(self) -> str:
        """The value of the marker in the environment of every process of this cluster."""
        return str(self.folder)

    @property
    def cgroup(self) -> str:
        """Its control group, relative to the root of each hierarchy."""
        return f"inferctl-{self.name}"

    @property
    def host_link(self) -> str:
        """The host's end of the link to the node network; link names end at 15 characters."""
        return "inf" + hashlib.sha256(self.marker.encode()).hexdigest()[:10]

    def node_folder(self, node: NodeSpec) -> Path:
        """Where a node's files are; shorter than its name, for the sake of socket paths."""
        return self.folder / "nodes" / node.name.removeprefix(f"{self.name}-")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig of this cluster alone."""
        return self.folder / "admin.kubeconfig"

    def save(self) -> None:
        """Write the spec into its folder, so that later commands need only the name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / SPEC_FILE).write_text(json.dumps(asdict(self)))

    @property
    def is_saved(self) -> bool:
        """Whether its folder was made by `save`, and is not a stranger's of the same name."""
        return (self.folder / SPEC_FILE).is_file()

    @classmethod
    def load(cls, name: str) -> ClusterSpec | None:
        """Read the spec of an existing cluster; None if there is none, or its file is damaged."""
        try:
            saved = json.loads((cls(name).folder / SPEC_FILE).read_text())
            spec = cls(**saved)
        except (OSError, ValueError, TypeError, RecursionError, UsageError):
            return None
        return spec if spec.name == name else None

    @property
    def damaged(self) -> str:
        """What is wrong with the file that `save` wrote; empty if `load` can read it, or if there is none."""
        if not self.is_saved or ClusterSpec.load(self.name):
            return ""
        return f"{self.folder / SPEC_FILE} is damaged, so that nothing can be known of cluster {self.name!r}"


def _unusable(state: Path, name: str) -> str:
    """Why clusters cannot be kept in a folder; empty if they can."""
    text = str(state / name)
    if not state.is_absolute():
        return "it is no absolute path"
    if not text.isprintable() or " " in text or ".." in state.parts or set(text) & set(_BREAKS):
        return "it has characters that paths of a cluster may not have"
    if len(text.encode()) > _LONGEST_FOLDER:
        return "it is too long"
    if not state.is_dir() and (state.exists() or state.is_symlink()):
        return "it is no folder"
    return ""
