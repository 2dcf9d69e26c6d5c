"""The kind backend: how it calls kind and docker, and what kind makes of the configuration."""

from __future__ import annotations

import io
import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from inferctl.cluster.kind import CONFIG, REGISTRY_IMAGE, KindBackend
from inferctl.console import Progress
from inferctl.errors import CommandFailed, EnvironmentProblem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cluster.conftest import Machine

_NODES = ("inference-control-plane", "inference-worker", "inference-worker2")
_HOSTS = "/etc/containerd/certs.d/localhost:5001"


@pytest.fixture
def progress() -> Progress:
    """Progress that nobody sees."""
    return Progress(Console(file=io.StringIO()))


def test_first_up_makes_cluster_then_registry_then_waits(machine: Machine, progress: Progress) -> None:
    """The commands of a first start, word for word."""
    target = KindBackend("inference").up(progress)
    told = [
        call
        for node in _NODES
        for call in (
            f"docker exec {node} mkdir -p {_HOSTS}",
            f'docker exec -i {node} cp /dev/stdin {_HOSTS}/hosts.toml [host."http://inferctl-registry:5000"]\n',
        )
    ]
    ask = "docker ps --all --filter name=^inferctl-registry$ --format {{.State}}"
    list_nodes = "docker ps --all --filter label=io.x-k8s.kind.cluster=inference --format {{json .}}"
    kubeconfig = machine.home / "kubeconfig"
    kubectl = f"kubectl --kubeconfig={kubeconfig} --context=kind-inference"
    assert machine.calls() == [
        "docker info",
        "kind get clusters",
        "kubectl config current-context",
        f"kind create cluster --name inference --config {CONFIG} --wait 180s",
        ask,
        "docker run --detach --restart=always --publish=127.0.0.1:5001:5000 --name=inferctl-registry " + REGISTRY_IMAGE,
        "docker inspect --format={{json .NetworkSettings.Networks}} inferctl-registry",
        "docker network connect kind inferctl-registry",
        list_nodes,
        *told,
        f"{kubectl} wait --for=condition=Ready nodes --all --timeout=180s",
        "kind get clusters",
    ]
    assert (target.backend, target.context, target.push, target.pull) == (
        "kind",
        "kind-inference",
        "localhost:5001",
        "localhost:5001",
    )
    assert target.kubeconfig == kubeconfig


def test_second_up_makes_nothing_again(machine: Machine, progress: Progress) -> None:
    """A cluster and a registry that run are used as they are."""
    backend = KindBackend("inference")
    backend.up(progress)
    machine.forget()
    backend.up(progress)
    changed = [call for call in machine.calls() if call.startswith(("kind create", "docker run", "docker network"))]
    assert changed == []


def test_stopped_registry_is_started(machine: Machine, progress: Progress) -> None:
    """A registry that was stopped keeps its images: it is started, not made anew."""
    backend = KindBackend("inference")
    backend.up(progress)
    machine.set(registry="exited")
    machine.forget()
    backend.up(progress)
    assert "docker start inferctl-registry" in machine.calls()
    assert not [call for call in machine.calls() if call.startswith("docker run")]


def test_current_context_of_the_user_is_kept(machine: Machine, progress: Progress) -> None:
    """What kubectl works with does not change because a cluster was made."""
    machine.set(context="production")
    KindBackend("inference").up(progress)
    assert "kubectl config use-context production" in machine.calls()


def test_retain_reaches_kind(machine: Machine, progress: Progress) -> None:
    """A start that fails can be looked into."""
    KindBackend("inference").up(progress, retain=True)
    assert [call for call in machine.calls("kind") if call.endswith("--retain")]


def test_down_keeps_the_registry_while_another_cluster_needs_it(machine: Machine, progress: Progress) -> None:
    """The registry goes with the last cluster, and a second down does no harm."""
    one, two = KindBackend("one"), KindBackend("two")
    one.up(progress)
    two.up(progress)
    machine.forget()
    one.down(progress)
    removal = "docker rm --force --volumes inferctl-registry"
    assert removal not in machine.calls()
    two.down(progress)
    assert machine.calls().count(removal) == 1
    two.down(progress)
    assert machine.calls().count(removal) == 1
    assert machine.calls("kind").count("kind delete cluster --name two") == 2


