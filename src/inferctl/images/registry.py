"""A registry on loopback, for as long as something is pushed to it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from inferctl.errors import ComponentFailed
from inferctl.paths import tool
from inferctl.process.command import tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORT = 5001
#: A cluster's registry as nodes and pod specs write it, whatever its address.
NAME = f"localhost:{PORT}"
_SECONDS = 30


def configuration(storage: Path, address: str) -> str:
    """The configuration of a registry: its files in ``storage``, plain HTTP on ``address``, no access log."""
    content = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(storage)}},
        "http": {"addr": address},
    }
    return json.dumps(content, indent=1)


@contextmanager
def serving(storage: Path) -> Iterator[str]:
    """Serve the registry whose files are in ``storage``; gives its ``host:port``.

    Raises:
        ComponentFailed: it exited or did not listen in time.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    storage.mkdir(parents=True, exist_ok=True)
    config = storage.with_suffix(".json")
    log = storage.with_suffix(".log")
    config.write_text(configuration(storage, address))
    with log.open("wb") as output:
        process = subprocess.Popen([tool("registry"), "serve", config], stdout=output, stderr=output)
    try:
        _wait_listening(process, address, log)
        yield address
    finally:
        process.terminate()
        process.wait()
        config.unlink()
        log.unlink(missing_ok=True)


def _wait_listening(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + _SECONDS
    while True:
        if process.poll() is not None:
            raise ComponentFailed(f"registry exited with code {process.returncode}\n{tail(log.read_text())}")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise ComponentFailed(f"registry does not listen on {address} after {_SECONDS} s") from error
            time.sleep(0.02)
        else:
            return
