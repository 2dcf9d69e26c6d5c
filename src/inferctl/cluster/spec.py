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
        if not self.folder.is_absolute() or len(str(self.folder)) > _LONGEST_FOLDER:
            raise UsageError(
                f"INFERCTL_STATE={state_root()!s}: write an absolute path; with the cluster's name it may have "
                f"{_LONGEST_FOLDER} characters, because paths of sockets end at 107"
            )
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"cluster name {self.name!r}: use 1 to 30 lower-case letters, digits and '-', beginning with a letter, "
                "for example 'inference'"
            )

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
        """Read the spec of an existing cluster; None if there is none or its file was cut short by a crash."""
        try:
            saved = json.loads((cls(name).folder / SPEC_FILE).read_text())
            return cls(**saved)
        except (OSError, ValueError, TypeError, UsageError):
            return None
