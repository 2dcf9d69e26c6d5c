"""The quick set of disruptions, each with a control that must lose requests."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from inferctl.disruption.verdict import Outcome

if TYPE_CHECKING:
    from inferctl.cluster.target import Target

SECONDS = 1500


def test_quick_set_is_proven_and_its_controls_lose(target: Target) -> None:
    """Rollout, drain, bad rollout, kubelet restart and node loss keep their promises; every control loses."""
    name = target.context.removeprefix("inferctl-")
    command = [sys.executable, "-m", "inferctl", "test", "quick", "--with-controls", "--name", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-4000:]
    assert f"verdict: {Outcome.PROVEN.value}" in done.stdout.strip().splitlines()[-1]
