"""Load clients that others wrote, unchanged, against the engine: `vllm bench serve` and guidellm.

They are programs with large environments of their own. EDGES_VLLM_BENCH names the program `vllm`, EDGES_GUIDELLM the
program `guidellm`; the tests of one that is not named are left out, which the end of the run says. EDGES_TOKENIZER is
a folder with a tokenizer, from which both make their prompts. tests/edges/run_vllm.py --clients gives all three.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.edges.conftest import Engine

REQUESTS = 50
AT_ONCE = 8
PROMPT_TOKENS = 32
ANSWER_TOKENS = 16
# Both import much before they begin.
SECONDS = 300


@pytest.fixture
def tokenizer() -> str:
    """The folder with a tokenizer."""
    named = os.environ.get("EDGES_TOKENIZER", "")
    assert Path(named, "tokenizer.json").is_file(), f"EDGES_TOKENIZER={named!r}: name a folder with a tokenizer.json"
    return str(Path(named).absolute())


def run(variable: str, *arguments: str, folder: Path) -> None:
    """Runs the client that a variable names in a folder of its own, without a way to the internet's models.

    Raises:
        AssertionError: it ended with another code than 0; with the end of what it printed.
    """
    program = shutil.which(os.environ[variable])
    assert program is not None
    done = subprocess.run(
        [Path(program).absolute(), *arguments],
        cwd=folder,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def counted(engine: Engine, before: dict[str, Any]) -> tuple[float, float]:
    """Returns how many answers the engine has finished for want of more tokens since, and how many tokens it made."""
    engine.wait_idle()
    after = engine.metrics()
    length = (("finished_reason", "length"),)
    finished = after["vllm:request_success_total"][length] - before["vllm:request_success_total"][length]
    return finished, after["vllm:generation_tokens_total"][()] - before["vllm:generation_tokens_total"][()]


@pytest.mark.program("EDGES_VLLM_BENCH")
@pytest.mark.parametrize(("backend", "path"), [("openai-chat", "/v1/chat/completions"), ("openai", "/v1/completions")])
def test_vllm_bench_serve(engine: Engine, tokenizer: str, tmp_path: Path, backend: str, path: str) -> None:
    """`vllm bench serve` gets every answer whole, measures each latency, and counts what the engine counts."""
    before = engine.metrics()
    run(
        "EDGES_VLLM_BENCH", "bench", "serve", "--backend", backend, "--endpoint", path,
        "--base-url", f"http://127.0.0.1:{engine.port}", "--model", "mock/mock-8b",
        "--tokenizer", tokenizer, "--dataset-name", "random",
        "--random-input-len", str(PROMPT_TOKENS), "--random-output-len", str(ANSWER_TOKENS),
        "--num-prompts", str(REQUESTS), "--max-concurrency", str(AT_ONCE), "--ignore-eos", "--disable-tqdm",
        "--save-result", "--save-detailed", "--result-filename", "result.json",
        folder=tmp_path,
    )  # fmt: skip
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert (result["completed"], result["failed"]) == (REQUESTS, 0)
    assert result["total_output_tokens"] == REQUESTS * ANSWER_TOKENS
    assert not any(result["errors"])
    assert all(seconds > 0 for seconds in result["ttfts"])
    assert all(gaps for gaps in result["itls"])
    assert counted(engine, before) == (REQUESTS, REQUESTS * ANSWER_TOKENS)


@pytest.mark.program("EDGES_GUIDELLM")
def test_guidellm(engine: Engine, tokenizer: str, tmp_path: Path) -> None:
    """Guidellm gets every answer whole, streamed and with usage, and counts what the engine counts."""
    before = engine.metrics()
    run(
        "EDGES_GUIDELLM", "run", "--disable-console",
        "--backend", f"kind=openai_http,target=http://127.0.0.1:{engine.port},model=mock/mock-8b",
        "--profile", f"kind=concurrent,streams={AT_ONCE}",
        "--constraint", f"kind=max_requests,count={REQUESTS}",
        "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
        "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={ANSWER_TOKENS}",
        "--output", "kind=json,path=result.json",
        folder=tmp_path,
    )  # fmt: skip
    (benchmark,) = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["benchmarks"]
    totals = benchmark["metrics"]["request_totals"]
    assert (totals["successful"], totals["errored"], totals["incomplete"]) == (REQUESTS, 0, 0)
    assert counted(engine, before) == (REQUESTS, REQUESTS * ANSWER_TOKENS)
