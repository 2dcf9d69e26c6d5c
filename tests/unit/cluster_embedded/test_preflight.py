"""What a machine lacks is found before anything is changed, all of it at once, each with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from inferctl.cluster import network, preflight
from inferctl.cluster.embedded_backend import EmbeddedBackend
from inferctl.cluster.spec import ClusterSpec
from inferctl.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from ipaddress import IPv4Network
    from pathlib import Path


class Usage(NamedTuple):
    """As `shutil.disk_usage` answers."""

    total: int
    used: int
    free: int


def overlapping(decide: Callable[[IPv4Network], list[str]]) -> Callable[..., list[str]]:
    """Stands in for the look at the host's routes."""

    def overlaps(candidate: IPv4Network, *, own_link: str = "") -> list[str]:
        assert own_link
        return decide(candidate)

    return overlaps


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))


def test_every_lack_is_listed_at_once_with_its_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not root, no nft, no space and no free address range give one message with a fix for each."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage(10, 10, 1))
    monkeypatch.setattr(network, "overlaps", overlapping(lambda _network: ["10.0.0.0/8 on eth7"]))
    with pytest.raises(EnvironmentProblem) as caught:
        preflight.require(ClusterSpec("trial"))
    message = str(caught.value)
    for said in (
        "sudo ./just",
        "apt-get install -y",
        "nftables",
        "INFERCTL_STATE",
        "10.0.0.0/8 on eth7",
        "ip route del",
    ):
        assert said in message
    assert message.endswith("Nothing was changed.")
    assert not (tmp_path / "state").exists()


def test_low_inotify_limit_names_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too few inotify instances are left, those in use are told, and the command that allows more."""
    limit = tmp_path / "limit"
    monkeypatch.setattr(preflight, "_INOTIFY_LIMIT", limit)
    monkeypatch.setattr(preflight, "_inotify_in_use", lambda: 90)
    limit.write_text("128\n")
    told = [str(p) for p in preflight.check(ClusterSpec("trial")) if "inotify" in str(p)]
    assert told == [
        (
            "fs.inotify.max_user_instances is 128 and 90 are in use, where a cluster needs 48 more; "
            "raise it with: sysctl fs.inotify.max_user_instances=474"
        )
    ]
    limit.write_text("138\n")
    assert not [p for p in preflight.check(ClusterSpec("trial")) if "inotify" in str(p)]


def test_open_inotify_instances_are_counted(tmp_path: Path) -> None:
    """Each instance of this user's processes is counted, and nothing else that they have open."""
    for process, links in {"7": ["anon_inode:inotify", "/dev/null", "anon_inode:inotify"], "8": [], "self": []}.items():
        folder = tmp_path / process / "fd"
        folder.mkdir(parents=True)
        for number, target in enumerate(links):
            (folder / str(number)).symlink_to(target)
    (tmp_path / "9").mkdir()  # one that has just ended
    assert preflight._inotify_in_use(tmp_path) == 2


def test_network_of_another_cluster_is_not_taken() -> None:
    """A new cluster gets a node network that no other cluster has."""
    ClusterSpec("one", index=preflight.free_index(ClusterSpec("one"))).save()
    first = ClusterSpec.load("one")
    assert first is not None
    assert preflight.free_index(ClusterSpec("two")) > first.index


def test_network_that_the_host_routes_elsewhere_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node network that overlaps a route of the host is passed over."""
    busy = ClusterSpec("x", index=0).network
    monkeypatch.setattr(network, "overlaps", overlapping(lambda candidate: ["eth7"] if candidate == busy else []))
    assert preflight.free_index(ClusterSpec("trial")) == 1


def test_unknown_kubernetes_names_the_known_ones() -> None:
    """A version that cannot be had is refused with those that can."""
    with pytest.raises(UsageError, match=r"'1\.2': write 1\.30, or nothing"):
        EmbeddedBackend("trial", "1.2")


def test_version_of_an_existing_cluster_is_not_changed() -> None:
    """Asking an existing cluster for another version is refused with both ways out."""
    ClusterSpec("trial").save()
    with pytest.raises(UsageError, match="cluster down --name trial"):
        EmbeddedBackend("trial", "1.30")


def test_broken_kubeconfig_is_found_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig that cannot be added to is a problem of the machine, found before anything is changed."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    assert any(f"the kubeconfig {tmp_path} cannot be read" in str(p) for p in preflight.check(ClusterSpec("trial")))
