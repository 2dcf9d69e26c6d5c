"""The certificate authority of one cluster and everything it signs.

Keys are P-256: a cluster needs about a dozen, and RSA keys would take seconds to make.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Address
    from pathlib import Path

_LIFETIME = dt.timedelta(days=365)  # a disposable cluster does not live longer
_CLOCK_SKEW = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, in files."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Signs the certificates of one cluster and keeps them in one folder."""

    def __init__(self, folder: Path) -> None:
        """Make a new authority whose files go to ``folder``."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("inferctl", ())
        certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(sign_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, *, addresses: Sequence[IPv4Address] = (), hosts: Sequence[str] = ()) -> KeyPair:
        """A certificate to serve with, valid for these addresses and host names."""
        names = [*(x509.IPAddress(address) for address in addresses), *(x509.DNSName(host) for host in hosts)]
        return self._sign(name, (), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, *, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate by which the API server knows ``user`` as a member of ``groups``."""
        return self._sign(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def signing_key(self, name: str) -> KeyPair:
        """A key pair without a certificate, for service account tokens; the public half takes its place."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = self._paths(name)
        pair.certificate.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        _write_key(pair.key, key)
        return pair

    def kubeconfig(self, path: Path, *, server: str, user: KeyPair, context: str) -> None:
        """Write a kubeconfig by which ``user`` reaches ``server``; it refers to the files of this folder."""
        path.write_text(json.dumps(kubeconfig(self.certificate, server=server, user=user, context=context), indent=1))
        path.chmod(0o600)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _LIFETIME)
        )

    def _sign(
        self,
        name: str,
        groups: Sequence[str],
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name(name, groups), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        pair = self._paths(name)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _paths(self, name: str) -> KeyPair:
        stem = name.replace(":", "-")
        return KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")


def kubeconfig(ca: Path, *, server: str, user: KeyPair, context: str) -> dict[str, object]:
    """The content of a kubeconfig with one cluster, one user and one context, all named ``context``."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [
            {
                "name": context,
                "user": {"client-certificate": str(user.certificate), "client-key": str(user.key)},
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }


def _name(common_name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
