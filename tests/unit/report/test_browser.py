"""The report as a real browser draws it: in a light and in a dark scheme, on a desk and on a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inferctl.report import html
from tests.browser import look

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser

PHONE, DESK = 360, 1100
_POLICY = '<meta http-equiv="Content-Security-Policy"'
_BANDS = ("pending", "running", "ready", "unready", "prestop", "drain")
#: What each chart is drawn in: the names of the page's colours, with how many points have them.
_PROBE = """(window) => {
  const style = window.getComputedStyle(window.document.documentElement);
  const names = ["page", "ink", "ok", "cut", "refused", "pending", "running", "ready", "unready", "prestop", "drain"];
  const charts = {};
  for (const chart of window.document.querySelectorAll(".chart")) {
    const canvas = chart.querySelector("canvas");
    const counts = (charts[chart.id] = {});
    if (canvas === null) continue;
    const points = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    for (const name of names) {
      const wanted = parseInt(style.getPropertyValue(`--${name}`).trim().slice(1), 16);
      let count = 0;
      for (let i = 0; i < points.length; i += 4) {
        const point = (points[i] << 16) | (points[i + 1] << 8) | points[i + 2];
        if (points[i + 3] === 255 && point === wanted) count += 1;
      }
      counts[name] = count;
    }
  }
  const root = window.document.documentElement;
  return {
    width: window.innerWidth,
    beyond: root.scrollWidth - root.clientWidth,
    background: window.getComputedStyle(window.document.body).backgroundColor,
    charts,
    requests: window.performance.getEntriesByType("resource").map((entry) => entry.name),
  };
}"""


@pytest.fixture
def page(story: Any) -> str:  # noqa: ANN401 - a Story
    """A rollout: one pod goes through all it can, its successor comes, and a stream is cut."""
    story.add(0, "run", scenario="rollout", promise="A", text="pods are replaced", environment={"backend": "embedded"})
    story.add(0, "client", client="load", text="4 streams")
    old, new = "model-inference-service-aaaaaaaaaa-old01", "model-inference-service-bbbbbbbbbb-new01"
    for t, pod, state in (
        (0, old, "Ready"), (5, new, "Pending"), (11, new, "Running"), (15, new, "Unready"), (18, new, "Ready"),
        (20, old, "Terminating"),
    ):  # fmt: skip
        story.pod(t, pod, state)
    story.add(4, "disrupt", text="helm upgrade", pods=[old], retires=True)
    for t in range(1, 50):
        story.request(t, t + 0.7, first=t + 0.1, pod=old if t < 25 else new)
    for t in (28, 29):
        story.request(t, t + 0.5, "truncated", first=t + 0.1, pod=old, chunks=7)
    story.add(30, "sigterm", pod=old, open=3)
    story.add(40, "exit", pod=old, finished=39, code=0, reason="Completed")
    story.pod(44, old, "Gone")
    story.add(50, "verdict", outcome="loss", reason="2 of 51 requests lost")
    return html.render(story.state)


@pytest.fixture
def report(page: str, tmp_path: Path) -> Path:
    """The report as a file."""
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.mark.parametrize(("dark", "background"), [(False, "rgb(255, 255, 255)"), (True, "rgb(13, 17, 23)")])
def test_report_is_drawn(report: Path, tmp_path: Path, dark: bool, background: str) -> None:  # noqa: FBT001 - a case
    """Lines and bands are on their charts in the scheme's colours, within the width; nothing else is asked for."""
    seen = look([(report, PHONE), (report, DESK)], _PROBE, folder=tmp_path, dark=dark)
    assert not seen.console
    assert [page["width"] for page in seen.pages] == [PHONE, DESK]
    for page in seen.pages:
        assert page["background"] == background
        assert page["beyond"] == 0
        assert page["requests"] == []
        assert all(page["charts"]["requests"][colour] for colour in ("ok", "cut"))
        # Both of its lines lie upon each other here; the upper one has this colour.
        assert page["charts"]["latency"]["refused"]
        bands = page["charts"]["pods"]
        assert not {state: bands[state] for state in _BANDS if bands[state] < 20}


def test_marks_of_sigterm_and_exit_are_drawn(page: str, tmp_path: Path) -> None:
    """The band has more ink with each of its marks than without."""
    pages = []
    for name, text in (
        ("both", page),
        ("signal", page.replace('"exits":[39', '"exits":[],"without":[39')),
        ("exit", page.replace('"signals":[29', '"signals":[],"without":[29')),
    ):
        assert name == "both" or text != page
        (tmp_path / name).with_suffix(".html").write_text(text, encoding="utf-8")
        pages.append(((tmp_path / name).with_suffix(".html"), DESK))
    seen = look(pages, _PROBE, folder=tmp_path)
    assert not seen.console
    both, signal, exit_ = (page["charts"]["pods"]["ink"] for page in seen.pages)
    assert both > signal > 0
    assert both > exit_ > 0


def test_faulty_pages_are_noticed(page: str, tmp_path: Path) -> None:
    """What these tests look for is seen where it is wrong: a script's error, no charts, a request, a page too wide."""
    faults = {
        "broken": page.replace('"use strict";', '"use strict"; throw new Error("broken on purpose");'),
        "asks": page.replace(_POLICY, "<meta").replace("<h1>", '<img src="http://127.0.0.1:9/asked"><h1>'),
        "refused": page.replace("<h1>", '<img src="http://127.0.0.1:9/refused"><h1>'),
        "wide": page.replace("<h1>", '<h1 style="width: 2000px">'),
    }
    for name, text in faults.items():
        assert text != page
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    seen = look([(tmp_path / f"{name}.html", PHONE) for name in faults], _PROBE, folder=tmp_path)
    broken, asks, refused, wide = seen.pages
    assert not any(broken["charts"].values())
    assert any("broken on purpose" in line for line in seen.console)
    assert asks["requests"] == ["http://127.0.0.1:9/asked"]
    assert any("refused" in line and "Content Security Policy" in line for line in seen.console)
    assert refused["charts"]["pods"]["ready"]
    assert wide["beyond"] > 0
