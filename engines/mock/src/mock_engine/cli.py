"""Puts the engine together from a command line and an environment, and runs it."""

import gc
import socket
import sys
import time
from collections.abc import Mapping, Sequence

import uvicorn

from mock_engine import environment as environments
from mock_engine import flags as command_line
from mock_engine.application import application
from mock_engine.connection import Connection
from mock_engine.engine import Engine
from mock_engine.faults import Faults
from mock_engine.metrics import Metrics
from mock_engine.requests import Limits
from mock_engine.scheduler import Scheduler, Timing
from mock_engine.server import EngineServer


def main(argv: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs the engine; returns the process's exit code."""
    try:
        environment = environments.read(variables)
    except environments.EnvironmentProblems as problems:
        print(*(f"mock-engine: error: {problem}" for problem in problems.problems), sep="\n", file=sys.stderr)
        return 2
    flags = command_line.parse(argv, environment.model_name, variables.get("VLLM_API_KEY"))
    pod = variables.get("POD_NAME") or socket.gethostname()
    metrics = Metrics(
        flags.models[0],
        max_model_len=flags.max_model_len,
        block_size=flags.block_size,
        blocks=flags.num_gpu_blocks,
    )
    timing = Timing(
        ttft=environment.ttft,
        inter_token=environment.inter_token,
        prefill_per_token=environment.prefill_per_token,
        spread=environment.spread,
        tokens_per_chunk=max(environment.tokens_per_chunk, flags.stream_interval),
    )
    scheduler = Scheduler(max_running=flags.max_num_seqs, timing=timing, observer=metrics, seed=environment.seed)
    metrics.watch(scheduler)
    engine = Engine(
        limits=Limits(flags.models, flags.max_model_len, environment.answer_tokens, flags.force_include_usage),
        scheduler=scheduler,
        metrics=metrics,
        faults=Faults(environment.faults, controllable=environment.fault_control, seed=environment.seed),
        role=flags.response_role,
        pod=pod,
        # vLLM was seen to end what its drain left with [DONE] alone; without a drain, mostly with an error.
        abort_style=environment.abort_style or ("done" if flags.shutdown_timeout else "error"),
        max_queued=flags.max_num_queued_reqs,
        load_tracking=flags.load_tracking,
        started=int(time.time()),
    )
    config = uvicorn.Config(
        application(engine, api_keys=flags.api_keys, request_ids=flags.request_id_headers, origins=flags.origins),
        host=flags.host,
        port=flags.port,
        uds=flags.uds,
        http=Connection,
        ws="none",
        loop="uvloop",
        lifespan="off",
        log_level=flags.log_level,
        access_log=flags.access_log,
        root_path=flags.root_path,
        headers=[("x-served-by", pod)],
    )
    server = EngineServer(
        config,
        engine,
        startup_delay=environment.startup_delay,
        startup_mode=environment.startup_mode,
        shutdown_timeout=flags.shutdown_timeout,
        teardown=environment.teardown,
    )
    # What start-up made lives as long as the process: keep the collector from walking it under load.
    gc.freeze()
    try:
        server.run()
    except SystemExit:  # uvicorn's way to say that it could not listen, which it has logged
        return 1
    return 0
