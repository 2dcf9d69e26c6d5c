"""Faults that users of comparable charts have met. One test for each kind: this chart has none of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from inferctl.paths import CHART
from inferctl.values import rendering
from tests.chart.yaml_text import as_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chart.conftest import Render

DIGEST = "sha256:" + "0" * 64


def _refusal(render: Render, values: dict[str, Any], release: str = "mock") -> str:
    with pytest.raises(rendering.ChartRefusal) as refusal:
        render(values, release=release)
    return str(refusal.value)


def test_long_integers_and_bare_booleans_reach_the_engine_as_text(render: Render) -> None:
    """1048576 is not 1.048576e+06, and nothing in env is anything but a string to the API server."""
    env = {"A": 1048576, "B": 2**53 - 1, "C": -1234567, "D": True, "E": False, "F": 0, "G": 0.25}
    found = render({"engine": {"env": env}})
    assert found.environment == {
        "MODEL_NAME": "mock/mock-8b",
        "A": "1048576",
        "B": "9007199254740991",
        "C": "-1234567",
        "D": "true",
        "E": "false",
        "F": "0",
        "G": "0.25",
    }


def test_integers_that_yaml_cannot_hold_are_refused(render: Render) -> None:
    """Beyond 2^53 a number would arrive as another one, and a tiny one with an exponent."""
    assert "at '/engine/env/A'" in _refusal(render, {"engine": {"env": {"A": 2**53}}})
    assert "engine.env.A is 1e-7" in _refusal(render, {"engine": {"env": {"A": 1e-7}}})


def test_digit_strings_keep_their_meaning(render: Render) -> None:
    """Quoted, they arrive as written; a user id of ten digits stays an integer."""
    texts = {"A": "0123456", "B": "1234567e2", "C": "on", "D": "1_000", "E": "null", "F": "1.10", "G": "0x1F"}
    found = render(
        {"engine": {"env": texts, "args": list(texts.values())}, "securityContext": {"pod": {"runAsUser": 1000650000}}}
    )
    assert {name: value for name, value in found.environment.items() if name in texts} == texts
    assert found.argv[: len(texts)] == list(texts.values())
    assert found.pod["securityContext"]["runAsUser"] == 1000650000


@pytest.mark.parametrize("field", ["args", "env", "model"])
def test_arguments_and_variables_arrive_as_written(render: Render, field: str) -> None:
    """Quotes, JSON, $(X), {{x}}, #, ': ', empty strings and characters that YAML folds or forbids."""
    words = ['a"b', "it's", '{"a": [1]}', "$(MODEL_NAME)", "$$(A)", "$", "{{ .Values.x }}", "# c", "a: b", " ", "\\n"]
    words += [
        "\n---\n",
        "\t",
        "\x85",
        "\u2028",
        "\ufeff",
        "\x7f",
        "\x01",
        "😀",
        "<no value>",
        "%s",
        "- a",
        "&a",
        "x" * 9999,
    ]
    if field == "args":
        assert render({"engine": {"args": ["", *words]}}).argv[:-2] == ["", *words]
    elif field == "env":
        env = {f"A{number}": word for number, word in enumerate(["", *words])}
        assert render({"engine": {"env": env}}).environment == {"MODEL_NAME": "mock/mock-8b", **env}
    else:
        name = " ".join(words)[:4096]
        assert render({"model": {"name": name}}).environment["MODEL_NAME"] == name


@pytest.mark.parametrize(
    ("repository", "digest", "said"),
    [
        ("a:v1", DIGEST, 'image.repository "a:v1" holds a tag: write "a"'),
        (f"a:{DIGEST}", DIGEST, f'image.repository "a:{DIGEST}" holds a tag: write "a"'),
        (f"a@{DIGEST}", DIGEST, 'holds a digest: write "a"'),
        (f"a@{DIGEST}:v1", DIGEST, 'holds a digest: write "a"'),
        ("a:5000/b:v1", DIGEST, 'holds a tag: write "a:5000/b"'),
        ("a", f"sha256:{DIGEST}", "at '/image/digest'"),
        ("a", "v1", "at '/image/digest'"),
    ],
)
def test_image_references_with_something_twice_are_refused(
    render: Render, repository: str, digest: str, said: str
) -> None:
    """A tag or digest in the repository, and an algorithm twice, are named with their fix."""
    assert said in _refusal(render, {"image": {"repository": repository, "digest": digest}})


