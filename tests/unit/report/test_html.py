"""The report is one page that needs nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from inferctl.report import html, live

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.report.recorder import Recorder


class _Scripts(HTMLParser):
    """What a page's script elements hold, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, _: object) -> None:
        self._inside = tag == "script"
        if self._inside:
            self.found.append("")

    def handle_endtag(self, _: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += data


@pytest.fixture
def lossy(story: Any) -> Any:  # noqa: ANN401 - a Story
    """A run with a cut stream, a refused request and a pod that was replaced."""
    story.add(0, "run", scenario="drain", promise="A", text="a node is drained", environment={"backend": "embedded"})
    story.add(0, "client", client="load", text="4 streams")
    story.pod(0, "model-aaa-old", "Ready")
    story.add(2, "disrupt", text="drain", pods=["model-aaa-old"], retires=True)
    story.request(1, 2, first=1.1, pod="model-aaa-old")
    story.request(2, 4, "truncated", first=2.5, pod="model-aaa-old", chunks=7)
    story.request(None, 5, "ConnectionRefusedError", http=0, chunks=0)
    story.pod(3, "model-aaa-old", "Terminating")
    story.add(3.5, "sigterm", pod="model-aaa-old", open=1)
    story.pod(4, "model-aaa-old", "Gone")
    story.add(6, "verdict", outcome="loss", reason="2 of 3 requests lost")
    return story


def test_page_loads_nothing(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """No script, style, image or font comes from elsewhere."""
    page = html.render(lossy.state)
    assert not re.search(r"""(src|href)\s*=|@import|url\(""", page)
    assert "Content-Security-Policy\" content=\"default-src 'none'; " in page


def test_every_lost_request_is_listed(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """Each has its fate, outcome, pod, chunks and what was heard last."""
    page = html.render(lossy.state)
    for cell in ("cut", "truncated", "model-aaa-old", "7", "detail of 1", "refused", "detail of 2"):
        assert f"<td>{cell}</td>" in page


def test_verdict_is_on_top(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """The verdict with its reason comes first, then the numbers, then the environment, then the charts."""
    page = html.render(lossy.state)
    verdict, numbers, environment = (
        page.index("2 of 3 requests lost"), page.index("<span>streams cut</span>"), page.index("<dd>embedded</dd>"),
    )  # fmt: skip
    assert verdict < numbers < environment < page.index('class="chart"')
    assert verdict < page.index("<h2>")


def test_load_is_named_with_its_own_lag(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """Each load says what it sent and, once it has ended, how late it was itself."""
    assert "<dd>4 streams</dd>" in html.render(lossy.state)
    lossy.add(6, "summary", client="load", total=3, overloaded=0, lag={"p99": 0.0123})
    assert "<dd>4 streams; own lag 12.3 ms (p99)</dd>" in html.render(lossy.state)


def test_pod_band_is_split_at_sigterm(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """The time of ending has two colours: preStop until SIGTERM, drain after it."""
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', html.render(lossy.state))[1])  # type: ignore[index]
    bands = data["pods"][0]["bands"]
    assert [band[2] for band in bands] == ["ready", "prestop", "drain"]
    assert bands[1][1] == bands[2][0] == data["pods"][0]["signals"][0]


def test_signal_that_is_heard_of_first_colours_the_whole_band(story: Any) -> None:  # noqa: ANN401 - a Story
    """Without a preStop sleep an engine may say that it has SIGTERM before the cluster says that its pod ends."""
    story.pod(0, "old", "Ready")
    story.request(0, 5, first=1, pod="old")
    story.add(1.9, "sigterm", pod="old", open=1)
    story.pod(2, "old", "Terminating")
    story.pod(4, "old", "Gone")
    bands = _data_of(story)["pods"][0]["bands"]
    assert [band[2] for band in bands if band[0] < band[1]] == ["ready", "drain"]


def test_numbers_claim_no_more_than_was_seen(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """Where a stream was cut, no rate is bounded; where requests failed to the end, service was not restored."""
    page = html.render(lossy.state)
    assert "<b>none</b><span>bound on the cut rate of streams at risk</span>" in page
    assert "<b>not seen</b><span>service restored</span>" in page
    lossy.request(5, 6, first=5.5, pod="model-bbb-new")
    assert "<b>3.0 s</b><span>service restored</span>" in html.render(lossy.state)


def test_exit_of_the_engine_is_marked(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """The moment at which the engine ended is on the band and in the key; a timeline that lacks it is drawn without."""
    assert "the engine exited" not in html.render(lossy.state)
    lossy.add(3.9, "exit", pod="model-aaa-old", finished=3, code=0, reason="Completed")
    page = html.render(lossy.state)
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page)[1])  # type: ignore[index]
    (pod,) = data["pods"]
    assert pod["exits"] == [pytest.approx(2.9)]
    assert pod["bands"][2][0] < pod["exits"][0] < pod["bands"][2][1]
    assert "the engine exited" in page


def test_lost_request_is_shown_with_its_last_bytes(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """Line ends are written out, since they are what shows where an answer was cut."""
    assert r"<code>data: {&#34;id&#34;: &#34;1&#34;\r\n</code>" in html.render(lossy.state)


def test_text_cannot_break_out(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """What a server or a cluster says is shown as text."""
    lossy.add(5, "action", text="</script><script>alert(1)</script>")
    page = html.render(lossy.state)
    assert "<script>alert(1)" not in page


@pytest.mark.parametrize("name", ["<!--<script>", "</script>", "<!--<script></script>", "a<b\\u003c"])
def test_name_cannot_break_the_charts(story: Any, name: str) -> None:  # noqa: ANN401 - a Story
    """Whatever a pod is called, a browser finds the charts' data, with its name as it is, and both programs."""
    story.pod(0, name, "Ready")
    scripts = _Scripts()
    scripts.feed(html.render(story.state))
    scripts.close()
    data, *programs = scripts.found
    assert json.loads(data)["pods"][0]["name"] == name
    assert "<" not in data
    assert len(programs) == 2
    assert all("<!--" not in program for program in programs)


def _data_of(story: Any) -> dict[str, Any]:  # noqa: ANN401 - a Story
    found: dict[str, Any] = json.loads(
        re.search(r'type="application/json">(.*?)</script>', html.render(story.state))[1]  # type: ignore[index]
    )
    return found


def test_long_run_has_few_buckets(story: Any) -> None:  # noqa: ANN401 - a Story
    """Over a week the charts add up more than a second, say so, and lose no request."""
    days = 604_000
    for number in range(2000):
        story.request(number, days + number, first=days, outcome="ok" if number % 4 else "truncated")
    data = _data_of(story)
    x, ok, _, cut, refused, kept, flying = data["requests"]
    assert len(x) <= 3600
    assert {len(series) for series in (*data["requests"], *data["latency"])} == {len(x)}
    width = data["width"]
    assert x == list(range(0, width * len(x), width))
    assert x[-1] <= days + 2000 <= x[-1] + width
    assert (sum(ok), sum(cut), sum(refused) + sum(kept)) == (1500, 500, 0)
    assert (flying[0], flying[len(x) // 2]) == (width, 2000)
    assert [at for at, value in zip(x, data["latency"][1], strict=True) if value] == [days // width * width]
    page = html.render(story.state)
    assert f"<h2>Requests, in steps of {width} s</h2>" in page
    assert len(page) < 500_000


def test_short_run_is_drawn_by_the_second(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """Each second has what ended in it, and what was in flight at its end; what was given up is not drawn as cut."""
    lossy.request(3.5, 4.5, "unfinished", first=3.6, pod="model-aaa-old")
    data = _data_of(lossy)
    assert data["width"] == 1
    assert data["requests"] == [
        [0, 1, 2, 3, 4],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
        [0] * 5,
        [1, 1, 2, 0, 0],
    ]
    assert "<h2>Requests</h2>" in html.render(lossy.state)


def test_run_without_requests_is_drawn(story: Any) -> None:  # noqa: ANN401 - a Story
    """A run that failed early still has a page that says so."""
    story.add(0, "run", scenario="drain", promise="A", text="", environment={})
    assert "the run was not finished" in html.render(story.state)


def test_page_from_file(lossy: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a Story
    """The file alone makes the same page."""
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text("".join(json.dumps(record) + "\n" for record in lossy.records))
    html.write(timeline, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == html.render(lossy.state)


def test_vendored_files_are_unchanged() -> None:
    """The inlined library is the published one."""
    folder = files("inferctl.report").joinpath("vendor")
    for line in folder.joinpath("SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() == digest


def test_live_view_has_counts_and_pods(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """The terminal shows the counts, and pods that are not gone."""
    lossy.pod(5, "model-bbb-new", "Ready")
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(live.view(lossy.state, 6.0, 41.0))
    text = console.export_text()
    assert "6 s, this step at most 41 s more" in text
    assert "model-bbb-new" in text
    assert "model-aaa-old" not in text
    assert re.search(r"3\s+0\s+1\s+1\s+1\s+0\s+0", text)


def test_nothing_is_shown_without_a_terminal(recorder: Recorder) -> None:
    """Where output is not a terminal, the live view writes nothing."""
    output = io.StringIO()
    live.show(recorder, Console(file=output, force_terminal=False))()
    assert not output.getvalue()


def test_live_view_ends(recorder: Recorder) -> None:
    """On a terminal the view is drawn, and gone when the run is over."""
    output = io.StringIO()
    live.show(recorder, Console(file=output, force_terminal=True))()
    assert output.getvalue()


def test_what_was_done_begins_with_the_first_action(lossy: Any) -> None:  # noqa: ANN401 - a Story
    """That the run began is no action: its title stands above, and not among what was done."""
    done = [text for _, text in html._notes(lossy.state, 0)]
    assert done == ["disruption: drain", "verdict: loss: 2 of 3 requests lost"]
