"""The command line."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from mock_engine import flags

LINES = (Path(flags.__file__).parent / "serve_flags.txt").read_text(encoding="utf-8").splitlines()
OPTIONS = [line.split() for line in LINES if not line.startswith("#")]
VALUES = {"value": "x", "values": "x", "optional": "x", "int": "3", "float": "0.5", "length": "2k"}
# Options among those with an effect that take only values of a certain form.
SPECIAL = {
    "--allowed-origins": '["*"]',
    "--max-num-queued-reqs": "3",
    "--num-gpu-blocks-override": "3",
    "--uvicorn-log-level": "warning",
}


@pytest.mark.parametrize("line", OPTIONS, ids=lambda line: line[0])
def test_every_option_of_vllm_is_accepted(line: list[str]) -> None:
    """Each option is accepted in each of its spellings, with a value where vLLM takes one."""
    *spellings, takes = line
    for option in spellings:
        value = [] if takes in {"switch", "flag"} else [SPECIAL.get(option, VALUES[takes])]
        flags.parse(["model", option, *value], "m", None)
        if takes == "switch" and option.startswith("--"):
            flags.parse([option.replace("--", "--no-", 1)], "m", None)


def test_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """An option that vLLM does not know is refused as vLLM does."""
    with pytest.raises(SystemExit) as ended:
        flags.parse(["model", "--bogus-flag", "1"], "m", None)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("vllm: error: unrecognized arguments: --bogus-flag 1\n")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--uvicorn-log-level", "loud", "invalid choice: 'loud' (choose from "),
        ("--max-model-len", "0", "'0' is out of range: write a length >= 1, or auto\n"),
        ("--max-model-len", "0.0001k", "'0.0001k' is out of range: write a length >= 1, or auto\n"),
        ("--num-gpu-blocks-override", "0", "'0' is out of range: write a whole number >= 1\n"),
        ("--num-gpu-blocks-override", "x", "invalid int value: 'x'\n"),
        ("--port", "99999", "'99999' is out of range: write a whole number from 0 to 65535\n"),
        ("--port", "-1", "'-1' is out of range: write a whole number from 0 to 65535\n"),
        ("--max-num-queued-reqs", "-1", "'-1' is out of range: write a whole number >= 0\n"),
        ("--max-model-len", "9" * 400, "'999"),
        ("--allowed-origins", "[" * 100_000, "invalid loads value: "),
        ("--uds", "", "'' is no socket's path: write 1 to 107 bytes\n"),
        ("--uds", "x" * 108, "'xxx"),
        ("--uds", "/nodir/x", "'/nodir/x' cannot be made: write a path in a folder that can be written\n"),
        ("--uds", "/dev/null/x", "'/dev/null/x' cannot be made: write a path in a folder that can be written\n"),
        ("--uds", "/dev/null", "'/dev/null' is there and is no socket: write the path of a new one\n"),
    ],
)
def test_value_that_cannot_be_used_is_refused(
    capsys: pytest.CaptureFixture[str], option: str, value: str, message: str
) -> None:
    """A value that the engine could not start or work with is refused in one line under the usage, with code 2."""
    with pytest.raises(SystemExit) as ended:
        flags.parse([option, value], "m", None)
    assert ended.value.code == 2
    usage, error = capsys.readouterr().err.splitlines(keepends=True)
    assert usage.startswith("usage: vllm serve")
    assert error.startswith(f"vllm serve: error: argument {option}: {message}")


def test_socket_path_may_be_used_again(tmp_path: Path) -> None:
    """A socket that an earlier engine left behind is taken over, as a path where nothing is yet."""
    left = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(left))
    for path in (left, tmp_path / "new"):
        assert flags.parse(["--uds", str(path)], "m", None).uds == str(path)


def test_options_are_not_abbreviated() -> None:
    """The beginning of an option is not taken for it."""
    with pytest.raises(SystemExit):
        flags.parse(["--max-num", "4"], "m", None)


def test_underscores_and_dots() -> None:
    """Options may be written with underscores, and settings inside an option with dots."""
    parsed = flags.parse(["--max_num_seqs=7", "--compilation-config.level", "3"], "m", None)
    assert parsed.max_num_seqs == 7


@pytest.mark.parametrize(
    ("text", "length"), [("4096", 4096), ("32k", 32000), ("32K", 32768), ("25.6k", 25600), ("auto", 8192)]
)
def test_lengths(text: str, length: int) -> None:
    """Lengths may be written with a unit."""
    assert flags.parse(["--max-model-len", text], "m", None).max_model_len == length


@pytest.mark.parametrize(
    ("argv", "models"),
    [
        ([], ("from-env",)),
        (["tag"], ("tag",)),
        (["tag", "--model", "flag"], ("flag",)),
        (["tag", "--served-model-name", "a", "b"], ("a", "b")),
    ],
)
def test_name_of_the_model(argv: list[str], models: tuple[str, ...]) -> None:
    """A flag names the model, else the command line's first word, else the environment."""
    assert flags.parse(argv, "from-env", None).models == models


def test_api_keys() -> None:
    """Keys come from the flag, else from the environment."""
    assert flags.parse(["--api-key", "a", "b"], "m", "c").api_keys == ("a", "b")
    assert flags.parse([], "m", "c").api_keys == ("c",)
    assert flags.parse([], "m", None).api_keys == ()


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """--help shows the options that have an effect, and examples."""
    with pytest.raises(SystemExit) as ended:
        flags.parse(["--help"], "m", None)
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "--shutdown-timeout" in printed
    assert "examples:" in printed
    assert "--tensor-parallel-size" not in printed
