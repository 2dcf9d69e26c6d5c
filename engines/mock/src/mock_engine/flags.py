"""vLLM's command line: every `vllm serve` option is accepted, those that show at the edges are returned."""

import argparse
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

_EPILOG = """\
Every option of vllm serve is accepted; those above have an effect, the rest (tensor parallelism,
quantization, ...) change nothing that can be seen from outside. Timing, start mode and faults come from
the environment.

examples:
  python3 -m mock_engine --port 8000 --shutdown-timeout 60
  STARTUP_DELAY_SECONDS=15 TTFT_SECONDS=0.3 python3 -m mock_engine --max-num-seqs 4 --api-key secret
"""
_AUTO_LENGTH = 8192
_LOG_LEVELS = ("debug", "info", "warning", "error", "critical", "trace")
_LAST_PORT = 65535
_LONGEST_SOCKET_PATH = 107  # bytes; sun_path of Linux less its NUL
_MULTIPLIERS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Flags:
    """The options with an effect at the edges. Names are vLLM's; times are in seconds, lengths in tokens."""

    host: str
    port: int
    uds: str | None
    models: tuple[str, ...]
    api_keys: tuple[str, ...]
    max_model_len: int
    max_num_seqs: int
    max_num_queued_reqs: int | None
    shutdown_timeout: int
    stream_interval: int
    block_size: int
    num_gpu_blocks: int
    root_path: str
    log_level: str
    access_log: bool
    request_id_headers: bool
    force_include_usage: bool
    load_tracking: bool
    origins: str
    response_role: str


class _Parser(argparse.ArgumentParser):
    """Refuses as vLLM does: usage, one line that begins `vllm serve: error:`, exit code 2."""

    def error(self, message: str) -> NoReturn:
        # vLLM's outer parser is the one that finds options which nobody knows.
        program = "vllm" if message.startswith("unrecognized arguments") else self.prog
        self.exit(2, f"{self.format_usage()}{program}: error: {message}\n")


def _length(text: str) -> int:
    """Reads a length in tokens such as 4096, 32k (32,000), 32K (32,768), 25.6k or auto."""
    if text in {"auto", "-1"}:
        return _AUTO_LENGTH
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG]?)", text)
    if not match or ("." in text and not match.group(2)):
        raise argparse.ArgumentTypeError(f"invalid human_readable_int_or_auto value: {text!r}")
    length = float(match.group(1)) * _MULTIPLIERS.get(match.group(2), 1)
    if not 1 <= length < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range: write a length >= 1, or auto")
    return int(length)


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Returns a reader of whole numbers within limits."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
        if number < least or (most is not None and number > most):
            limits = f">= {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is out of range: write a whole number {limits}")
        return number

    return read


def _origins(text: str) -> str:
    """Checks that a text is a JSON list."""
    try:
        if isinstance(json.loads(text), list):
            return text
    except (ValueError, RecursionError):
        pass
    raise argparse.ArgumentTypeError(f"invalid loads value: {text!r}")


def _socket_path(text: str) -> str:
    """Checks that a UNIX domain socket can be made at a path."""
    if not 0 < len(os.fsencode(text)) <= _LONGEST_SOCKET_PATH:
        raise argparse.ArgumentTypeError(f"{text!r} is no socket's path: write 1 to {_LONGEST_SOCKET_PATH} bytes")
    path = Path(text)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be made: write a path in a folder that can be written")
    if path.exists() and not path.is_socket():
        raise argparse.ArgumentTypeError(f"{text!r} is there and is no socket: write the path of a new one")
    return text


