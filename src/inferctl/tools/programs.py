"""Which programs are built, from which package of which Go module, and what each is for.

Versions are in the modules' go.mod files and nowhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from inferctl.paths import KUBE_MODULE

if TYPE_CHECKING:
    from pathlib import Path


class Purpose(Enum):
    """What a program is needed for."""

    CLUSTER = "cluster"
    RELEASE = "release"
    CHECK = "check"
    KIND = "kind"
    OLDEST = "oldest"


@dataclass(frozen=True)
class Program:
    """One program.

    Attributes:
        name: its file in ``.tools/bin``.
        package: the Go package it is built from.
        purposes: what it is needed for.
        module: the folder of the Go module that pins it.
        cgo: whether it needs a C compiler and libraries of the system.
        tags: Go build tags.
        kubernetes: whether the version of Kubernetes is linked in; without it Kubernetes' programs refuse to start.
    """

    name: str
    package: str
    purposes: frozenset[Purpose]
    module: Path = KUBE_MODULE
    cgo: bool = False
    tags: str = ""
    kubernetes: bool = False


_CLUSTER = frozenset({Purpose.CLUSTER})
_RELEASE = frozenset({Purpose.RELEASE})
_CHECK = frozenset({Purpose.CHECK})
_KUBE = "./cmd/kube"

#: In the order in which they are built: small ones first, so that a broken set-up shows early.
PROGRAMS = (
    Program("pause", "./cmd/pause", _CLUSTER),
    Program("crane", "github.com/google/go-containerregistry/cmd/crane", _RELEASE | _CLUSTER),
    # Without seccomp, a pod that asks for a seccomp profile does not start.
    Program("runc", "github.com/opencontainers/runc", _CLUSTER, cgo=True, tags="seccomp"),
    Program("ptp", "github.com/containernetworking/plugins/plugins/main/ptp", _CLUSTER),
    Program("loopback", "github.com/containernetworking/plugins/plugins/main/loopback", _CLUSTER),
    Program("host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local", _CLUSTER),
    Program("helm", "helm.sh/helm/v4/cmd/helm", _RELEASE | _CHECK),
    Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", _RELEASE | _CLUSTER | _CHECK, kubernetes=True),
    Program("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", _CHECK),
    Program("helm-unittest", "github.com/helm-unittest/helm-unittest/cmd/helm-unittest", _CHECK),
    Program("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", _CHECK),
    Program("shfmt", "mvdan.cc/sh/v3/cmd/shfmt", _CHECK),
    Program(
        "kind", "sigs.k8s.io/kind", frozenset({Purpose.KIND}) | _CHECK
    ),  # its reading of our configuration is tested
    Program("containerd", "github.com/containerd/containerd/v2/cmd/containerd", _CLUSTER),
    Program("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", _CLUSTER),
    Program("ctr", "github.com/containerd/containerd/v2/cmd/ctr", _CLUSTER),
    Program("etcd", "go.etcd.io/etcd/server/v3", _CLUSTER),
    Program("coredns", "./cmd/coredns", _CLUSTER),
    Program("registry", "github.com/distribution/distribution/v3/cmd/registry", _CLUSTER),
    Program("kube", _KUBE, _CLUSTER, kubernetes=True),
    # In a module of its own: a new version of it rebuilds nothing else.
    Program("yamlfmt", "github.com/google/yamlfmt/cmd/yamlfmt", _CHECK, module=KUBE_MODULE / "yamlfmt"),
    # The chart must render the same with the Helm before.
    Program("helm3", "helm.sh/helm/v3/cmd/helm", _CHECK, module=KUBE_MODULE / "helm3"),
    # The oldest Kubernetes that the chart promises to run on.
    Program("kube-1.30", "./.", frozenset({Purpose.OLDEST}), module=KUBE_MODULE / "kubernetes-1.30", kubernetes=True),
)


def needed_for(purposes: set[Purpose]) -> tuple[Program, ...]:
    """The programs that any of these purposes needs, in building order."""
    return tuple(program for program in PROGRAMS if program.purposes & purposes)


def pinned(module: Path, path: str) -> str:
    """The version of a module that a go.mod requires, such as ``v1.2.3``.

    Raises:
        LookupError: it requires no such module.
    """
    found = re.search(rf"^\s*(?:require )?{re.escape(path)} (v\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise LookupError(f"{module / 'go.mod'} requires no module {path}")
    return found[1]
