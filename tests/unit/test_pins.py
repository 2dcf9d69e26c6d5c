"""A version is written in one place, in a lock file; images and actions are named by their hash."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tomllib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest
import yaml

from inferctl.cluster.kind import REGISTRY_IMAGE
from inferctl.paths import KUBE_MODULE, LOCK, ROOT

GO_MODULES = sorted(KUBE_MODULE.glob("**/go.mod"))
#: Where pins live; then where a measurement, or the output of a run, says which version it had.
_HOMES = {
    "requirements.lock",
    "flake.lock",
    *(str(module.with_name(name).relative_to(ROOT)) for module in GO_MODULES for name in ("go.mod", "go.sum")),
    "docs/benchmarks.md",
    "docs/walkthrough.md",
}
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){2,})(?![\w.]*\.\d)")
#: Applied as it is, so it cannot refer to the Dockerfile; it may only repeat what is there.
_COPY, _ORIGINAL = ROOT / "loadtest" / "job.yaml", ROOT / "engines" / "mock" / "Dockerfile"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_WANTED = [*_PROJECT["project"]["dependencies"], *_PROJECT["dependency-groups"]["dev"]]

if TYPE_CHECKING:
    from pathlib import Path

Pin = tuple[str, str]
Line = tuple[str, int, str]


def _python_pins() -> set[Pin]:
    found = re.findall(r"^([a-z0-9-]+)==(\S+?)(?: |$)", LOCK.read_text(), re.MULTILINE)
    return {(name, version) for name, version in found if version.count(".") >= 2}


def _go_pins() -> set[Pin]:
    """The last part of each module's path, and its version, over all Go modules here."""
    line = re.compile(r"^\s*(?:require )?([\w./-]+) v(\d\S*)(?: //.*)?$", re.MULTILINE)
    return {(_short(path), version) for module in GO_MODULES for path, version in line.findall(module.read_text())}


def _short(path: str) -> str:
    return re.sub(r"/v\d+$", "", path).rpartition("/")[2]


def _tools(go_mod: str) -> list[str]:
    """The packages that a go.mod builds as tools."""
    blocks = re.findall(r"^tool \((.*?)^\)", go_mod, re.MULTILINE | re.DOTALL)
    return [*re.findall(r"^tool ([^\s(]+)$", go_mod, re.MULTILINE), *" ".join(blocks).split()]


def _programs() -> set[str]:
    """What people call the packages and programs that this project asks for by name."""
    python = {re.split(r"[=<>;\[ ]", one)[0] for one in _WANTED}
    tools = {_short(package) for module in GO_MODULES for package in _tools(module.read_text())}
    names = {
        re.sub(r"^rust-|-(bin|py)$", "", name) for name in python | tools | {"kubernetes", "k8s", "python", "helm"}
    }
    return names - {"v3", "server"}  # names of folders, not of programs


