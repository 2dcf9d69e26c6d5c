"""Metrics: names, types, labels, bounds, zeros from the start, and what they count."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from tests.edges.conftest import Engine

SERIES = (Path(__file__).parent / "metrics.txt").read_text(encoding="utf-8").splitlines()
# What these two labels say wherever a series has them; which series have them is in metrics.txt.
ENGINE = {"model_name": "mock/mock-8b", "engine": "0"}


def expected() -> list[tuple[str, str, list[str], list[str]]]:
    """Returns name, type, labels and bucket bounds of every series, as recorded from vLLM."""
    rows = [line.split("|") for line in SERIES if line and not line.startswith("#")]
    return [(name, kind, labels.split(), bounds.split()) for name, kind, labels, bounds in rows]


@pytest.mark.parametrize(("name", "kind", "labels", "bounds"), expected(), ids=lambda value: str(value)[:50])
def test_series_exists_from_the_start(fresh: str, name: str, kind: str, labels: list[str], bounds: list[str]) -> None:
    """Each series is there before the first request, at 0, with vLLM's type, labels and bucket bounds."""
    families = {family.name: family for family in text_string_to_metric_families(fresh)}
    family = families[name if kind != "counter" else name.removesuffix("_total")]
    assert family.type == kind
    suffix = {"counter": "", "gauge": "", "histogram": "_count"}[kind]
    samples = [sample for sample in family.samples if sample.name == name + suffix]
    assert samples
    for sample in samples:
        assert sorted(sample.labels) == labels
        assert {name: value for name, value in sample.labels.items() if name in ENGINE} == {
            name: value for name, value in ENGINE.items() if name in labels
        }
        is_one = name == "vllm:cache_config_info" or sample.labels.get("sleep_state") == "awake"
        assert sample.value == (1 if is_one else 0)
    found = [sample.labels["le"] for sample in family.samples if sample.name == f"{name}_bucket"]
    assert found == bounds


def test_no_other_series_exists(fresh: str) -> None:
    """There is none beside those: no name that an older vLLM had, and none made up."""
    families = {family.name for family in text_string_to_metric_families(fresh)}
    own = {name for name in families if name.startswith("vllm:") and not name.endswith("_created")}
    assert own == {name.removesuffix("_total") if kind == "counter" else name for name, kind, _, _ in expected()}


@pytest.mark.parametrize("name", [row[0] for row in expected() if row[1] != "gauge"])
def test_created_series(fresh: str, name: str) -> None:
    """Each counter and histogram says when it was made."""
    begun = name.removesuffix("_total") if f"{name}_count" not in fresh else name
    lines = [line for line in fresh.splitlines() if line.startswith(f"{begun}_created{{")]
    assert lines
    assert all(time.time() - 3600 < float(line.rsplit(" ", 1)[1]) <= time.time() for line in lines)


def test_finished_reasons(fresh: str) -> None:
    """Successes are counted by finished_reason, every reason from the start."""
    lines = [line for line in fresh.splitlines() if line.startswith("vllm:request_success_total{")]
    found = [line.split('finished_reason="')[1].split('"')[0] for line in lines]
    assert found == ["stop", "length", "abort", "error", "repetition"]


def test_usual_series(engine: Engine) -> None:
    """The process, Python and HTTP series are there too."""
    engine.chat()
    names = engine.metrics().keys()
    assert {"process_resident_memory_bytes", "python_info", "http_requests_total"} <= names
    assert {"http_request_duration_seconds_count", "http_request_duration_highr_seconds_count"} <= names
    assert {"http_request_size_bytes_count", "http_response_size_bytes_count"} <= names


def test_http_requests_are_counted_by_handler(engine: Engine) -> None:
    """HTTP requests are counted by method, path and class of status; probes are not."""
    engine.chat()
    engine.chat(max_tokens=0)
    engine.get("/nope")
    counts = engine.metrics()["http_requests_total"]

    def count(handler: str, method: str, status: str) -> float:
        return counts[("handler", handler), ("method", method), ("status", status)]

    assert count("/v1/chat/completions", "POST", "2xx") >= 1
    assert count("/v1/chat/completions", "POST", "4xx") >= 1
    assert count("none", "GET", "4xx") >= 1
    assert not any(dict(labels)["handler"] in {"/health", "/metrics", "/version"} for labels in counts)


def test_content_type(engine: Engine) -> None:
    """/metrics is Prometheus text."""
    assert engine.get("/metrics").headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


def test_one_request_is_counted(engine: Engine) -> None:
    """One chat moves the counters by its tokens, and each of the histograms by one."""
    before = engine.metrics()
    usage = engine.chat(max_tokens=5, ignore_eos=True, stream=True, stream_options={"include_usage": True}).chunks[-1]
    engine.wait_for(
        lambda: (
            engine.value("request_success_total", finished_reason="length")
            > before["vllm:request_success_total"][("finished_reason", "length"),]
        )
    )
    after = engine.metrics()

    def moved(name: str) -> float:
        return after[f"vllm:{name}"][()] - before[f"vllm:{name}"][()]

    assert moved("generation_tokens_total") == 5
    assert moved("prompt_tokens_total") == usage["usage"]["prompt_tokens"]
    assert moved("inter_token_latency_seconds_count") == 4
    for name in (
        "time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
        "request_inference_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds",
        "request_time_per_output_token_seconds", "request_prompt_tokens", "request_generation_tokens",
        "request_params_n", "request_params_max_tokens", "request_max_num_generation_tokens",
    ):  # fmt: skip
        assert moved(f"{name}_count") == 1, name
    assert moved("request_generation_tokens_sum") == 5
    assert moved("request_params_max_tokens_sum") == 5
