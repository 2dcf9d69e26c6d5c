"""Decides about one values file: refused with a reason, or accepted and then right to the letter."""

from __future__ import annotations

import json
import re
import ssl
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import yaml

from inferctl.paths import CHART
from inferctl.values import reference, rendering
from tests.chart.strategies import PRIORITY_CLASS
from tests.chart.yaml_text import as_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
_RESOURCES = {
    "Deployment": "apis/apps/v1/namespaces/{}/deployments",
    "Service": "api/v1/namespaces/{}/services",
    "PodDisruptionBudget": "apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Pod": "api/v1/namespaces/{}/pods",
}
_NAMESPACE = "restricted"
_CRASH = re.compile(r"nil pointer|error calling|wrong type|YAML parse error|panic|can't evaluate|index out of range")
_SCHEMA_LEAF = re.compile(r"at '(?P<pointer>[^']*)'|additional properties '(?P<name>[^']*)'")


class ApiServer:
    """A client that has objects judged by dry run, in a namespace that enforces the restricted standard."""

    def __init__(self, kubeconfig: Path) -> None:
        """Connect as the kubeconfig's user and make the namespace with what admission looks for in it."""
        config = json.loads(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self._client = httpx2.Client(base_url=cluster["server"], verify=trust, timeout=60)
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self._make("api/v1/namespaces", {"metadata": {"name": _NAMESPACE, "labels": labels}})
        self._make(f"api/v1/namespaces/{_NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        priority = {"metadata": {"name": PRIORITY_CLASS}, "value": 1}
        self._make("apis/scheduling.k8s.io/v1/priorityclasses", priority)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def accept(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Have one object judged and return it as the API server understood it; a refusal is a failure."""
        path = _RESOURCES[item["kind"]].format(_NAMESPACE)
        answer = self._client.post(path, params={"dryRun": "All", "fieldValidation": "Strict"}, json=item)
        assert answer.is_success, f"the API server refuses the {item['kind']}: {answer.json()['message']}"
        understood: dict[str, Any] = answer.json()
        return understood

    def _make(self, path: str, item: Mapping[str, Any]) -> None:
        answer = self._client.post(path, json=item)
        assert answer.status_code in {httpx2.codes.CREATED, httpx2.codes.CONFLICT}, answer.text


@dataclass
class Judge:
    """Judges values files and counts how it went."""

    server: ApiServer
    chart: Path = CHART
    counts: Counter[str] = field(default_factory=Counter)

    def judge(self, values: Mapping[str, Any], release: str) -> None:
        """Fail, showing the file, unless the chart refuses it by name or renders exactly what it says."""
        text = as_yaml(values)
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                rendered = rendering.render([Path(file.name)], release=release, namespace=_NAMESPACE, chart=self.chart)
        except rendering.ChartRefusal as refusal:
            self.counts["refused"] += 1
            _check_refusal(str(refusal), text)
            return
        self.counts["accepted"] += 1
        try:
            self._check_acceptance(rendering.parse(rendered), values, release)
        except AssertionError as error:
            raise AssertionError(
                f"{error}\nrelease {release!r}, values file:\n{text}\nrendered:\n{rendered}"
            ) from error

    def _check_acceptance(self, found: rendering.Release, values: Mapping[str, Any], release: str) -> None:
        understood = rendering.Release(tuple(self.server.accept(item) for item in found.objects))
        template = understood.deployment["spec"]["template"]
        self.server.accept(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template["metadata"], "generateName": "engine-"},
                "spec": template["spec"],
            }
        )
        _check_texts(understood, _effective(values))
        _check_numbers(understood, _effective(values))
        _check_passed_on(found, _effective(values))
        assert understood.deployment["metadata"]["name"] == f"{release}-inference-service"


def _effective(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with defaults for what is missing or null."""
    merged: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        given = values.get(name)
        if isinstance(default, dict) and default:
            inner = given or {}
            merged[name] = {key: default[key] if inner.get(key) is None else inner[key] for key in {**default, **inner}}
        else:
            merged[name] = default if given is None else given
    # Helm itself lays maps over maps: what is not named keeps its default, and null takes a key away.
    for part, default in _DEFAULTS["securityContext"].items():
        merged["securityContext"][part] = _laid_over(default, merged["securityContext"][part])
    return merged


def _laid_over(default: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _laid_over(default[key], value)
        if isinstance(value, dict) and isinstance(default.get(key), dict)
        else value
        for key, value in given.items()
    }
    return {**default, **both}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _has(args: list[str], flag: str) -> bool:
    return any(argument.split("=")[0].replace("_", "-") == flag.replace("_", "-") for argument in args)


def _check_texts(found: rendering.Release, values: Mapping[str, Any]) -> None:
    engine, rollout = values["engine"], values["rollout"]
    args = list(engine["args"])
    expected = list(args)
    if engine["portFlag"] and engine["port"] != 8000 and not _has(args, engine["portFlag"]):
        expected += [engine["portFlag"], str(engine["port"])]
    if engine["shutdownTimeoutFlag"] and not _has(args, engine["shutdownTimeoutFlag"]):
        drain = max(0, rollout["terminationGracePeriodSeconds"] - rollout["preStopSeconds"] - 5)
        expected += [engine["shutdownTimeoutFlag"], str(drain)]
    assert found.argv == expected, "the engine's arguments"
    plain = {name: _text(value) for name, value in engine["env"].items() if not isinstance(value, dict)}
    assert found.environment == {"MODEL_NAME": values["model"]["name"], **plain}, "the engine's environment"
    referred = {item["name"]: item["valueFrom"] for item in found.engine["env"] if "valueFrom" in item}
    assert referred == {name: value for name, value in engine["env"].items() if isinstance(value, dict)}
    metadata = found.deployment["spec"]["template"]["metadata"]
    for key in ("podAnnotations", "podLabels"):
        here = metadata.get("annotations" if key == "podAnnotations" else "labels", {})
        for name, value in values[key].items():
            assert here[name] == _text(value), f"{key}.{name}"
    prometheus = {"scrape": "true", "port": str(engine["port"]), "path": "/metrics"}
    scraped = {f"prometheus.io/{name}": value for name, value in prometheus.items()}
    own = {name: _text(value) for name, value in values["podAnnotations"].items()}
    wanted = {**(scraped if values["metrics"]["annotations"] else {}), **own}
    assert metadata.get("annotations", {}) == wanted, "the pods' annotations"
    for name, value in values["nodeSelector"].items():
        assert found.pod["nodeSelector"][name] == _text(value), f"nodeSelector.{name}"
    image = values["image"]
    assert found.engine["image"] == f"{image['repository']}@{image['digest']}"


def _check_numbers(found: rendering.Release, values: Mapping[str, Any]) -> None:
    rollout, probes, port = values["rollout"], values["probes"], values["engine"]["port"]
    startup = found.engine["startupProbe"]
    load = values["engine"]["loadTimeoutSeconds"]
    reach = startup["failureThreshold"] * probes["periodSeconds"]
    assert load <= reach < load + probes["periodSeconds"], "the startup probe's reach"
    assert found.pod["terminationGracePeriodSeconds"] == rollout["terminationGracePeriodSeconds"]
    sleep = found.engine.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert sleep == rollout["preStopSeconds"], "the sleep before SIGTERM"
    assert ("lifecycle" in found.engine) == (sleep > 0)
    strategy = found.deployment["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": rollout["maxSurge"], "maxUnavailable": int(rollout["maxSurge"] == 0)}
    replicas = 1 if values["externalAutoscaler"] else values["replicaCount"]  # 1 is the API server's default
    assert found.deployment["spec"]["replicas"] == replicas, "the number of pods"
    assert found.engine["ports"][0]["containerPort"] == port
    assert found.engine["imagePullPolicy"] == values["image"]["pullPolicy"]
    assert found.service["spec"]["type"] == values["service"]["type"]
    assert found.service["spec"]["ports"][0]["port"] == values["service"]["port"]
    for kind in ("startup", "readiness", "liveness"):
        probe = found.engine[f"{kind}Probe"]
        assert (probe["httpGet"]["path"], probe["httpGet"]["port"]) == (probes["path"], "http"), f"{kind}: the address"
        assert probe["periodSeconds"] == probes["periodSeconds"], f"{kind}: periodSeconds"
        assert probe["timeoutSeconds"] == probes["timeoutSeconds"], f"{kind}: timeoutSeconds"
        if kind != "startup":
            assert probe["failureThreshold"] == probes[f"{kind}FailureThreshold"], f"{kind}: failureThreshold"
    wanted = values["podDisruptionBudget"]["enabled"] and values["replicaCount"] > 1
    budget = found.of_kind("PodDisruptionBudget")
    assert (budget is not None) == wanted
    if budget:
        assert budget["spec"]["minAvailable"] == values["podDisruptionBudget"]["minAvailable"], "minAvailable"
    assert found.deployment["spec"]["progressDeadlineSeconds"] > load + rollout["terminationGracePeriodSeconds"]


def _check_passed_on(found: rendering.Release, values: Mapping[str, Any]) -> None:
    """What is Kubernetes' own arrives whole; compared before the API server adds its defaults."""
    engine, pod = found.engine, found.pod
    volumes = [volume for volume in pod.get("volumes", []) if volume["name"] not in {"shm", "tmp"}]
    mounts = [mount for mount in engine.get("volumeMounts", []) if mount["name"] not in {"shm", "tmp"}]
    size = values["sharedMemory"]["size"]
    memory = [volume["emptyDir"] for volume in pod.get("volumes", []) if volume["name"] == "shm"]
    assert memory == ([{"medium": "Memory", "sizeLimit": _text(size)}] if size else []), "sharedMemory.size"
    spread = [
        {key: value for key, value in entry.items() if given.get(key) is not None}
        for entry, given in zip(
            pod.get("topologySpreadConstraints", []), values["topologySpreadConstraints"], strict=True
        )
    ]
    arrived = {
        "imagePullSecrets": pod.get("imagePullSecrets", []),
        "tolerations": pod.get("tolerations", []),
        "affinity": pod.get("affinity", {}),
        "resources": engine.get("resources", {}),
        "extraVolumes": volumes,
        "extraVolumeMounts": mounts,
        "topologySpreadConstraints": spread,
        "securityContext": {"pod": pod.get("securityContext", {}), "container": engine.get("securityContext", {})},
    }
    for key, value in arrived.items():
        assert value == _without_nulls(values[key]), key


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any YAML
    if isinstance(value, dict):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    return [_without_nulls(below) for below in value] if isinstance(value, list) else value


def _check_refusal(message: str, text: str) -> None:
    shown = f"{message}\nvalues file:\n{text}"
    assert not _CRASH.search(message), f"the chart crashes instead of refusing: {shown}"
    if "values don't meet the specifications of the schema" in message:
        named = any(match["pointer"] or match["name"] for match in _SCHEMA_LEAF.finditer(message))
    else:
        first = message.rsplit("execution error at ", 1)[-1].partition("): ")[2] or message
        keys = reference.schema()["properties"]
        named = re.split(r"[ .]", first, maxsplit=1)[0] in keys or "release name" in first
    assert named, f"the refusal names no key: {shown}"
