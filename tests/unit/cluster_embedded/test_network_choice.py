"""Clusters that are brought up at the same moment never get the same network."""

from __future__ import annotations

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from inferctl.cluster import embedded, launch, lock, network, preflight
from inferctl.cluster.spec import ClusterSpec

if TYPE_CHECKING:
    from ipaddress import IPv4Network
    from pathlib import Path

    import pytest

#: How long the first cluster's bridge takes, which is the time in which the second one must not choose.
_SECONDS = 0.3


def test_two_clusters_at_once_get_two_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cluster chooses when the host has a route to the first, also where it cannot see the first's files."""
    routes: list[IPv4Network] = []
    both_look = threading.Barrier(2)

    def overlaps(candidate: IPv4Network, *, own_link: str) -> list[str]:
        del own_link
        return [str(route) for route in routes if route.overlaps(candidate)]

    def make_bridge(spec: ClusterSpec, _: int) -> None:
        # Reached by both only if both have chosen before either has a route.
        with suppress(threading.BrokenBarrierError):
            both_look.wait(_SECONDS)
        routes.append(spec.network)

    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(lock, "_NETWORKS", tmp_path / "networks")
    monkeypatch.setattr(preflight, "others", lambda _: [])
    monkeypatch.setattr(network, "overlaps", overlaps)
    monkeypatch.setattr(network, "make_bridge", make_bridge)
    monkeypatch.setattr(network, "wait_namespace", lambda _: None)
    with subprocess.Popen(["sleep", "60"]) as process, ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(launch, "switch", lambda _: process)
        try:
            specs = [spec for spec, _ in pool.map(embedded._connect, map(ClusterSpec, ("one", "two")))]
        finally:
            process.kill()
    assert {spec.index for spec in specs} == {0, 1}
    assert [ClusterSpec.load(spec.name) for spec in specs] == specs


def test_another_state_folder_shares_the_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is the machine's: clusters in different folders have the same routes of the host to choose by."""
    monkeypatch.setenv("INFERCTL_STATE", str(tmp_path))
    assert not lock._NETWORKS.is_relative_to(tmp_path)