_KINDS: dict[str, dict[str, Any]] = {
    "switch": {"action": argparse.BooleanOptionalAction},
    "flag": {"action": "store_true"},
    "value": {},
    "values": {"nargs": "+"},
    "optional": {"nargs": "?"},
    "int": {"type": int},
    "float": {"type": float},
    "length": {"type": _length},
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="vllm serve",
        usage="vllm serve [model_tag] [options]",
        description="An engine that behaves like vLLM at its edges and computes nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    switch = partial(add, action=argparse.BooleanOptionalAction, default=False)
    add("model_tag", nargs="?", help="the model's name, unless a flag names it")
    add("--model", help="the model's name (default: MODEL_NAME in the environment)")
    add("--served-model-name", nargs="+", help="names by which clients may ask for the model")
    add("--host", default="0.0.0.0", help="address to listen on (default: all)")  # noqa: S104  # vLLM's default
    add("--port", type=_whole(0, _LAST_PORT), default=8000, help="port to listen on (default: 8000)")
    add("--uds", type=_socket_path, help="UNIX domain socket to listen on instead")
    add("--max-num-queued-reqs", type=_whole(0), help="requests, running or waiting, above which more get a 503")
    add("--api-key", nargs="+", help="keys of which /v1 asks for one")
    add("--max-model-len", type=_length, default=8192, help="longest prompt plus answer (default: 8192)")
    add("--max-num-seqs", type=int, default=256, help="requests that run at once (default: 256)")
    add("--shutdown-timeout", type=int, default=0, help="seconds to drain at SIGTERM (default: 0, abort)")
    add("--stream-interval", type=int, default=1, help="tokens per streamed chunk (default: 1)")
    add("--block-size", type=int, default=16, help="tokens per KV-cache block (default: 16)")
    add("--num-gpu-blocks-override", type=_whole(1), default=8192, help="KV-cache blocks (default: 8192)")
    add("--root-path", default="", help="path prefix that a proxy in front takes off")
    add("--uvicorn-log-level", choices=_LOG_LEVELS, default="info", help="level of the server's log (default: info)")
    switch("--disable-uvicorn-access-log", help="no line per request")
    switch("--enable-request-id-headers", help="answer with X-Request-Id")
    switch("--enable-force-include-usage", help="a usage chunk in every stream")
    switch("--enable-server-load-tracking", help="count requests in /load")
    add("--allowed-origins", default="[]", type=_origins, help="JSON list of origins for CORS")
    add("--response-role", default="assistant", help="role of the answer (default: assistant)")
    _add_the_rest(parser)
    return parser


def _add_the_rest(parser: argparse.ArgumentParser) -> None:
    """Adds each remaining option of vLLM as one that is read and then ignored."""
    known = set(parser._option_string_actions)  # noqa: SLF001  # argparse has no public way to ask
    lines = (resources.files(__package__) / "serve_flags.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        *options, takes = line.split()
        if not line.startswith("#") and known.isdisjoint(options):
            parser.add_argument(*options, dest="ignored", help=argparse.SUPPRESS, **_KINDS[takes])


def _normalise(argv: Sequence[str]) -> list[str]:
    """Rewrites what vLLM's own parser rewrites: `--max_num_seqs` and `--config-flag.key value`."""
    result = []
    for argument in argv:
        if not argument.startswith("--"):
            result.append(argument)
            continue
        name, equals, value = argument.partition("=")
        base = name.partition(".")[0].replace("_", "-")
        result.append(base + equals + value)
    return result


def parse(argv: Sequence[str], model_name: str, api_key: str | None) -> Flags:
    """Reads a command line; `model_name` and `api_key` are what the environment says where no flag does.

    Raises:
        SystemExit: with code 2 and vLLM's message on stderr for an unknown option or a bad value.
    """
    parser = _parser()
    options = parser.parse_args(_normalise(argv))
    for name, least in (("max_num_seqs", 1), ("shutdown_timeout", 0), ("stream_interval", 1), ("block_size", 1)):
        if getattr(options, name) < least:
            parser.exit(1, f"vllm serve: error: {name}: Input should be greater than or equal to {least}\n")
    models = options.served_model_name or [options.model or options.model_tag or model_name]
    return Flags(
        host=options.host,
        port=options.port,
        uds=options.uds,
        models=tuple(models),
        api_keys=tuple(options.api_key or ([api_key] if api_key else [])),
        max_model_len=options.max_model_len,
        max_num_seqs=options.max_num_seqs,
        max_num_queued_reqs=options.max_num_queued_reqs,
        shutdown_timeout=options.shutdown_timeout,
        stream_interval=options.stream_interval,
        block_size=options.block_size,
        num_gpu_blocks=options.num_gpu_blocks_override,
        root_path=options.root_path,
        log_level=options.uvicorn_log_level,
        access_log=not options.disable_uvicorn_access_log,
        request_id_headers=options.enable_request_id_headers,
        force_include_usage=options.enable_force_include_usage,
        load_tracking=options.enable_server_load_tracking,
        origins=options.allowed_origins,
        response_role=options.response_role,
    )
