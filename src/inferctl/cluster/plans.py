"""Writes everything that the nodes of a cluster read: certificates, configuration, and each init's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferctl.cluster import components, node_files
from inferctl.cluster.node.plan import NodePlan
from inferctl.cluster.spec import API_SERVICE, DOMAIN, REGISTRY_PORT
from inferctl.images.registry import configuration
from inferctl.paths import BIN

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.cluster.pki import CertificateAuthority
    from inferctl.cluster.spec import ClusterSpec
    from inferctl.images.seed import Seed


def write(spec: ClusterSpec, authority: CertificateAuthority, seed: Seed) -> None:
    """Write the plans of all nodes, and what their components read, into the cluster's folder."""
    folder = spec.node_folder(spec.control_plane)
    folder.mkdir(parents=True)
    registry = folder / "registry.json"
    registry.write_text(configuration(spec.folder / "registry", f":{REGISTRY_PORT}"))
    serving = authority.server(
        "kube-apiserver",
        addresses=[API_SERVICE, spec.control_plane.address],
        hosts=[
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{DOMAIN}",
        ],
    )
    files = components.ControlPlaneFiles(
        ca=authority.certificate,
        serving=serving,
        kubelet_client=authority.client("kube-apiserver-kubelet-client"),
        service_accounts=authority.signing_key("service-accounts"),
        controller_manager=_kubeconfig(spec, authority, "system:kube-controller-manager"),
        scheduler=_kubeconfig(spec, authority, "system:kube-scheduler"),
        registry_config=registry,
    )
    admin = authority.client("admin", groups=["system:masters"])
    authority.kubeconfig(spec.kubeconfig, server=spec.api_url, user=admin, context=spec.context)
    for node in spec.nodes:
        node_files.write(spec, node, authority, pause=seed.pause)
        folder = spec.node_folder(node)
        parts = components.node(spec, node, folder, authority.certificate)
        if node.control_plane:
            parts = (*components.control_plane(spec, folder, files), *parts)
        plan = NodePlan(
            name=node.name,
            folder=str(folder),
            state_root=str(spec.folder.parent),
            tools=str(BIN),
            programs=components.programs(spec.kubernetes),
            cgroup=f"{spec.cgroup}/{folder.name}",
            components=parts,
        )
        plan.write(folder / "plan.json")


def _kubeconfig(spec: ClusterSpec, authority: CertificateAuthority, user: str) -> Path:
    path = spec.folder / "pki" / f"{user.replace(':', '-')}.kubeconfig"
    authority.kubeconfig(path, server=spec.api_url, user=authority.client(user), context=spec.context)
    return path
