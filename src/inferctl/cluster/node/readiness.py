"""Whether a component is ready, asked from inside the node."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from inferctl.cluster.node.plan import Ready

_TRY_SECONDS = 2.0


def ask(ready: Ready) -> str:
    """Ask once; the empty string means ready, anything else says why not."""
    try:
        if ready.target.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(_TRY_SECONDS)
                client.connect(ready.target.removeprefix("unix:"))
            return ""
        return _http(ready)
    except (OSError, http.client.HTTPException) as error:
        return f"{ready.target}: {error}"


def _http(ready: Ready) -> str:
    url = urlsplit(ready.target)
    host, port = url.hostname or "", url.port
    connection: http.client.HTTPConnection
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=ready.ca)
        connection = http.client.HTTPSConnection(host, port, timeout=_TRY_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=_TRY_SECONDS)
    try:
        connection.request("GET", url.path)
        status = connection.getresponse().status
    finally:
        connection.close()
    return "" if status == http.client.OK else f"{ready.target}: HTTP {status}"
