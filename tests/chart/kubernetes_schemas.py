"""Makes the schemas of Kubernetes' objects readable for kubeconform, without a network.

The package kubernetes-validate carries them for every minor version. Its files refer to each other by an
address of its own (/api/_definitions.json), which kubeconform cannot follow; here each becomes a file's.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

#: What Chart.yaml's kubeVersion promises, and kubeconform checks.
VERSIONS = tuple(f"1.{minor}.0" for minor in range(30, 38))

#: Only objects that the chart makes, and the pod inside: a whole version has 860 files.
_KINDS = ("deployment-apps-v1", "service-v1", "poddisruptionbudget-policy-v1", "pod-v1")
_TEMPLATE = "{{ .NormalizedKubernetesVersion }}{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json"
_REFERENCE = "/api/_definitions.json"


def location(folder: Path) -> str:
    """The value of kubeconform's -schema-location for the schemas in ``folder``."""
    return f"{folder}/{_TEMPLATE}"


def prepare(folder: Path) -> None:
    """Write the strict schemas of every version to ``folder``, whose path they then contain."""
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package kubernetes-validate is not installed; ./just makes the environment that has it")
    package = Path(spec.submodule_search_locations[0]) / "kubernetes-json-schema"
    for version in VERSIONS:
        source = package / f"v{version}-local-strict"
        target = folder / f"v{version}-strict"
        definitions = f"file://{target.resolve()}/_definitions.json"
        target.mkdir(parents=True, exist_ok=True)
        for name in (*_KINDS, "_definitions"):
            text = (source / f"{name}.json").read_text(encoding="utf-8")
            partial = target / f"{name}.{os.getpid()}"
            partial.write_text(text.replace(_REFERENCE, definitions), encoding="utf-8")
            partial.rename(target / f"{name}.json")


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
    print(location(Path(sys.argv[1]).resolve()))