def test_registry_with_a_port_is_no_tag_and_no_digest_is_a_label(render: Render) -> None:
    """A port is part of the repository; labels hold nothing of the image."""
    found = render({"image": {"repository": "localhost:5001/mock-engine", "digest": DIGEST}})
    assert found.engine["image"] == f"localhost:5001/mock-engine@{DIGEST}"
    assert DIGEST.split(":")[1][:12] not in str(found.deployment["metadata"])


def test_model_name_is_in_no_name_and_no_label(render: Render) -> None:
    """Slashes, dots, capitals and length do not matter to Kubernetes' objects."""
    found = render({"model": {"name": "Org/Model-v0.3" + "x" * 300}, "replicaCount": 2})
    for item in found.objects:
        assert "Org" not in str(item["metadata"])
        assert "Org" not in str(item["spec"].get("selector"))


def test_release_names_that_helm_allows_and_kubernetes_does_not_are_refused(render: Render) -> None:
    """No name is cut: 46 characters, dots and a leading digit are refused before Kubernetes sees them."""
    for release in ("a" * 46, "a" * 53, "llama3.1", "7b"):
        assert f'the release name "{release}"' in _refusal(render, {}, release=release)
    assert render({}, release="a" * 45).service["metadata"]["name"] == "a" * 45 + "-inference-service"


def test_zero_is_not_taken_for_unset(render: Render) -> None:
    """0 replicas, 0 surge, 0 seconds, 0 available and false are what they say."""
    found = render(
        {
            "replicaCount": 0,
            "rollout": {"maxSurge": 0, "preStopSeconds": 0},
            "metrics": {"annotations": False},
            "sharedMemory": {"size": ""},
        }
    )
    assert found.deployment["spec"]["replicas"] == 0
    assert found.deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert "lifecycle" not in found.engine
    assert "annotations" not in found.deployment["spec"]["template"]["metadata"]
    budget = render({"replicaCount": 2, "podDisruptionBudget": {"minAvailable": 0}}).of_kind("PodDisruptionBudget")
    assert budget
    assert budget["spec"]["minAvailable"] == 0


def test_two_releases_in_a_namespace_do_not_select_each_others_pods(render: Render) -> None:
    """Each selector matches the labels of its own release's pods only."""
    one, two = render({"replicaCount": 2}, release="one"), render({"replicaCount": 2}, release="two")
    for mine, others in ((one, two), (two, one)):
        labels = others.deployment["spec"]["template"]["metadata"]["labels"]
        budget = mine.of_kind("PodDisruptionBudget")
        assert budget
        for selector in (
            mine.service["spec"]["selector"],
            mine.deployment["spec"]["selector"]["matchLabels"],
            budget["spec"]["selector"]["matchLabels"],
        ):
            assert not selector.items() <= labels.items()


def test_user_labels_stay_out_of_the_immutable_selector(render: Render) -> None:
    """A label added later would otherwise make the next upgrade fail."""
    plain, labelled = render({}), render({"podLabels": {"team": "a"}})
    assert plain.deployment["spec"]["selector"] == labelled.deployment["spec"]["selector"]
    assert "podLabels holds" in _refusal(render, {"podLabels": {"app.kubernetes.io/instance": "x"}})


def test_changed_port_is_followed_everywhere(render: Render) -> None:
    """Engine, container, probes, Service and annotations agree on the port."""
    found = render({"engine": {"port": 9000}})
    assert found.argv[:2] == ["--port", "9000"]
    assert found.engine["ports"] == [{"name": "http", "protocol": "TCP", "containerPort": 9000}]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert found.engine[kind]["httpGet"]["port"] == "http"
    assert found.service["spec"]["ports"][0]["targetPort"] == "http"
    assert found.deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == "9000"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"args": ["m", "--port"]}, 'engine.args holds --port with "" behind it'),
        ({"args": ["--port", ""]}, 'engine.args holds --port with "" behind it'),
        ({"args": ["--port", "--seed=1"]}, 'engine.args holds --port with "--seed=1" behind it'),
        ({"args": ["--port="]}, "engine.args holds --port= with nothing behind it"),
        ({"args": ["--shutdown_timeout="]}, "engine.args holds --shutdown_timeout= with nothing behind it"),
        ({"args": ["--shutdown-timeout"]}, 'engine.args holds --shutdown-timeout with "" behind it'),
        ({"args": ["--shutdown_timeout"]}, 'engine.args holds --shutdown_timeout with "" behind it'),
        ({"args": ["--drain"], "shutdownTimeoutFlag": "--drain"}, 'engine.args holds --drain with "" behind it'),
    ],
)
def test_flag_without_its_value_is_refused(render: Render, engine: dict[str, Any], said: str) -> None:
    """The engine would exit at its start, or take the next flag for the number."""
    assert said in _refusal(render, {"engine": engine})


