"""Stand-ins for docker and kubectl that write down how they were called, and keep what a real one would remember."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from inferctl import paths
from inferctl.cluster import existing, kind

if TYPE_CHECKING:
    from pathlib import Path

# Started without site packages, and with two modules alone: a test makes dozens of calls.
_STAND_IN = """#!{python} -IS
import json, sys

home = {home!r}
name, words = sys.argv[0].rpartition("/")[2], sys.argv[1:]
given = sys.stdin.read() if "-i" in words else ""
with open(home + "/calls", "a") as calls:
    calls.write(json.dumps([name, *words] + ([given] if given else [])) + "\\n")
with open(home + "/state") as file:
    state = json.load(file)
line = " ".join([name, *words])
for prefix, code, said in state["answers"]:
    if line.startswith(prefix):
        print(said)
        sys.exit(code)

def keep(**changes):
    with open(home + "/state", "w") as file:
        json.dump(state | changes, file)

match [name, *words]:
    case ["docker", "ps", "--all", "--filter", what, *_] if what.startswith("label="):
        for node in state["clusters"].get(what.rpartition("=")[2], []):
            print(json.dumps({{"Names": node, "State": state["nodes"]}}))
    case ["docker", "ps", "--all", *_]:
        print(state["registry"])
    case ["docker", "run" | "start", *_]:
        keep(registry="running")
    case ["docker", "rm", *_]:
        keep(registry="", networks=["bridge"])
    case ["docker", "inspect", *_]:
        print(json.dumps(dict.fromkeys(state["networks"], {{}})))
    case ["docker", "network", "connect", network, _]:
        keep(networks=[*state["networks"], network])
    case ["kind", "get", "clusters"]:
        print("\\n".join(state["clusters"]))
    case ["kind", "create", "cluster", "--name", cluster, *_]:
        nodes = [f"{{cluster}}-{{node}}" for node in ("worker2", "control-plane", "worker")]
        keep(clusters=state["clusters"] | {{cluster: nodes}})
    case ["kind", "delete", "cluster", "--name", cluster]:
        keep(clusters={{name: nodes for name, nodes in state["clusters"].items() if name != cluster}})
    case ["kubectl", "config", "current-context"]:
        print(state["context"])
        sys.exit(not state["context"])
"""


@dataclass(frozen=True)
class Machine:
    """A machine with stand-ins for the programs that make clusters."""

    home: Path

    def set(self, **changes: object) -> None:
        """Change what the stand-ins remember."""
        file = self.home / "state"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    def answer(self, prefix: str, said: str, code: int = 0) -> None:
        """Give this answer to every call that begins so."""
        answers = json.loads((self.home / "state").read_text())["answers"]
        self.set(answers=[*answers, [prefix, code, said]])

    def calls(self, program: str = "") -> list[str]:
        """The calls so far, in order, as one line each; of one program, if it is named."""
        file = self.home / "calls"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [" ".join(row) for row in rows if program in {"", row[0]}]

    def forget(self) -> None:
        """Start the list of calls anew."""
        (self.home / "calls").unlink(missing_ok=True)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a Docker engine and no cluster, whose programs are stand-ins."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("docker", "kind", "kubectl"):
        (programs / name).write_text(_STAND_IN.format(python=sys.executable, home=str(tmp_path)))
        (programs / name).chmod(0o755)
    state = {
        "answers": [],
        "clusters": {},
        "nodes": "running",
        "registry": "",
        "networks": ["bridge"],
        "context": "",
    }
    (tmp_path / "state").write_text(json.dumps(state))
    monkeypatch.setattr(paths, "BIN", programs)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    for variable in ("INFERCTL_BACKEND", "INFERCTL_CLUSTER_NAME", "INFERCTL_REGISTRY", "INFERCTL_REGISTRY_PULL"):
        monkeypatch.delenv(variable, raising=False)
    for module in (kind, existing):
        monkeypatch.setattr(module, "ensure", lambda _purposes, _progress: None)
    return Machine(tmp_path)


@pytest.fixture
def kind_program() -> Path:
    """The real kind, as this project builds it."""
    program = paths.TOOLS / "bin" / "kind"
    subprocess.run([program, "version"], check=True, capture_output=True)
    return program
