"""The page about load and the manifest beside it say what the program does."""

import re
from pathlib import Path

import yaml
from loadgen.settings import VARIABLES, read
from loadgen.summary import Summary
from loadgen.tally import LATENCIES, Tally

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs/load.md").read_text()
OUTCOMES = {
    "ok",
    "error_event",
    "aborted",
    "no_finish_reason",
    "lost_chunk",
    "empty",
    "truncated",
    "truncated_reset",
    "stall",
    "stale_keepalive",
    "unfinished",
}


def test_outcomes_are_on_the_page() -> None:
    """Every outcome that the code can give has a row."""
    source = (REPOSITORY / "loadtest/loadgen/outcome.py").read_text()
    for outcome in OUTCOMES:
        assert f"| `{outcome}` |" in PAGE
        assert f'"{outcome}"' in source


def test_latencies_are_on_the_page() -> None:
    """Every latency is defined."""
    table = PAGE.partition("## Latency")[2].partition("## Events")[0]
    assert not [name for name in LATENCIES if f"`{name}`" not in table]


def test_summary_fields_are_on_the_page() -> None:
    """Every field of a summary is described, and no other."""
    summary = Summary(target="http://a", arrival="closed", started=0, ended=1, tally=Tally({}))
    table = PAGE.partition("| field of the summary |")[2].partition("\n\n")[0]
    described = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert described == set(summary.to_json())


def test_job_is_accepted() -> None:
    """The manifest's environment is one that the program takes, and its image is named by digest."""
    job = yaml.safe_load((REPOSITORY / "loadtest/job.yaml").read_text())
    container = job["spec"]["template"]["spec"]["containers"][0]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    assert set(environment) <= {variable.name for variable in VARIABLES}
    assert read(environment).rate == 10
    assert "@sha256:" in container["image"]
