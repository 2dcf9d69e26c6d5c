"""The configuration files of a node's programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferctl.cluster.components import CONTAINERD_SOCKET, KUBELET_HEALTH_PORT, PROXY_HEALTH_PORT
from inferctl.cluster.node.plan import PROGRAMS
from inferctl.cluster.spec import DNS_SERVICE, DOMAIN, POD_NETWORK, REGISTRY_NAME

if TYPE_CHECKING:
    from inferctl.cluster.pki import CertificateAuthority
    from inferctl.cluster.spec import ClusterSpec, NodeSpec

#: The first version of Kubernetes whose kube-proxy has nftables rules by default, and whose kubelet knows failCgroupV1.
_FIRST_NFTABLES = (1, 33)
_FIRST_FAIL_CGROUP_V1 = (1, 31)


def write(spec: ClusterSpec, node: NodeSpec, authority: CertificateAuthority, *, pause: str) -> None:
    """Write every file of a node's containerd, kubelet, kube-proxy and CNI.

    Args:
        spec: the cluster.
        node: the node.
        authority: signs the node's certificates.
        pause: the image, by digest, that holds a pod's namespaces.
    """
    folder = spec.node_folder(node)
    folder.mkdir(parents=True, exist_ok=True)
    kubelet = authority.client(f"system:node:{node.name}", groups=["system:nodes"])
    proxy = authority.client(f"system:kube-proxy:{node.name}", groups=["system:node-proxier"])
    serving = authority.server(f"kubelet-{node.name}", addresses=[node.address], hosts=[node.name])
    for name, user in (("kubelet", kubelet), ("kube-proxy", proxy)):
        authority.kubeconfig(folder / f"{name}.kubeconfig", server=spec.api_url, user=user, context=spec.context)
    # Pods with dnsPolicy Default get this; a loopback server of the host would not answer inside them.
    (folder / "resolv.conf").write_text(f"nameserver {DNS_SERVICE}\n")
    _json(folder / "kubelet.yaml", _kubelet(spec, node, folder, authority, serving.certificate, serving.key))
    _json(folder / "kube-proxy.yaml", _kube_proxy(spec, folder))
    cni = folder / "cni"
    cni.mkdir(exist_ok=True)
    _json(cni / "10-pods.conflist", _cni(node, folder))
    (folder / "containerd.toml").write_text(_containerd(folder, pause))
    _registry_mirror(spec, folder)


def _json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))  # JSON is YAML


def _version(spec: ClusterSpec) -> tuple[int, ...]:
    return tuple(int(part) for part in spec.kubernetes.split(".")) if spec.kubernetes else (9, 9)


def _kubelet(  # noqa: PLR0917 - one call, beside it
    spec: ClusterSpec,
    node: NodeSpec,
    folder: Path,
    authority: CertificateAuthority,
    certificate: Path,
    key: Path,
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "0.0.0.0",  # noqa: S104 - inside the node's own network namespace
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{spec.cgroup}/{folder.name}",
        "enforceNodeAllocatable": [],
        "clusterDNS": [str(DNS_SERVICE)],
        "clusterDomain": DOMAIN,
        "resolvConf": str(folder / "resolv.conf"),
        "failSwapOn": False,
        "serializeImagePulls": False,
        # The host's disk is not the nodes' own: its fill level says nothing about them.
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        # Load pods print an event per request and their whole log is read at the end: none of it may be rotated away.
        "containerLogMaxSize": "512Mi",
    }
    if _version(spec) >= _FIRST_FAIL_CGROUP_V1:
        config["failCgroupV1"] = False
    if node.control_plane:
        config["registerWithTaints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    return config


def _kube_proxy(spec: ClusterSpec, folder: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables" if _version(spec) >= _FIRST_NFTABLES else "iptables",
        "clientConnection": {"kubeconfig": str(folder / "kube-proxy.kubeconfig")},
        "clusterCIDR": str(POD_NETWORK),
        "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH_PORT}",
        # The limits on tracked connections belong to the host's kernel, not to a namespace.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def _cni(node: NodeSpec, folder: Path) -> dict[str, Any]:
    """Point-to-point links: every packet is routed, so nothing depends on how the kernel filters bridges."""
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(folder / "cni-addresses"),
                    "ranges": [[{"subnet": str(node.pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def _containerd(folder: Path, pause: str) -> str:
    restricted = "true" if _cannot_lower_oom_score() else "false"
    return f"""\
version = 3
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing"]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{folder}/registries"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restricted}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{PROGRAMS}"]
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{PROGRAMS}/runc"
      SystemdCgroup = false
"""


def _registry_mirror(spec: ClusterSpec, folder: Path) -> None:
    mirror = folder / "registries" / REGISTRY_NAME
    mirror.mkdir(parents=True, exist_ok=True)
    (mirror / "hosts.toml").write_text(
        f'[host."http://{spec.registry_address}"]\n  capabilities = ["pull", "resolve"]\n'
    )


def _cannot_lower_oom_score() -> bool:
    """Whether the kernel refuses this process a score below its own, as it does inside many containers."""
    file = Path("/proc/self/oom_score_adj")
    before = file.read_text()
    try:
        file.write_text(str(max(int(before) - 1, -1000)))
    except PermissionError:
        return True
    file.write_text(before)
    return False
