"""The existing backend: it needs to be told everything, and changes nothing."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from rich.console import Console

from inferctl.cluster.backend import choose
from inferctl.cluster.commands import status
from inferctl.cluster.existing import ExistingBackend
from inferctl.cluster.target import Target
from inferctl.console import Progress
from inferctl.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cluster.conftest import Machine

_VERSION = '{"major": "1", "minor": "33+", "gitVersion": "v1.33.2-gke.1"}'


@pytest.fixture
def progress() -> Progress:
    """Progress that nobody sees."""
    return Progress(Console(file=io.StringIO()))


@pytest.fixture
def user(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose user has two clusters and a registry."""
    contexts = [{"name": name, "context": {"cluster": name, "user": name}} for name in ("staging", "production")]
    content = {"apiVersion": "v1", "kind": "Config", "contexts": contexts, "current-context": "production"}
    (machine.home / "kubeconfig").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("INFERCTL_REGISTRY", "registry.example.com/team")
    machine.answer("kubectl --kubeconfig", _VERSION)
    return machine


def test_up_asks_the_named_cluster_and_changes_nothing(user: Machine, progress: Progress) -> None:
    """The only call is a question to the context that was named."""
    before = (user.home / "kubeconfig").read_text()
    target = choose("existing", "staging").up(progress)
    assert user.calls() == [
        f"kubectl --kubeconfig={user.home}/kubeconfig --context=staging --request-timeout=10s get --raw /version"
    ]
    assert (target.context, target.push, target.pull) == (
        "staging",
        "registry.example.com/team",
        "registry.example.com/team",
    )
    assert target.plain_http is False
    assert (user.home / "kubeconfig").read_text() == before


def test_down_leaves_the_cluster_alone(user: Machine, progress: Progress) -> None:
    """What was not made here is not removed here: no program is run at all."""
    choose("existing", "staging").down(progress)
    assert user.calls() == []


def test_context_must_be_named(user: Machine) -> None:
    """The current context is never taken, since it may be anything; the message lists the contexts there are."""
    assert not user.calls()
    with pytest.raises(UsageError, match=r"--name CONTEXT; .* has: production, staging"):
        choose("existing")
    with pytest.raises(UsageError, match=r"context 'stagin': there is none of this name; .*production, staging"):
        choose("existing", "stagin")


def test_backend_is_never_chosen_unasked(user: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a kubeconfig at hand, a user who names no backend still gets a cluster of their own."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert choose().name == "kind"
    user.answer("docker info", "no daemon", code=1)
    with pytest.raises(EnvironmentProblem, match="There are two ways"):
        choose()


def test_registry_must_be_named(user: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a registry the message names both variables, and says which form they have."""
    monkeypatch.delenv("INFERCTL_REGISTRY")
    assert not user.calls()
    with pytest.raises(EnvironmentProblem, match=r"INFERCTL_REGISTRY=HOST\[:PORT\]\[/PATH\].*INFERCTL_REGISTRY_PULL"):
        ExistingBackend("staging").target()


@pytest.mark.parametrize(
    "address",
    [
        "https://registry.example.com",
        "registry.example.com/team:tag",
        "r@sha256:00",
        "registry.example.com/Team",
        "a b",
    ],
)
def test_address_that_is_no_registry_is_refused(user: Machine, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """A scheme, a tag, a digest or an illegal path is named before anything is pushed."""
    monkeypatch.setenv("INFERCTL_REGISTRY", address)
    assert not user.calls()
    with pytest.raises(UsageError, match="without a scheme, tag or digest"):
        ExistingBackend("staging").target()


def test_nodes_may_know_the_registry_by_another_address(user: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushing and pulling can differ, and plain HTTP is only spoken when asked for."""
    monkeypatch.setenv("INFERCTL_REGISTRY", "localhost:5000")
    monkeypatch.setenv("INFERCTL_REGISTRY_PULL", "registry.local:5000/")
    monkeypatch.setenv("INFERCTL_REGISTRY_PLAIN_HTTP", "1")
    assert not user.calls()
    target = ExistingBackend("staging").target()
    assert (target.push, target.pull, target.plain_http) == ("localhost:5000", "registry.local:5000", True)


@pytest.mark.parametrize(
    ("answer", "code", "why"),
    [
        ("Unable to connect to the server: dial tcp: no route", 1, "no route"),
        ("error: EOF", 1, "has no credentials for the context's user"),
        ("<html>login</html>", 0, "Expecting value"),
        ('{"major": "1", "minor": "29", "gitVersion": "v1.29.8"}', 0, "it is Kubernetes v1.29.8"),
    ],
)
def test_cluster_that_cannot_be_used_is_named_with_the_reason(  # noqa: PLR0917 - fixtures and cases
    machine: Machine, user: Machine, progress: Progress, answer: str, code: int, why: str
) -> None:
    """No answer, an answer that is not Kubernetes', and a version that is too old, each by its reason."""
    machine.set(answers=[])
    user.answer("kubectl", answer, code)
    backend = ExistingBackend("staging")
    with pytest.raises(EnvironmentProblem, match=why):
        backend.up(progress)
    state = backend.describe()
    assert state["up"] is False
    assert why in str(state["problem"])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"- a\n", "holds no kubeconfig"),
        (b"contexts: [1]\n", "holds no kubeconfig"),
        (b"contexts: {a: b}\n", "holds no kubeconfig"),
        (b"a: b\n{{\n", r"cannot be read \(line \d+: "),
        (b"\xff", "cannot be read"),
    ],
)
def test_file_that_is_no_kubeconfig_is_named(machine: Machine, content: bytes, why: str) -> None:
    """A wrong file is the user's to mend: its path, the reason and the variable are in the message."""
    (machine.home / "kubeconfig").write_bytes(content)
    with pytest.raises(EnvironmentProblem, match=f"{machine.home}/kubeconfig {why}.*; set KUBECONFIG"):
        ExistingBackend("staging")


