"""What makes a bare control plane a cluster that can be used, and the proof that it is one."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from lightkube import ApiError, Client, KubeConfig, codecs
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Node, Pod, ServiceAccount

from inferctl.cluster.spec import DNS_SERVICE, DOMAIN
from inferctl.process.wait import wait_until

if TYPE_CHECKING:
    from inferctl.cluster.spec import ClusterSpec

_SYSTEM = "kube-system"
_PROBE = "dns-answers"
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_ASK_SECONDS = 0.1


def client(spec: ClusterSpec) -> Client:
    """A client with the administrator's rights."""
    return Client(KubeConfig.from_file(spec.kubeconfig), field_manager="inferctl")


def install(api: Client, *, coredns: str, pause: str, seconds: float) -> None:
    """Apply CoreDNS, the rights of the nodes' programs, and the pod that asks DNS.

    Args:
        api: the cluster.
        coredns: CoreDNS's image, by digest.
        pause: the pause image, by digest; it can resolve a name too.
        seconds: how long the new API server may take to have its namespaces.

    Raises:
        DeadlineExceeded: the API server has no kube-system namespace in time.
    """
    wait_until(lambda: _absent(api, Namespace, _SYSTEM), seconds, every=_ASK_SECONDS)
    text = files("inferctl.cluster").joinpath("manifests/system.yaml").read_text()
    filled = Template(text).substitute(COREDNS=coredns, PAUSE=pause, DNS_SERVICE=DNS_SERVICE, DOMAIN=DOMAIN)
    for resource in codecs.load_all_yaml(filled):
        api.apply(resource, force=True)


def wait_usable(api: Client, spec: ClusterSpec, *, seconds: float) -> None:
    """Wait until every node is Ready, pods can have a service account, and DNS answers from inside a pod.

    Raises:
        DeadlineExceeded: it did not come to that; the message says what is missing.
    """
    labelled = False

    def missing() -> str:
        nonlocal labelled
        nodes = {node.metadata.name: node for node in api.list(Node) if node.metadata}
        if not labelled and spec.control_plane.name in nodes:
            # The kubelet may not give itself this label.
            patch = Node(metadata=ObjectMeta(labels={_CONTROL_PLANE_LABEL: ""}))
            api.patch(Node, spec.control_plane.name, patch)
            labelled = True
        late = [node.name for node in spec.nodes if node.name not in nodes or not is_ready(nodes[node.name])]
        if late:
            return f"nodes not Ready: {', '.join(late)}"
        try:
            api.get(ServiceAccount, "default", namespace="default")
            probe = api.get(Pod, _PROBE, namespace=_SYSTEM)
        except ApiError as error:
            return str(error.status.message)
        phase = probe.status.phase if probe.status else None
        return "" if phase == "Succeeded" else f"DNS has not answered from pod {_SYSTEM}/{_PROBE} (phase {phase})"

    wait_until(missing, seconds, every=_ASK_SECONDS)
    api.delete(Pod, _PROBE, namespace=_SYSTEM, grace_period=0)


def is_ready(node: Node) -> bool:
    """Whether a node's Ready condition is true."""
    conditions = (node.status.conditions if node.status else None) or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def _absent(api: Client, kind: type[Namespace], name: str) -> str:
    try:
        api.get(kind, name)
    except ApiError as error:
        return str(error.status.message)
    return ""
