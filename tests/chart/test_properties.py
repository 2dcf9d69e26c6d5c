"""The chart never lies: whatever file it is given, it refuses by name or does exactly what the file says."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inferctl.paths import CHART
from tests.chart.judge import ApiServer, Judge
from tests.chart.strategies import releases, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: As many as fit into a few minutes; ./just chart-fuzz asks for more.
FILES = 2000

#: Files in one example: they are judged at the same time, and the API server is not kept waiting for Helm.
_AT_ONCE = 4

#: Files between two lines that say how far it is; about a minute.
_SAY_AFTER = 500


@pytest.fixture(scope="module")
def judge(api_server: Path) -> Iterator[Judge]:
    """A judge with an API server of its own."""
    server = ApiServer(api_server)
    yield Judge(server)
    server.close()


@pytest.mark.cluster
def test_every_file_is_refused_by_name_or_obeyed_to_the_letter(
    judge: Judge, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random files, hostile ones among them; the smallest that fails is printed."""
    files: int = request.config.getoption("--chart-files", default=FILES)
    told = [0]
    batches = st.lists(st.tuples(values(), releases()), min_size=_AT_ONCE, max_size=_AT_ONCE)

    @settings(
        max_examples=max(1, files // _AT_ONCE),
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(batches)
    def try_files(batch: list[tuple[dict[str, Any], str]]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(judge.judge, content, release) for content, release in batch]:
                done.result()
        if judge.counts.total() >= told[-1] + _SAY_AFTER:
            told.append(judge.counts.total())
            with capsys.disabled():
                print(f"\n{told[-1]} of {files} files: {dict(judge.counts)}", end="", flush=True)

    try_files()
    tried = judge.counts.total()
    with capsys.disabled():
        print(f"\n{tried} files: {dict(judge.counts)}", flush=True)
    assert tried >= files, "fewer files than asked for"
    # Either share near zero would mean that the test looks at half of the promise only.
    assert judge.counts["accepted"] >= 0.4 * tried
    assert judge.counts["refused"] >= 0.05 * tried


#: Ways to break the chart: the template, what stands in it, what takes its place, a file that shows it, and what
#: the judge says of that.
_BREAKS: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "the kubelet expands": (
        "_yaml.tpl",
        '| replace "$" "$$"',
        "",
        {"engine": {"args": ["$(MODEL_NAME)"]}},
        "the engine's arguments",
    ),
    "numbers become floats": (
        "_yaml.tpl",
        "{{- toJson . -}}{{- end -}}\n{{- end }}\n\n{{/* The same, quoted",
        "{{- . -}}{{- end -}}\n{{- end }}\n\n{{/* The same, quoted",
        {"engine": {"env": {"BIG": 1048576}}},
        "the engine's environment",
    ),
    "Helm deletes words": (
        "_yaml.tpl",
        ' | replace "<" "\\\\x3c"',
        "",
        {"engine": {"args": ["a<no value>b"]}},
        "the engine's arguments",
    ),
    "a line separator folds": (
        "_yaml.tpl",
        'printf "%+q" .',
        "toJson .",
        {"engine": {"args": ["a\x85b"]}},
        "the engine's arguments",
    ),
    "a rule is gone": (
        "_validation.tpl",
        "le $grace $preStop",
        "lt $grace 0",
        {"rollout": {"preStopSeconds": 91}},
        "the API server refuses the Deployment",
    ),
    "root is let in": (
        "_defaults.tpl",
        "runAsNonRoot: true",
        "runAsNonRoot: false",
        {"securityContext": None},
        "the API server refuses the Pod",
    ),
    "a key is misnamed": (
        "deployment.yaml",
        "enableServiceLinks",
        "enableServiceLink",
        {},
        "the API server refuses the Deployment",
    ),
    "a 0 is taken for nothing": (
        "deployment.yaml",
        "replicas: {{ int64 $values.replicaCount }}",
        "{{- with $values.replicaCount }}\n  replicas: {{ . }}{{ end }}",
        {"replicaCount": 0},
        "the number of pods",
    ),
    "the probes' path is fixed": (
        "_helpers.tpl",
        'path: {{ include "inference-service.quoted" .path }}',
        "path: /health",
        {"probes": {"path": "/ping"}},
        "startup: the address",
    ),
    "a probe takes another's threshold": (
        "deployment.yaml",
        "failureThreshold: {{ int64 $values.probes.livenessFailureThreshold }}",
        "failureThreshold: {{ int64 $values.probes.readinessFailureThreshold }}",
        {},
        "liveness: failureThreshold",
    ),
    "the probes' timeout is lost": (
        "_helpers.tpl",
        "timeoutSeconds: {{ int64 .timeoutSeconds }}",
        "",
        {},
        "startup: timeoutSeconds",
    ),
    "the sleep is fixed": (
        "deployment.yaml",
        "seconds: {{ int64 $rollout.preStopSeconds }}",
        "seconds: 10",
        {"rollout": {"preStopSeconds": 20}},
        "the sleep before SIGTERM",
    ),
    "the budget is fixed": (
        "poddisruptionbudget.yaml",
        "minAvailable: {{ int64 $values.podDisruptionBudget.minAvailable }}",
        "minAvailable: 1",
        {"replicaCount": 3, "podDisruptionBudget": {"minAvailable": 2}},
        "minAvailable",
    ),
    "the metrics are always announced": (
        "_helpers.tpl",
        "if .metrics.annotations",
        "if true",
        {"metrics": {"annotations": False}},
        "the pods' annotations",
    ),
    "the shared memory is fixed": (
        "deployment.yaml",
        'sizeLimit: {{ include "inference-service.quotedText" . }}',
        "sizeLimit: 1Gi",
        {"sharedMemory": {"size": "2Gi"}},
        "sharedMemory.size",
    ),
}


@pytest.mark.cluster
@pytest.mark.parametrize("name", _BREAKS)
def test_the_judge_finds_a_chart_that(name: str, judge: Judge, tmp_path: Path) -> None:
    """The control: each of these breaks lies in one file, and the judge sees it and says where."""
    template, whole, broken, content, said = _BREAKS[name]
    content = {"image": {"repository": "a", "digest": "sha256:" + "0" * 64}, **content}
    chart = tmp_path / "inference-service"
    shutil.copytree(CHART, chart)
    Judge(judge.server, chart).judge(content, "mock")  # the whole chart accepts the file, or refuses it by name
    file = chart / "templates" / template
    text = file.read_text(encoding="utf-8")
    assert text.count(whole) == 1
    file.write_text(text.replace(whole, broken), encoding="utf-8")
    with pytest.raises(AssertionError, match=rf"^{re.escape(said)}"):
        Judge(judge.server, chart).judge(content, "mock")