def _lines() -> list[Line]:
    """Every line of every text file that git tracks, but for the homes of pins."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = []
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or name in _HOMES or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        lines += [(name, number, line) for number, line in enumerate(text.splitlines(), 1)]
    return lines


def _repeated(lines: list[Line], pins: set[Pin]) -> list[str]:
    """The lines that name a program or package together with the version that it is pinned to."""
    by_version = defaultdict(set)
    for name, version in pins:
        by_version[version].add(name)
    found = []
    for file, number, line in lines:
        for version in _VERSION.findall(line):
            names = [
                name
                for name in by_version.get(version, ())
                if re.search(rf"\b{re.escape(name)}\b", line, re.IGNORECASE)
            ]
            found += [f"{file}:{number}: {name} {version}" for name in names]
    return found


def _beside_a_name(lines: list[Line], programs: set[str]) -> list[str]:
    """The lines that give one of these programs any version at all, right behind its name."""
    names = "|".join(map(re.escape, sorted(programs)))
    beside = re.compile(
        rf"(?<![\w-])({names})(?:[_-]?version)?['\"]?(?:==|>=|[\s:=@/_-])\s*['\"]?v?(\d+[._]\d+[._]\d+)", re.IGNORECASE
    )
    return [
        f"{file}:{number}: {name} {version}"
        for file, number, line in lines
        if not file.startswith("tests/")  # versions there are made up, or what is to be found
        for name, version in beside.findall(line)
    ]


def test_version_of_a_package_or_program_is_written_once() -> None:
    """No other file repeats a version that a lock file pins, or gives a pinned program one of its own."""
    lines = _lines()
    assert _repeated(lines, _python_pins() | _go_pins()) == []
    assert _beside_a_name(lines, _programs()) == []


@pytest.mark.parametrize("module", GO_MODULES, ids=lambda module: str(module.parent.relative_to(ROOT)))
def test_version_of_each_go_module_is_found_when_it_is_repeated(module: Path) -> None:
    """The control: what any of the go.mod files pins, written into a document, is reported with its line."""
    text = module.read_text()
    path, version = re.findall(r"^\s+([\w./-]+) v(\d+\.\d+\.\d+)\b(?!-)", text, re.MULTILINE)[-1]
    assert f"a.md:7: {_short(path)} {version}" in _repeated([("a.md", 7, f"{path} is v{version}")], _go_pins())


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("docs/nix.md", "we use ruff 0.0.1 here"),
        ("README.md", "with Helm v4.0.0 or Kubernetes 1.37.9"),
        ("flake.nix", "            pkgs.shellcheck_0_10_0"),
        (".github/workflows/ci.yml", "          go-version: 1.26.6"),
        (".github/workflows/ci.yml", '          python-version: "3.11.9"'),
        (".github/workflows/ci.yml", "      - run: go install github.com/google/yamlfmt/cmd/yamlfmt@v0.1.0"),
        ("engines/mock/Dockerfile", "RUN pip install uvicorn==0.1.0"),
        ("local/kind-config.yml", "  kubernetes: v1.37.9"),
    ],
)
def test_another_version_of_a_program_is_found(file: str, line: str) -> None:
    """The control: a version of its own, right or wrong, in a document, the flake, the workflow or an image."""
    found = _beside_a_name([(file, 3, line)], _programs())
    assert found
    assert found[0].startswith(f"{file}:3: ")


def test_program_is_built_from_one_go_module() -> None:
    """Two modules that build the same tool could build two versions of it."""
    counted = Counter(package for module in GO_MODULES for package in _tools(module.read_text()))
    assert len(counted) > 10
    assert [package for package, times in counted.items() if times > 1] == []


@pytest.mark.parametrize("module", [KUBE_MODULE, KUBE_MODULE / "kubernetes-1.30"], ids=lambda module: module.name)
def test_parts_of_kubernetes_are_of_one_version(module: Path) -> None:
    """Kubernetes 1.X.Y is made of parts 0.X.Y, which Go needs to be told one by one."""
    text = (module / "go.mod").read_text()
    [whole] = re.findall(r"^\s+k8s\.io/kubernetes v1\.(\S+)$", text, re.MULTILINE)
    parts = re.findall(r"^replace k8s\.io/\S+ => k8s\.io/\S+ v0\.(\S+)$", text, re.MULTILINE)
    assert len(parts) > 20
    assert set(parts) == {whole}


def test_node_image_of_kind_has_the_minor_version_of_the_embedded_cluster() -> None:
    """Both backends run the same Kubernetes, but for patches."""
    [image] = {node["image"] for node in yaml.safe_load((ROOT / "local" / "kind-config.yml").read_text())["nodes"]}
    minor = re.search(r":v(\d+\.\d+)\.", image)
    assert minor
    assert f"k8s.io/kubernetes v{minor[1]}." in (KUBE_MODULE / "go.mod").read_text()


def test_documents_speak_of_the_vllm_that_the_suite_runs_on() -> None:
    """What is said of vLLM was seen in the version that tests/edges is run on."""
    script = ROOT / "tests" / "edges" / "run_vllm.py"
    spec = importlib.util.spec_from_file_location("run_vllm", script)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said = {version for _, _, line in _lines() for version in re.findall(r"\bvLLM v?(\d+\.\d+\.\d+)", line)}
    assert said == {module.VERSION}


def test_workflow_leaves_versions_to_the_pins() -> None:
    """No step of CI asks an action for a version of anything."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    asked = {key for job in jobs.values() for step in job["steps"] for key in step.get("with", {})}
    assert asked
    assert [key for key in asked if "version" in key] == []


