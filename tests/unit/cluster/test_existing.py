"""The existing backend: it needs to be told everything, and changes nothing."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from inferctl.cluster.backend import choose
from inferctl.cluster.existing import ExistingBackend
from inferctl.console import Progress
from inferctl.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
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


@pytest.mark.parametrize("content", ["- a\n", "{{", "contexts: [1]\n"])
def test_file_that_is_no_kubeconfig_is_named(machine: Machine, content: str) -> None:
    """A wrong file is the user's to mend: its path is in the message, not a traceback."""
    (machine.home / "kubeconfig").write_text(content)
    with pytest.raises(EnvironmentProblem, match="kubeconfig is no kubeconfig"):
        ExistingBackend("staging")


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