def test_flag_of_no_meaning_to_the_chart_may_stand_alone(render: Render) -> None:
    """What the chart was told is no flag of this engine is an argument like any other."""
    engine = {"args": ["--shutdown-timeout", "--port"], "portFlag": "", "shutdownTimeoutFlag": ""}
    assert render({"engine": engine}).argv == ["--shutdown-timeout", "--port"]


def test_no_probe_has_two_handlers(render: Render) -> None:
    """Probes cannot be given another handler: only times and the path are open."""
    found = render({"probes": {"path": "/ping"}})
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert {"exec", "tcpSocket", "grpc", "httpGet"} & found.engine[kind].keys() == {"httpGet"}
    assert "'exec' not allowed" in _refusal(render, {"probes": {"exec": {"command": ["true"]}}})


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replicas": 2}, "'replicas'"),
        ({"engine": {"arg": []}}, "at '/engine': additional properties 'arg'"),
        ({"resources": {"limit": {}}}, "at '/resources': additional properties 'limit'"),
        ({"tolerations": [{"ky": "a"}]}, "at '/tolerations/0': additional properties 'ky'"),
        ({"securityContext": {"pod": {"runAsUsr": 1}}}, "at '/securityContext/pod': additional properties 'runAsUsr'"),
    ],
)
def test_misspelt_key_is_not_accepted_in_silence(render: Render, values: dict[str, Any], named: str) -> None:
    """At every level, Kubernetes' own objects included, the refusal names the key."""
    assert named in _refusal(render, values)


def test_chart_works_as_a_dependency_and_twice_under_aliases(tmp_path: Path) -> None:
    """Global is let in, and two aliases in one release have objects and selectors of their own."""
    parent = tmp_path / "parent"
    shutil.copytree(CHART, parent / "charts" / "inference-service")
    entry = {"name": "inference-service", "version": "*", "repository": ""}
    aliases = [{**entry, "alias": alias} for alias in ("chat", "code")]
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": aliases}
    (parent / "Chart.yaml").write_text(yaml.safe_dump(about))
    image = {"image": {"repository": "a", "digest": DIGEST}}
    values = tmp_path / "values.yaml"
    values.write_text(as_yaml({"global": {"imageRegistry": "x"}, "chat": image, "code": image}))
    found = rendering.parse(rendering.render([values], release="all", chart=parent))
    services = [item for item in found.objects if item["kind"] == "Service"]
    assert {item["metadata"]["name"] for item in services} == {"all-chat", "all-code"}
    assert len({str(item["spec"]["selector"]) for item in services}) == len(services)


def test_empty_blocks_are_their_defaults(render: Render) -> None:
    """A block that is null, or whose lines are all commented out, does not crash the template."""
    blocks = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    everything = {name: None for name in blocks if name != "image"}
    assert render(everything) == render({})
    for name, block in blocks.items():
        if isinstance(block, dict) and block and name != "image":
            assert render({name: dict.fromkeys(block)}) == render({}), name
    assert "image.digest is required" in _refusal(render, {"image": None})


def test_values_of_an_older_chart_may_lack_any_key(tmp_path: Path) -> None:
    """--reuse-values hands the templates values without the newer keys; it renders as with their defaults."""
    chart = tmp_path / "inference-service"
    shutil.copytree(CHART, chart)
    (chart / "values.yaml").write_text("{}\n")
    for example in sorted((CHART / "ci").glob("*-values.yaml")):
        if example.name != "restricted-values.yaml":  # it takes keys away from values.yaml, which is not there now
            assert rendering.render([example], chart=chart) == rendering.render([example])


