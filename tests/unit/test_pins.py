"""A version is written in one place, in a lock file; images and actions are named by their hash."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import defaultdict

import yaml

from inferctl.paths import KUBE_MODULE, LOCK, ROOT

_GO_MODULES = (KUBE_MODULE / "go.mod",)
#: Where pins live, and where a measurement says which version it measured.
_HOMES = ("requirements.lock", "flake.lock", "go.mod", "go.sum", "docs/benchmarks.md")
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){2,})(?![\w.]*\.\d)")
#: Applied as it is, so it cannot refer to the Dockerfile; it may only repeat what is there.
_COPY, _ORIGINAL = ROOT / "loadtest" / "job.yaml", ROOT / "engines" / "mock" / "Dockerfile"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def _python_pins() -> dict[str, str]:
    found = re.findall(r"^([a-z0-9-]+)==(\S+?)(?: |$)", LOCK.read_text(), re.MULTILINE)
    return {name: version for name, version in found if version.count(".") >= 2}


def _go_pins() -> dict[str, str]:
    pins = {}
    for module in _GO_MODULES:
        for path, version in re.findall(
            r"^\s*(?:require )?([\w./-]+) v(\d\S*)(?: //.*)?$", module.read_text(), re.MULTILINE
        ):
            name = re.sub(r"/v\d+$", "", path).rpartition("/")[2]
            pins[name] = version
    return pins


def _lines() -> list[tuple[str, int, str]]:
    """Every line of every text file that git tracks, but for the homes of pins."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = []
    for name in listed.split("\0"):
        path = ROOT / name
        if not name or name.endswith(_HOMES) or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        lines += [(name, number, line) for number, line in enumerate(text.splitlines(), 1)]
    return lines


def _twice(lines: list[tuple[str, int, str]], pins: dict[str, str]) -> list[str]:
    """The lines that name a program or package together with the version that it is pinned to."""
    by_version = defaultdict(set)
    for name, version in pins.items():
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


def test_version_of_a_package_or_program_is_written_once() -> None:
    """No other file repeats a version that a lock file pins; it would be forgotten at the next update."""
    assert _twice(_lines(), _python_pins() | _go_pins()) == []


def test_a_version_that_is_written_twice_is_found() -> None:
    """The control: a planted repetition of each kind is reported with its line."""
    python, go = _python_pins(), _go_pins()
    planted = [
        ("a.md", 1, f"we use ruff {python['ruff']} here"),
        ("b.yml", 2, f"helm: v{go['helm']}"),
        ("c.txt", 3, "ruff 0.0.1"),
    ]
    found = _twice(planted, python | go)
    assert found == [f"a.md:1: ruff {python['ruff']}", f"b.yml:2: helm {go['helm']}"]


def test_pyproject_names_packages_and_leaves_versions_to_the_lock() -> None:
    """Only ranges are allowed beside the names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    assert [one for one in wanted if re.search(r"\d+\.\d+\.\d+", one)] == []


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
    images = [*(node["image"] for node in nodes), *bases]
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
