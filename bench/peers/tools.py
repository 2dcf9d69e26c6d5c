"""The load generators that are compared: how each is started, and what its own report says.

Every adapter asks for the same thing: `streams` requests at once, answers of 20 tokens, `requests` in total, streaming
with usage. What is read back is the tool's own claim, in its own words for time to first token.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "mock/mock-8b"
ANSWER_SECONDS = 0.671  # what the server takes for an answer: 0.1 s, then 19 times 0.03 s, as measured at one stream


@dataclass(frozen=True, slots=True)
class Job:
    """What a tool is asked to do."""

    url: str
    streams: int
    requests: int
    folder: Path
    tokenizer: Path
    limit: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What a tool says about a run: requests counted good and bad, and its times to first token in seconds."""

    good: int
    bad: int
    ttft_p50: float | None
    ttft_p99: float | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A load generator.

    Attributes:
        name: with its version.
        program: what must exist for it to be run.
        command: the command line for a job, and environment variables for it.
        claim: reads the tool's report.
    """

    name: str
    program: Path
    command: Callable[[Job], tuple[list[str], dict[str, str]]]
    claim: Callable[[Path], Claim]


def ours(python: Path, load: Path, connection: str) -> Tool:
    """The load generator of this repository."""

    def command(job: Job) -> tuple[list[str], dict[str, str]]:
        environment = {
            "TARGET": job.url,
            "CONCURRENCY": str(job.streams),
            "REQUESTS": str(job.requests),
            "DURATION_SECONDS": f"{job.limit:g}",
            "START_SPREAD_SECONDS": str(ANSWER_SECONDS),
            "CONNECTION": connection,
            "STALL_SECONDS": "5",
            "SUMMARY_FILE": str(job.folder / "summary.json"),
        }
        return [str(python), str(load)], environment

    def claim(folder: Path) -> Claim:
        record = _json(folder / "summary.json")
        ttft = record["latency"]["ttft"]
        failures = {name: count for name, count in record["outcomes"].items() if name != "ok"}
        words = ", ".join(f"{name} {count}" for name, count in failures.items())
        if record["client"]["overloaded"] and not failures:
            words = "client overloaded"
        good = record["outcomes"].get("ok", 0)
        return Claim(good, record["total"] - good, ttft["p50"], ttft["p99"], words)

    return Tool(f"load.py, {connection}", load, command, claim)


def vllm_bench(program: Path) -> Tool:
    """`vllm bench serve`."""

    def command(job: Job) -> tuple[list[str], dict[str, str]]:
        options = {
            "--backend": "openai-chat",
            "--base-url": job.url,
            "--endpoint": "/v1/chat/completions",
            "--model": MODEL,
            "--tokenizer": str(job.tokenizer),
            "--dataset-name": "random",
            "--random-input-len": "8",
            "--random-output-len": "20",
            "--num-prompts": str(job.requests),
            "--max-concurrency": str(job.streams),
            "--percentile-metrics": "ttft",
            "--metric-percentiles": "50,99",
            "--result-dir": str(job.folder),
            "--result-filename": "vllm.json",
        }
        flat = [text for option in options.items() for text in option]
        flags = ["--ignore-eos", "--save-result", "--disable-tqdm"]
        return [str(program), "bench", "serve", *flat, *flags], {}

    def claim(folder: Path) -> Claim:
        record = _json(folder / "vllm.json")
        times = (record["p50_ttft_ms"] / 1000, record["p99_ttft_ms"] / 1000)
        return Claim(record["completed"], record["failed"], *(times if record["completed"] else (None, None)))

    return Tool("vllm bench serve 0.32.0", program, command, claim)


def guidellm(program: Path) -> Tool:
    """GuideLLM."""

    def command(job: Job) -> tuple[list[str], dict[str, str]]:
        kinds = {
            "--backend": f"kind=openai_http,target={job.url},model={MODEL},request_format=/v1/chat/completions",
            "--profile": f"kind=concurrent,streams={job.streams}",
            "--constraint": f"kind=max_requests,count={job.requests}",
            "--tokenizer": f"kind=hf_auto,model={job.tokenizer}",
            "--data": "kind=synthetic_text,prompt_tokens=8,output_tokens=20",
            "--output": f"kind=json,path={job.folder / 'guidellm.json'}",
        }
        flat = [text for option in kinds.items() for text in option]
        return [str(program), "run", *flat, "--disable-console"], {}

    def claim(folder: Path) -> Claim:
        metrics = _json(folder / "guidellm.json")["benchmarks"][0]["metrics"]
        totals = metrics["request_totals"]
        times = metrics["time_to_first_token_ms"]["successful"]["percentiles"]
        bad = totals["errored"] + totals["incomplete"]
        if not totals["successful"]:
            return Claim(0, bad, None, None)
        return Claim(totals["successful"], bad, times["p50"] / 1000, times["p99"] / 1000)

    return Tool("guidellm 0.8.1", program, command, claim)


def inference_perf(program: Path) -> Tool:
    """inference-perf; its synthetic prompts go to /v1/completions only."""

    def command(job: Job) -> tuple[list[str], dict[str, str]]:
        prompts = {"num_groups": 1, "num_prompts_per_group": 50, "system_prompt_len": 4, "question_len": 8}
        config = {
            "api": {"type": "completion", "streaming": True},
            "data": {"type": "shared_prefix", "shared_prefix": prompts | {"output_len": 20}},
            "load": {
                "type": "concurrent",
                "num_workers": 1,
                "stages": [{"num_requests": job.requests, "concurrency_level": job.streams}],
            },
            "server": {"type": "vllm", "model_name": MODEL, "base_url": job.url, "ignore_eos": True},
            "tokenizer": {"pretrained_model_name_or_path": str(job.tokenizer)},
            "report": {"request_lifecycle": {"summary": True, "percentiles": [50, 99]}},
            "storage": {"local_storage": {"path": str(job.folder / "reports")}},
        }
        path = job.folder / "config.yaml"
        path.write_text(json.dumps(config))
        return [str(program), "-c", str(path)], {}

    def claim(folder: Path) -> Claim:
        record = _json(folder / "reports/summary_lifecycle_metrics.json")
        good, bad = record["successes"]["count"], record["failures"]["count"]
        times = (record["successes"].get("latency") or {}).get("time_to_first_token") or {}
        return Claim(good, bad, times.get("median", times.get("p50")), times.get("p99"))

    return Tool("inference-perf 0.7.0", program, command, claim)


def aiperf(program: Path) -> Tool:
    """AIPerf."""

    def command(job: Job) -> tuple[list[str], dict[str, str]]:
        options = {
            "--model-names": MODEL,
            "--url": job.url,
            "--endpoint-type": "chat",
            "--concurrency": str(job.streams),
            "--request-count": str(job.requests),
            "--tokenizer": str(job.tokenizer),
            "--isl": "8",
            "--osl": "20",
            "--artifact-dir": str(job.folder / "aiperf"),
            "--ui-type": "none",
        }
        flat = [text for option in options.items() for text in option]
        return [str(program), "profile", "--streaming", *flat], {}

    def claim(folder: Path) -> Claim:
        record = _json(folder / "aiperf/profile_export_aiperf.json")
        good = int((record.get("request_count") or {"avg": 0})["avg"])
        bad = int((record.get("error_request_count") or {"avg": 0})["avg"])
        times = record.get("time_to_first_token") or {}
        seconds = [times[name] / 1000 if name in times else None for name in ("p50", "p99")]
        return Claim(good, bad, seconds[0], seconds[1])

    return Tool("AIPerf 0.13.0", program, command, claim)


def found(programs: dict[str, str]) -> list[Tool]:
    """Returns the peers whose program was named and exists, by the adapters' names."""
    adapters = {"vllm": vllm_bench, "guidellm": guidellm, "inference-perf": inference_perf, "aiperf": aiperf}
    tools = []
    for name, adapter in adapters.items():
        program = shutil.which(programs.get(name) or name)
        if program is not None:
            tools.append(adapter(Path(program)))
    return tools


def _json(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record
