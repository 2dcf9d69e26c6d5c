"""One inferctl at a time per cluster.

The lock is the kernel's, so it ends with its holder however that ends. A child that was forked but has not yet
become another program still holds it, which is what makes "no marked process is left" a safe thing to conclude.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from inferctl.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inferctl.cluster.spec import ClusterSpec

_PATIENCE_SECONDS = 5.0


@contextmanager
def locked(spec: ClusterSpec) -> Iterator[None]:
    """Hold the cluster's lock during the block.

    Raises:
        EnvironmentProblem: another process holds it; the message names the process.
    """
    with _open(spec) as file:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    file.seek(0)
                    holder = file.read().strip() or "unknown"
                    raise EnvironmentProblem(
                        f"cluster {spec.name!r} is being changed by process {holder}; "
                        f"wait for it, or end it with: kill {holder}"
                    ) from None
                time.sleep(0.05)
        # On a full disk the lock holds without a name in it.
        with suppress(OSError):
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), str(os.getpid()).encode())
        yield


def _open(spec: ClusterSpec) -> IO[str]:
    folder = spec.folder.parent / ".locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / spec.name).open("a+")
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder} cannot be written ({error.strerror}); run as root, or let INFERCTL_STATE name another folder"
        ) from error