_KUBECONFIG: dict[str, Any] = {
    "contexts": [{"name": "staging", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1"}}],
    "users": [{"name": "u", "user": {}}],
}


@pytest.mark.parametrize(
    "damage",
    [
        {"contexts": []},
        {"clusters": []},
        {"users": None},
        {"clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1", "certificate-authority": "/gone"}}]},
        {"clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority-data": "bm9uZQ=="}}]},
        {"users": [{"name": "u", "user": {"client-certificate-data": "!", "client-key-data": "!"}}]},
    ],
)
def test_kubeconfig_that_leads_nowhere_is_told(tmp_path: Path, damage: dict[str, Any]) -> None:
    """When no client can be made, the message has file, context and the command that says more."""
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({**_KUBECONFIG, **damage}))
    target = Target("existing", file, "staging", "push:1", "pull:1")
    wanted = rf"context 'staging' of the kubeconfig {file} cannot be used \(.+\); .*kubectl --kubeconfig {file} "
    with pytest.raises(EnvironmentProblem, match=wanted):
        target.client()


def test_status_says_what_was_asked_and_what_answered(user: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """A person sees context, file, registry, version and nodes, and whether each node is ready."""
    nodes = [
        {
            "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"kubeletVersion": "v1.33.2"}},
        }
        for name, ready in (("one", "True"), ("two", "Unknown"))
    ]
    options = f"--kubeconfig={user.home}/kubeconfig --context=staging --request-timeout=10s"
    user.set(answers=[])
    user.answer(f"kubectl {options} get nodes", json.dumps({"items": nodes}))
    user.answer("kubectl", _VERSION)
    status("existing", "staging", as_json=False)
    said = capsys.readouterr().out
    for text in (
        "cluster staging (existing): up", f"context: staging of {user.home}/kubeconfig",
        "registry: registry.example.com/team", "kubernetes: v1.33.2-gke.1",
    ):  # fmt: skip
        assert text in said
    assert re.search(r"one .* kubelet v1.33.2 .* ready", said)
    assert re.search(r"two .* kubelet v1.33.2 .* not ready", said)


def test_status_of_a_cluster_that_does_not_answer_says_why(
    user: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is kubectl's own, beside what was asked and what else is missing."""
    monkeypatch.delenv("INFERCTL_REGISTRY")
    user.set(answers=[])
    user.answer("kubectl", "Unable to connect to the server: no route to host", code=1)
    with pytest.raises(typer.Exit):
        status("existing", "staging", as_json=False)
    said = capsys.readouterr().out
    for text in (
        "cluster staging (existing): not up", f"context: staging of {user.home}/kubeconfig",
        "problem: Unable to connect to the server: no route to host; see what this says: kubectl",
        "name one with INFERCTL_REGISTRY",
    ):  # fmt: skip
        assert text in said


@pytest.mark.parametrize(
    "answer", ["[]", "{}", '{"major": [], "minor": "1", "gitVersion": "v1"}', '{"minor": ""}', "1"]
)
def test_answer_that_is_not_kubernetes_is_told(user: Machine, answer: str) -> None:
    """Something else at the API's address is a problem that is told."""
    user.set(answers=[])
    user.answer("kubectl", answer)
    assert "what answers is no Kubernetes" in str(ExistingBackend("staging").describe()["problem"])


def test_account_that_may_not_look_at_nodes_sees_the_rest(user: Machine) -> None:
    """Without the right to list nodes, a cluster is up all the same."""
    user.set(answers=[])
    user.answer(f"kubectl --kubeconfig={user.home}/kubeconfig --context=staging --request-timeout=10s get nodes", "", 1)
    user.answer("kubectl", _VERSION)
    state = ExistingBackend("staging").describe()
    assert (state["up"], state["nodes"]) == (True, [])


def test_missing_kubeconfig_and_several_of_them_are_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is worked with; none and two are named with what to do."""
    with pytest.raises(EnvironmentProblem, match="is no file; set KUBECONFIG"):
        ExistingBackend("staging")
    monkeypatch.setenv("KUBECONFIG", f"{machine.home}/a:{machine.home}/b")
    with pytest.raises(UsageError, match="kubectl config view --flatten"):
        ExistingBackend("staging")


def test_versions_are_for_the_embedded_cluster_alone(user: Machine) -> None:
    """A version asked of a cluster that cannot have it is refused, not ignored."""
    assert not user.calls()
    with pytest.raises(UsageError, match="only the embedded cluster has other versions"):
        choose("existing", "staging", "1.30")
    with pytest.raises(UsageError, match="only the embedded cluster has other versions"):
        choose("kind", "", "1.30")
