"""vLLM's metrics: all series from the start at 0, with vLLM's names, labels and bucket bounds.

The gauges are read from the scheduler when Prometheus asks; the rest is counted as jobs go by.
"""

from typing import TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from mock_engine import catalog
from mock_engine.scheduler import Job, Scheduler

_Series = TypeVar("_Series", Counter, Gauge)


def _help(name: str) -> str:
    return name.replace("_", " ").capitalize() + "."


class Metrics:
    """The series of one model served by one engine; an observer of the scheduler."""

    def __init__(
        self,
        model: str,
        *,
        max_model_len: int,
        block_size: int,
        blocks: int,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        """Registers every series; lengths and blocks are the scheduler's, `block_size` is in tokens."""
        self._registry = registry
        self._block_size = block_size
        self._blocks = blocks
        self._engine = {"model_name": model, "engine": "0"}
        self._counters = {name: self._counter(name) for name in catalog.PLAIN_COUNTERS}
        self._labelled_counters = {
            name: self._labelled(Counter, name, label, values)
            for name, (label, values) in catalog.LABELLED_COUNTERS.items()
        }
        self._gauges = {name: self._gauge(name) for name in catalog.PLAIN_GAUGES}
        self._labelled_gauges = {
            name: self._labelled(Gauge, name, label, values)
            for name, (label, values) in catalog.LABELLED_GAUGES.items()
        }
        bounds = dict.fromkeys(catalog.LENGTH_HISTOGRAMS, catalog.length_bounds(max_model_len))
        self._histograms = {
            name: self._histogram(name, buckets) for name, buckets in (bounds | catalog.FIXED_HISTOGRAMS).items()
        }
        self._labelled_gauges["engine_sleep_state"]["awake"].set(1)
        self._rejections = self._rejection_counters(model)
        self._cache_config()
        # Looked up once, because they are counted per token.
        self._generated = self._counters["generation_tokens"]
        self._between = self._histograms["inter_token_latency_seconds"]

    def _counter(self, name: str) -> Counter:
        return Counter(f"vllm:{name}", _help(name), catalog.ENGINE, registry=self._registry).labels(**self._engine)

    def _gauge(self, name: str) -> Gauge:
        return Gauge(f"vllm:{name}", _help(name), catalog.ENGINE, registry=self._registry).labels(**self._engine)

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        family = Histogram(f"vllm:{name}", _help(name), catalog.ENGINE, buckets=buckets, registry=self._registry)
        return family.labels(**self._engine)

    def _labelled(self, kind: type[_Series], name: str, label: str, values: tuple[str, ...]) -> dict[str, _Series]:
        family = kind(f"vllm:{name}", _help(name), (*catalog.ENGINE, label), registry=self._registry)
        return {value: family.labels(**self._engine, **{label: value}) for value in values}

    def _rejection_counters(self, model: str) -> dict[str, Counter]:
        name = "admission_rejections"
        family = Counter(f"vllm:{name}", _help(name), ("model_name", "reason"), registry=self._registry)
        return {reason: family.labels(model_name=model, reason=reason) for reason in catalog.REJECTION_REASONS}

    def rejected(self, reason: str) -> None:
        """A request was refused because too many wait."""
        self._rejections[reason].inc()

    def _cache_config(self) -> None:
        values = dict.fromkeys(catalog.CACHE_CONFIG_LABELS, "None") | {
            "block_size": str(self._block_size),
            "engine": "0",
            "kv_cache_size_tokens": str(self._block_size * self._blocks),
            "num_gpu_blocks": str(self._blocks),
        }
        name = "cache_config_info"
        Gauge(f"vllm:{name}", _help(name), sorted(values), registry=self._registry).labels(**values).set(1)

    def watch(self, scheduler: Scheduler) -> None:
        """Lets the gauges follow a scheduler."""
        self._gauges["num_requests_running"].set_function(lambda: len(scheduler.running))
        self._gauges["num_requests_waiting"].set_function(lambda: len(scheduler.waiting))
        by_reason = self._labelled_gauges["num_requests_waiting_by_reason"]
        by_reason["capacity"].set_function(lambda: len(scheduler.waiting))
        self._gauges["kv_cache_usage_perc"].set_function(lambda: self._usage(scheduler))

    def _usage(self, scheduler: Scheduler) -> float:
        """Returns the share, 0 to 1, of the KV-cache blocks that the running jobs fill."""
        used = sum(-(-(job.prompt_tokens + job.emitted) // self._block_size) for job in scheduler.running)
        return min(1.0, used / self._blocks)

    def step(self, tokens: int) -> None:
        """One iteration of the engine produced `tokens` tokens, prompt tokens included."""
        self._histograms["iteration_tokens_total"].observe(tokens)

    def first_token(self, job: Job, seconds: float) -> None:
        """A job's first token came `seconds` after the request."""
        self._histograms["time_to_first_token_seconds"].observe(seconds)
        self._generated.inc(job.step)
        self._counters["prompt_tokens"].inc(job.prompt_tokens)
        self._counters["prefix_cache_queries"].inc(job.prompt_tokens)
        self._labelled_counters["prompt_tokens_by_source"]["local_compute"].inc(job.prompt_tokens)

    def next_tokens(self, number: int, seconds: float) -> None:
        """`number` more tokens came `seconds` after the ones before."""
        self._generated.inc(number)
        self._between.observe(seconds)

    def finished(self, job: Job, now: float) -> None:
        """A job got all its tokens."""
        self._labelled_counters["request_success"][job.finish_reason].inc()
        admitted, first, last = job.admitted, job.first, job.last
        observed = {
            "e2e_request_latency_seconds": now - job.arrived,
            "request_queue_time_seconds": admitted - job.arrived,
            "request_inference_time_seconds": last - admitted,
            "request_prefill_time_seconds": first - admitted,
            "request_decode_time_seconds": last - first,
            "request_prompt_tokens": job.prompt_tokens,
            "request_generation_tokens": job.emitted,
            "request_max_num_generation_tokens": job.emitted,
            "request_params_n": 1,
            "request_params_max_tokens": job.max_tokens,
            "request_prefill_kv_computed_tokens": job.prompt_tokens,
            "request_num_preemptions": 0,
            "request_time_per_output_token_seconds": (last - first) / max(1, job.emitted - 1),
        }
        for name, value in observed.items():
            self._histograms[name].observe(value)

    def exposition(self) -> tuple[bytes, str]:
        """Returns the body and the content type of /metrics."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