def test_describe_says_up_only_when_all_of_it_runs(machine: Machine, progress: Progress) -> None:
    """A stopped node or registry is a cluster that is not up."""
    backend = KindBackend("inference")
    assert backend.describe()["up"] is False
    backend.up(progress)
    reach = f"--kubeconfig={machine.home / 'kubeconfig'} --context=kind-inference"
    machine.answer(f"kubectl {reach} get --raw /version", '{"gitVersion": "v1.2.3"}')
    state = backend.describe()
    assert (state["up"], state["kubernetes"]) == (True, "v1.2.3")
    nodes = state["nodes"]
    assert isinstance(nodes, list)
    assert [node["name"] for node in nodes] == list(_NODES)
    machine.set(registry="exited")
    assert backend.describe()["up"] is False
    machine.set(registry="running", nodes="exited")
    assert backend.describe()["up"] is False


def test_target_of_a_cluster_that_is_not_there_says_how_to_make_it(machine: Machine) -> None:
    """No command goes on against a cluster that does not exist."""
    assert not machine.calls()
    with pytest.raises(EnvironmentProblem, match="kind has no cluster 'inference'; bring it up with"):
        KindBackend("inference").target()


def test_engine_that_does_not_answer_is_found_first(machine: Machine, progress: Progress) -> None:
    """Without a Docker engine nothing is tried, and the message has Docker's own words."""
    machine.answer("docker info", "Cannot connect to the Docker daemon", code=1)
    with pytest.raises(EnvironmentProblem, match="Cannot connect to the Docker daemon"):
        KindBackend("inference").up(progress)
    assert machine.calls() == ["docker info"]


def test_kind_that_fails_is_reported_with_its_words(machine: Machine, progress: Progress) -> None:
    """The reason that kind gives reaches the user, and the user's context stays."""
    machine.answer("kind create", "port is already allocated", code=1)
    with pytest.raises(CommandFailed, match="port is already allocated"):
        KindBackend("inference").up(progress)


def test_real_kind_reads_the_configuration(machine: Machine, kind_program: Path) -> None:
    """The real kind, against a stand-in for docker: three nodes of our names, each of the pinned image."""
    info = {
        "CgroupDriver": "systemd",
        "CgroupVersion": "2",
        "MemoryLimit": True,
        "PidsLimit": True,
        "CPUShares": True,
        "SecurityOptions": [],
    }
    machine.answer("docker info --format {{json .}}", json.dumps(info))
    machine.answer("docker network ls", "0123")
    machine.answer("docker run", "")
    machine.answer("docker logs", "systemd[1]: Reached target Multi-User System.")
    ended = subprocess.run(
        [kind_program, "create", "cluster", "--name", "inference", "--config", CONFIG],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    # All nodes were started; then kind asks for more than the stand-in knows.
    assert "failed to get api server endpoint" in ended.stderr
    started = sorted(call for call in machine.calls("docker") if call.startswith("docker run "))
    image = yaml.safe_load(CONFIG.read_text())["nodes"][0]["image"]
    assert "@sha256:" in image
    assert [call.split(" --name ")[1].split()[0] for call in started] == list(_NODES)
    assert all(call.endswith(f" {image}") for call in started)
    roles = [call.split("io.x-k8s.kind.role=")[1].split()[0] for call in started]
    assert roles == ["control-plane", "worker", "worker"]


def test_containerd_is_told_where_registries_are_described() -> None:
    """The folder that the backend writes to is the one that the configuration has containerd read."""
    patches = yaml.safe_load(CONFIG.read_text())["containerdConfigPatches"]
    assert f'config_path = "{_HOSTS.rpartition("/")[0]}"' in patches[0]
