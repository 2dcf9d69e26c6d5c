"""The programs of each node as pure data: what runs, after what, and how it shows that it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferctl.cluster.node.plan import Component, Ready
from inferctl.cluster.spec import API_PORT, REGISTRY_PORT, SERVICE_NETWORK

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.cluster.pki import KeyPair
    from inferctl.cluster.spec import ClusterSpec, NodeSpec

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
KUBELET_HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
_ETCD = "http://127.0.0.1:2379"
_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class ControlPlaneFiles:
    """What the control plane's programs read."""

    ca: Path
    serving: KeyPair
    kubelet_client: KeyPair
    service_accounts: KeyPair
    controller_manager: Path
    scheduler: Path
    registry_config: Path


def control_plane(spec: ClusterSpec, folder: Path, files: ControlPlaneFiles) -> tuple[Component, ...]:
    """etcd, the API server, the controllers, the scheduler and the registry."""
    return (
        Component(
            "etcd",
            (
                "etcd",
                f"--data-dir={folder}/etcd",
                f"--listen-client-urls={_ETCD}",
                f"--advertise-client-urls={_ETCD}",
                "--listen-peer-urls=http://127.0.0.1:2380",
                "--unsafe-no-fsync",  # the cluster is disposable; a power cut may take it
                "--log-level=warn",
            ),
            ready=Ready(f"{_ETCD}/health"),
        ),
        Component(
            "kube-apiserver",
            (
                "kube-apiserver",
                f"--advertise-address={spec.control_plane.address}",
                f"--secure-port={API_PORT}",
                f"--etcd-servers={_ETCD}",
                f"--service-cluster-ip-range={SERVICE_NETWORK}",
                f"--client-ca-file={files.ca}",
                f"--tls-cert-file={files.serving.certificate}",
                f"--tls-private-key-file={files.serving.key}",
                f"--kubelet-certificate-authority={files.ca}",
                f"--kubelet-client-certificate={files.kubelet_client.certificate}",
                f"--kubelet-client-key={files.kubelet_client.key}",
                "--kubelet-preferred-address-types=InternalIP",
                f"--service-account-issuer={_ISSUER}",
                f"--service-account-key-file={files.service_accounts.certificate}",
                f"--service-account-signing-key-file={files.service_accounts.key}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                "--profiling=false",
            ),
            needs=("etcd",),
            ready=_api_ready(spec, files.ca),
        ),
        Component(
            "kube-controller-manager",
            (
                "kube-controller-manager",
                f"--kubeconfig={files.controller_manager}",
                f"--authentication-kubeconfig={files.controller_manager}",
                f"--authorization-kubeconfig={files.controller_manager}",
                "--leader-elect=false",
                "--use-service-account-credentials",
                # It makes an account and a token per controller before any of them starts: 4 s at the default rate.
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                f"--service-account-private-key-file={files.service_accounts.key}",
                f"--root-ca-file={files.ca}",
                "--profiling=false",
            ),
            needs=("kube-apiserver",),
        ),
        Component(
            "kube-scheduler",
            (
                "kube-scheduler",
                f"--kubeconfig={files.scheduler}",
                f"--authentication-kubeconfig={files.scheduler}",
                f"--authorization-kubeconfig={files.scheduler}",
                "--leader-elect=false",
                "--profiling=false",
            ),
            needs=("kube-apiserver",),
        ),
        Component(
            "registry",
            ("registry", "serve", str(files.registry_config)),
            ready=Ready(f"http://127.0.0.1:{REGISTRY_PORT}/v2/"),
        ),
    )


def node(spec: ClusterSpec, node: NodeSpec, folder: Path, ca: Path) -> tuple[Component, ...]:
    """containerd, the kubelet and kube-proxy; the last two start when there is an API server to register with."""
    api = "kube-apiserver" if node.control_plane else "api-answers"
    components = (
        Component(
            "containerd",
            ("containerd", "--config", f"{folder}/containerd.toml"),
            ready=Ready(f"unix:{CONTAINERD_SOCKET}"),
        ),
        Component(
            "kubelet",
            (
                "kubelet",
                f"--config={folder}/kubelet.yaml",
                f"--kubeconfig={folder}/kubelet.kubeconfig",
                f"--node-ip={node.address}",
                f"--hostname-override={node.name}",
            ),
            needs=("containerd", api),
            ready=Ready(f"http://127.0.0.1:{KUBELET_HEALTH_PORT}/healthz"),
        ),
        Component(
            "kube-proxy",
            ("kube-proxy", f"--config={folder}/kube-proxy.yaml", f"--hostname-override={node.name}"),
            # kube-proxy waits for its own Node object and settles for a wrong address without it.
            needs=("kubelet",),
            ready=Ready(f"http://127.0.0.1:{PROXY_HEALTH_PORT}/livez"),
        ),
    )
    if node.control_plane:
        return components
    return (Component("api-answers", ready=_api_ready(spec, ca)), *components)


def _api_ready(spec: ClusterSpec, ca: Path) -> Ready:
    return Ready(f"{spec.api_url}/readyz", ca=str(ca), seconds=90)


def programs(kubernetes: str) -> dict[str, str]:
    """The name by which each program is called in a node, and the built program behind it.

    Args:
        kubernetes: the version of Kubernetes; the newest if empty.
    """
    kube = f"kube-{kubernetes}" if kubernetes else "kube"
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
    rest = (
        "etcd",
        "registry",
        "containerd",
        "containerd-shim-runc-v2",
        "ctr",
        "runc",
        "ptp",
        "loopback",
        "host-local",
    )
    return {**dict.fromkeys(names, kube), **{name: name for name in rest}}
