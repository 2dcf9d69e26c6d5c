"""The certificates of a cluster, checked by a real TLS handshake."""

from __future__ import annotations

import ssl
import threading
from ipaddress import IPv4Address
from socket import socketpair
from typing import TYPE_CHECKING

from inferctl.cluster.pki import CertificateAuthority, KeyPair

if TYPE_CHECKING:
    from pathlib import Path


def _handshake(ca: Path, server: KeyPair, client: KeyPair, name: str) -> dict[str, object]:
    """Shake hands as the API server and a client do; returns the client's certificate as the server saw it."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    serving.load_cert_chain(server.certificate, server.key)
    serving.verify_mode = ssl.CERT_REQUIRED
    calling = ssl.create_default_context(cafile=ca)
    calling.load_cert_chain(client.certificate, client.key)
    near, far = socketpair()
    seen: dict[str, object] = {}

    def serve() -> None:
        with serving.wrap_socket(far, server_side=True) as connection:
            seen.update(connection.getpeercert() or {})
            connection.send(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    with calling.wrap_socket(near, server_hostname=name) as connection:
        connection.recv(1)
    thread.join()
    return seen


def test_server_is_trusted_by_address_and_name(tmp_path: Path) -> None:
    """A client that trusts the authority accepts the server by each of its addresses and names."""
    authority = CertificateAuthority(tmp_path)
    server = authority.server("s", addresses=[IPv4Address("10.96.0.1")], hosts=["kubernetes.default.svc"])
    client = authority.client("someone", groups=["some-group"])
    for name in ("10.96.0.1", "kubernetes.default.svc"):
        subject = str(_handshake(authority.certificate, server, client, name)["subject"])
        assert "someone" in subject
        assert "some-group" in subject


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    """A private key's file gives no right to anyone but its owner."""
    pair = CertificateAuthority(tmp_path).client("someone")
    assert pair.key.stat().st_mode & 0o077 == 0
