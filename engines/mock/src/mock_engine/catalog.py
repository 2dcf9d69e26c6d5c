"""The names, labels and bucket bounds of vLLM's metrics, as recorded from vLLM 0.32.0."""

ENGINE = ("model_name", "engine")

# Counters that have no more labels than the engine's, without the _total that the exposition adds.
PLAIN_COUNTERS = (
    "estimated_flops_per_gpu",
    "estimated_read_bytes_per_gpu",
    "estimated_write_bytes_per_gpu",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "external_prefix_cache_queries",
    "external_prefix_cache_hits",
    "mm_cache_queries",
    "mm_cache_hits",
    "num_preemptions",
    "prompt_tokens",
    "prompt_tokens_cached",
    "generation_tokens",
)

# Counters and gauges with one more label, and the values of it that exist from the start.
LABELLED_COUNTERS = {
    "prompt_tokens_by_source": ("source", ("local_compute", "local_cache_hit", "external_kv_transfer")),
    "prompt_tokens_cached_by_source": ("source", ("device", "host", "p2p", "disk", "external_unspecified")),
    "request_success": ("finished_reason", ("stop", "length", "abort", "error", "repetition")),
}
PLAIN_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
LABELLED_GAUGES = {
    "num_requests_waiting_by_reason": ("reason", ("capacity", "deferred")),
    "engine_sleep_state": ("sleep_state", ("awake", "weights_offloaded", "discard_all")),
}

# Refusals happen before a request reaches an engine, so they have no engine label.
REJECTION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")

_SECONDS_LONG = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
_SECONDS_BETWEEN = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
_SECONDS_FIRST = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip

FIXED_HISTOGRAMS: dict[str, tuple[float, ...]] = {
    "iteration_tokens_total": (1.0, *(float(2**power) for power in range(3, 15))),
    "request_params_n": (1.0, 2.0, 5.0, 10.0, 20.0),
    "request_num_preemptions": (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0),
    "time_to_first_token_seconds": _SECONDS_FIRST,
    "inter_token_latency_seconds": _SECONDS_BETWEEN,
    "request_time_per_output_token_seconds": _SECONDS_BETWEEN,
    "e2e_request_latency_seconds": _SECONDS_LONG,
    "request_queue_time_seconds": _SECONDS_LONG,
    "request_inference_time_seconds": _SECONDS_LONG,
    "request_prefill_time_seconds": _SECONDS_LONG,
    "request_decode_time_seconds": _SECONDS_LONG,
}

# Histograms of lengths in tokens; their bounds end at the longest length that the model takes.
LENGTH_HISTOGRAMS = (
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_max_num_generation_tokens",
    "request_params_max_tokens",
    "request_prefill_kv_computed_tokens",
)

CACHE_CONFIG_LABELS = (
    "_block_size_resolved",
    "block_size",
    "cache_dtype",
    "cache_hit_alignment_tokens",
    "effective_attention_block_size",
    "enable_mamba_shared_prefix_checkpoint",
    "enable_prefix_caching",
    "engine",
    "gpu_memory_utilization",
    "hash_block_size",
    "is_attention_free",
    "kv_cache_dtype_skip_layers",
    "kv_cache_layout",
    "kv_cache_max_concurrency",
    "kv_cache_memory_bytes",
    "kv_cache_size_tokens",
    "kv_offloading_backend",
    "kv_offloading_size",
    "kv_sharing_fast_prefill",
    "mamba_block_size",
    "mamba_cache_dtype",
    "mamba_cache_mode",
    "mamba_page_size_padded",
    "mamba_ssm_cache_dtype",
    "num_cpu_blocks",
    "num_gpu_blocks",
    "num_gpu_blocks_override",
    "prefix_cache_retention_interval",
    "prefix_caching_hash_algo",
    "prefix_match_unit",
    "replayssm_buffer_len",
    "skip_page_size_padded",
    "sliding_window",
    "swa_bounded_replay",
    "use_kda_recoverssm",
    "use_replayssm",
    "user_specified_block_size",
)


def length_bounds(longest: int) -> tuple[float, ...]:
    """Returns the bounds 1, 2, 5, 10, 20, 50, ... up to `longest` tokens."""
    bounds = [float(step * 10**power) for power in range(len(str(longest))) for step in (1, 2, 5)]
    return tuple(bound for bound in bounds if bound <= longest)