def test_budget_never_blocks_a_drain(render: Render) -> None:
    """No budget for one pod, none that keeps all pods, and a pod that is still loading may always go."""
    assert render({}).of_kind("PodDisruptionBudget") is None
    said = _refusal(render, {"replicaCount": 2, "podDisruptionBudget": {"minAvailable": 2}})
    assert "podDisruptionBudget.minAvailable (2) is not below replicaCount (2)" in said
    budget = render({"replicaCount": 2}).of_kind("PodDisruptionBudget")
    assert budget
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize("load", [1, 4, 5, 6, 599, 600, 601, 7200])
def test_slow_healthy_load_is_no_failure(render: Render, load: int) -> None:
    """The startup probe and the rollout both wait for the longest load, and no fixed delay holds up a fast one."""
    found = render({"engine": {"loadTimeoutSeconds": load}})
    startup = found.engine["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= load
    assert found.deployment["spec"]["progressDeadlineSeconds"] >= load + 600
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert "initialDelaySeconds" not in found.engine[kind]


def test_busy_engine_does_not_empty_the_service(render: Render) -> None:
    """Probes wait longer than Kubernetes' 1 s, and liveness is slower to act than readiness."""
    engine = render({}).engine
    assert engine["readinessProbe"]["timeoutSeconds"] > 1
    assert engine["livenessProbe"]["failureThreshold"] > engine["readinessProbe"]["failureThreshold"]
    assert "probes.timeoutSeconds (6) is above" in _refusal(render, {"probes": {"timeoutSeconds": 6}})


def test_rollout_without_a_spare_accelerator_does_not_wait_for_ever(render: Render) -> None:
    """With maxSurge 0 a pod goes first, and the rollout's deadline waits for its drain."""
    found = render({"rollout": {"maxSurge": 0, "terminationGracePeriodSeconds": 3600}})
    assert found.deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert found.deployment["spec"]["progressDeadlineSeconds"] >= 3600 + 600


def test_image_needs_no_shell(render: Render) -> None:
    """The sleep is Kubernetes' own, and the engine is the image's entry point, so that SIGTERM reaches it."""
    engine = render({}).engine
    assert engine["lifecycle"] == {"preStop": {"sleep": {"seconds": 10}}}
    assert "command" not in engine
    assert "'command' not allowed" in _refusal(render, {"engine": {"command": ["sh", "-c", "engine"]}})


def test_release_name_does_not_become_the_engines_configuration(render: Render) -> None:
    """A release named vllm would otherwise set VLLM_PORT=tcp://... and kill the engine."""
    assert render({}, release="vllm").pod["enableServiceLinks"] is False


def test_upgrade_leaves_the_replicas_that_an_autoscaler_owns(render: Render) -> None:
    """With externalAutoscaler the Deployment says nothing about the number of pods; the budget stays."""
    found = render({"externalAutoscaler": True, "replicaCount": 2})
    assert "replicas" not in found.deployment["spec"]
    assert found.of_kind("PodDisruptionBudget") is not None


def test_restricted_namespace_takes_the_pods(render: Render) -> None:
    """What the restricted standard asks for is there by default; the property tests ask the API server itself."""
    found = render({})
    assert found.pod["securityContext"]["runAsNonRoot"] is True
    assert found.pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    container = found.engine["securityContext"]
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"] == {"drop": ["ALL"]}


def test_shared_memory_is_not_64_megabytes(render: Render) -> None:
    """There is room for tensors by default, and as much as asked for."""
    for values, size in (({}, "1Gi"), ({"sharedMemory": {"size": "32Gi"}}, "32Gi")):
        found = render(values)
        assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}} in found.pod["volumes"]
        assert {"name": "shm", "mountPath": "/dev/shm"} in found.engine["volumeMounts"]  # noqa: S108 - the pod's


def test_every_problem_is_reported_at_once(render: Render) -> None:
    """Nobody mends a file one refusal at a time."""
    said = _refusal(
        render,
        {
            "image": {"repository": "", "digest": ""},
            "rollout": {"terminationGracePeriodSeconds": 5},
            "probes": {"timeoutSeconds": 6},
            "engine": {"env": {"MODEL_NAME": "x"}},
        },
    )
    for key in ("image.digest", "image.repository", "rollout.termination", "probes.timeoutSeconds", "engine.env.MODEL"):
        assert f"\n{key}" in said.replace("): ", "\n")
