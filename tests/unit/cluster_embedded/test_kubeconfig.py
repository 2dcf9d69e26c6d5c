"""The user's kubeconfig is added to, and given back as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from inferctl.cluster import kubeconfig
from inferctl.cluster.pki import CertificateAuthority
from inferctl.cluster.spec import ClusterSpec

if TYPE_CHECKING:
    from pathlib import Path

OTHER = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://example.invalid"}}],
    "users": [{"name": "work", "user": {"token": "x"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "work"}}],
    "current-context": "work",
}


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """A cluster with an administrator's kubeconfig."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "home" / ".kube" / "config"))
    spec = ClusterSpec("trial")
    spec.save()
    authority = CertificateAuthority(spec.folder / "pki")
    authority.kubeconfig(spec.kubeconfig, server=spec.api_url, user=authority.client("admin"), context=spec.context)
    return spec


def test_context_is_added_beside_the_users_own(spec: ClusterSpec) -> None:
    """The user's contexts and current context stay; after removal the file means what it meant before."""
    path = kubeconfig.user_file()
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(OTHER))
    kubeconfig.add_context(spec)
    content = yaml.safe_load(path.read_text())
    assert content["current-context"] == "work"
    assert {entry["name"] for entry in content["contexts"]} == {"work", "inferctl-trial"}
    kubeconfig.remove_context(spec)
    assert yaml.safe_load(path.read_text()) == OTHER


def test_file_made_for_the_context_goes_with_it(spec: ClusterSpec, tmp_path: Path) -> None:
    """Where there was no kubeconfig, none is left, nor a folder that was made for it."""
    path = kubeconfig.add_context(spec)
    assert yaml.safe_load(path.read_text())["current-context"] == "inferctl-trial"
    kubeconfig.remove_context(spec)
    assert not (tmp_path / "home").exists()


def test_removal_twice_is_no_error(spec: ClusterSpec) -> None:
    """Removing a context that is gone changes nothing."""
    kubeconfig.add_context(spec)
    kubeconfig.remove_context(spec)
    kubeconfig.remove_context(spec)
