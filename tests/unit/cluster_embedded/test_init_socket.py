"""The socket through which a node's init is asked."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

from inferctl.cluster import init_client
from inferctl.cluster.node import __main__ as init
from inferctl.process.wait import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_socket_has_its_name_only_when_it_can_be_connected_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the name is never refused, and what a killed init left is no hindrance."""
    path = tmp_path / "init.sock"
    (tmp_path / "new.sock").touch()
    listen, named_before, begun = socket.socket.listen, [], threading.Event()

    def watched(server: socket.socket, *arguments: Any) -> None:  # noqa: ANN401 - as the original
        named_before.append(path.exists())
        listen(server, *arguments)

    monkeypatch.setattr(socket.socket, "listen", watched)
    threading.Thread(target=init._serve, args=(path, None, begun), daemon=True).start()
    wait_until(lambda: "" if path.exists() else "no name", 10, every=0.01)
    assert init_client.ask(tmp_path, "begin") == "begun"
    assert begun.is_set()
    assert named_before == [False]
