"""How an engine starts, and what it refuses to start with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.edges.conftest import Engine


def test_port_is_closed_until_the_model_is_loaded(shared: Engine) -> None:
    """Connections are refused while the model loads; the first answer is a 200."""
    assert shared.seen_before_ready == {"refused"}


def test_unknown_flag_is_refused(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """An option that vLLM does not know ends the process with code 2 and names it."""
    ended = run("--bogus-flag", "1")
    assert ended.returncode == 2
    assert "vllm: error: unrecognized arguments: --bogus-flag" in ended.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--max_num_seqs=x",), "vllm serve: error: argument --max-num-seqs: invalid int value: 'x'"),
        (
            ("--max-model-len", "1.5"),
            "vllm serve: error: argument --max-model-len: invalid human_readable_int_or_auto value: '1.5'",
        ),
    ],
)
def test_value_of_the_wrong_type_is_refused(
    run: Callable[..., subprocess.CompletedProcess[str]], flags: tuple[str, ...], message: str
) -> None:
    """A value that cannot be read ends the process with code 2 and names option and value."""
    ended = run(*flags)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_value_out_of_range_is_refused(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """A value that can be read but not used ends the process with code 1."""
    ended = run("--max-num-seqs", "0")
    assert ended.returncode == 1
    assert "Input should be greater than or equal to 1" in ended.stderr
