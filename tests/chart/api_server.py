"""An API server of the pinned Kubernetes on loopback, with its etcd and nothing else.

It judges objects (validation, defaults, admission) by dry run; no controller acts on anything.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import httpx2

from inferctl.cluster.pki import CertificateAuthority
from inferctl.errors import ComponentFailed
from inferctl.paths import tool
from inferctl.process.command import tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LOOPBACK = ipaddress.IPv4Address("127.0.0.1")
_READY_SECONDS = 120
_POLL_SECONDS = 0.05


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """Run etcd and the API server in ``folder`` and give the administrator's kubeconfig.

    Raises:
        ComponentFailed: one of them ended, or was not ready in time; the message has the end of its log.
    """
    authority = CertificateAuthority(folder / "pki")
    serving = authority.server("kube-apiserver", addresses=[_LOOPBACK])
    tokens = authority.signing_key("service-accounts")
    administrator = authority.client("admin", groups=["system:masters"])
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    trust.load_cert_chain(administrator.certificate, administrator.key)
    clients, peers, port = _free_ports(3)
    etcd, server = f"http://127.0.0.1:{clients}", f"https://127.0.0.1:{port}"
    program = folder / "kube-apiserver"
    program.symlink_to(tool("kube"))
    with ExitStack() as stack:
        stack.enter_context(
            _process(
                folder / "etcd.log",
                [
                    tool("etcd"),
                    f"--data-dir={folder / 'etcd'}",
                    f"--listen-client-urls={etcd}",
                    f"--advertise-client-urls={etcd}",
                    f"--listen-peer-urls=http://127.0.0.1:{peers}",
                    "--unsafe-no-fsync",  # nothing here outlives the tests
                    "--log-level=warn",
                ],
                ready=f"{etcd}/health",
            )
        )
        stack.enter_context(
            _process(
                folder / "kube-apiserver.log",
                [
                    program,
                    f"--etcd-servers={etcd}",
                    "--bind-address=127.0.0.1",
                    f"--secure-port={port}",
                    f"--client-ca-file={authority.certificate}",
                    f"--tls-cert-file={serving.certificate}",
                    f"--tls-private-key-file={serving.key}",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    f"--service-account-key-file={tokens.certificate}",
                    f"--service-account-signing-key-file={tokens.key}",
                    "--service-cluster-ip-range=10.96.0.0/24",
                    "--authorization-mode=RBAC",
                    "--endpoint-reconciler-type=none",
                ],
                ready=f"{server}/readyz",
                trust=trust,
            )
        )
        kubeconfig = folder / "kubeconfig"
        authority.kubeconfig(kubeconfig, server=server, user=administrator, context="chart-tests")
        yield kubeconfig


@contextmanager
def _process(
    log: Path, command: Sequence[str | Path], *, ready: str, trust: ssl.SSLContext | None = None
) -> Iterator[None]:
    # The kernel ends the program when the tests end, however they end.
    words = ["setpriv", "--pdeathsig", "KILL", *map(str, command)]
    with log.open("wb") as output, subprocess.Popen(words, stdout=output, stderr=output) as process:
        try:
            _wait(process, log, ready, trust)
            yield
        finally:
            process.kill()  # a disposable etcd has nothing to save


def _wait(process: subprocess.Popen[bytes], log: Path, ready: str, trust: ssl.SSLContext | None) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    seen: object = "nothing"
    with httpx2.Client(verify=trust or True, timeout=2) as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise ComponentFailed(f"{log.stem} ended with code {process.returncode}:\n{_end(log)}")
            try:
                seen = client.get(ready).status_code
            except httpx2.TransportError as error:
                seen = error
            if seen == httpx2.codes.OK:
                return
            time.sleep(_POLL_SECONDS)
    raise ComponentFailed(f"{log.stem}: {ready} gave {seen} for {_READY_SECONDS} s:\n{_end(log)}")


def _end(log: Path) -> str:
    return tail(log.read_text(encoding="utf-8", errors="replace"))


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((str(_LOOPBACK), 0))
        return [int(each.getsockname()[1]) for each in sockets]