def test_pyproject_names_packages_and_leaves_versions_to_the_lock() -> None:
    """Only ranges are allowed beside the names."""
    assert [one for one in _WANTED if re.search(r"\d+\.\d+\.\d+", one)] == []


def test_every_python_package_is_pinned_by_hash() -> None:
    """Each entry of the lock has hashes, and the lock names no place to download from."""
    lock = LOCK.read_text()
    entries = re.split(r"\n(?=[a-z0-9])", lock.partition("\n\n")[0] + "\n" + lock)
    assert [
        entry.split()[0] for entry in entries if "==" in entry.split("\n")[0] and "--hash=sha256:" not in entry
    ] == []
    assert "://" not in lock


def test_image_digest_is_written_in_one_file() -> None:
    """Two files that name the same image would be updated one without the other."""
    places = defaultdict(set)
    for file, _, line in _lines():
        # Tests make digests up, or borrow one.
        if not file.startswith(("tests/", "charts/inference-service/")) and file != str(_COPY.relative_to(ROOT)):
            for digest in _DIGEST.findall(line):
                places[digest].add(file)
    assert {digest: files for digest, files in places.items() if len(files) > 1} == {}


def test_manifest_that_is_applied_by_hand_names_the_image_of_the_dockerfile() -> None:
    """The one copy there is does not go its own way."""
    assert set(_DIGEST.findall(_COPY.read_text())) == set(_DIGEST.findall(_ORIGINAL.read_text()))


def test_images_are_named_by_digest() -> None:
    """Each image that anything here pulls has a digest."""
    nodes = yaml.safe_load((ROOT / "local" / "kind-config.yml").read_text())["nodes"]
    bases = re.findall(r"^FROM (\S+)", _ORIGINAL.read_text(), re.MULTILINE)
    images = [*(node["image"] for node in nodes), *bases, REGISTRY_IMAGE]
    assert [image for image in images if not _DIGEST.search(image) and not image.startswith("$")] == []


def test_nix_inputs_are_locked() -> None:
    """flake.lock pins the input that flake.nix names, by revision and hash, and flake.nix picks no version itself."""
    flake = (ROOT / "flake.nix").read_text()
    lock = json.loads((ROOT / "flake.lock").read_text())
    nixpkgs = lock["nodes"]["nixpkgs"]
    branch = nixpkgs["original"]["ref"]
    assert f'nixpkgs.url = "github:NixOS/nixpkgs/{branch}"' in flake
    assert re.fullmatch(r"[0-9a-f]{40}", nixpkgs["locked"]["rev"])
    assert nixpkgs["locked"]["narHash"].startswith("sha256-")
    assert re.findall(r"\bpkgs\.\w+?_\d\w*|python3\d+", flake) == []


def test_actions_are_pinned_by_commit() -> None:
    """Every action of every workflow is a commit, with the version beside it for people, and the same everywhere."""
    used = defaultdict(set)
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in re.findall(r"uses:(.*)", workflow.read_text()):
            found = re.fullmatch(r" ([\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+", line)
            assert found, f"{workflow.name}: uses:{line}"
            used[found[1]].add(found[2])
    assert used
    assert {action: commits for action, commits in used.items() if len(commits) > 1} == {}
