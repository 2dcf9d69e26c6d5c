"""One self-contained page per run, made from its timeline alone."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from datetime import UTC, datetime
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from markupsafe import Markup

from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, Findings, bound, fate, find
from inferctl.report.state import OK, State
from inferctl.report.timeline import read

if TYPE_CHECKING:
    from pathlib import Path

    from inferctl.report.state import Pod

_KEY = (
    ("pending", "Pending"), ("running", "loading"), ("ready", "Ready"), ("unready", "not Ready"),
    ("prestop", "told to stop, preStop"), ("drain", "after SIGTERM"),
)  # fmt: skip
_COLOURS = {"Pending": "pending", "Running": "running", "Ready": "ready", "Unready": "unready"}
_BEFORE_SECONDS = 5.0
#: An hour in seconds, and more points than a chart has pixels.
_MOST_BUCKETS = 3600


def write(timeline: Path, page: Path) -> None:
    """Write the report of a run.

    Args:
        timeline: the run's timeline.jsonl.
        page: the HTML file to write.

    Raises:
        UsageError: the timeline cannot be read.
    """
    state = State()
    for record in read(timeline):
        state.apply(record)
    page.write_text(render(state), encoding="utf-8")


def render(state: State) -> str:
    """The page as text."""
    found = find(state)
    run, verdict = state.facts.get("run", {}), state.facts.get("verdict", {})
    start, end = _span(state)
    template = Environment(autoescape=True).from_string(_asset("assets/report.html.j2"))
    return template.render(
        scenario=run.get("scenario", "run"),
        summary=run.get("text", ""),
        promise=run.get("promise", ""),
        outcome=verdict.get("outcome", "not measured"),
        reason=verdict.get("reason", "the run was not finished"),
        numbers=_numbers(found),
        key=_KEY,
        exits=any(pod.exits for pod in state.pods.values()),
        notes=_notes(state, start),
        lost=_lost_rows(found, start),
        environment=_environment(state, start),
        bucket=_bucket_seconds(start, end),
        data=_json(_data(state, found, start, end)),
        css=_style(_asset("assets/report.css")),
        js=_script(_asset("assets/report.js")),
        uplot_css=_style(_asset("vendor/uPlot.min.css")),
        uplot_js=_script(_asset("vendor/uPlot.iife.min.js")),
    )


def _asset(name: str) -> str:
    return files("inferctl.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: object) -> Markup:
    """JSON for a script element: without a ``<``, nothing in it can close the element or keep it open."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - outside of strings, JSON has no such character


def _script(text: str) -> Markup:
    """A program for a script element, which nothing in it may close."""
    return Markup(text.replace("</", "<\\/"))  # noqa: S704 - our own assets


def _style(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - our own assets


def _span(state: State) -> tuple[float, float]:
    times = [at for request in state.requests.values() for at in (request.sent, request.end)]
    known = [t for t in times if t is not None] or [note["t"] for note in state.notes] or [0.0]
    return min(known), max(known) + 1


def _numbers(found: Findings) -> list[tuple[str, str]]:
    back = "at once" if found.restored_after is None else f"{found.restored_after:.1f} s"
    # Three over n bounds a rate of which nothing was seen, and no other.
    below = "none" if found.count(CUT) else bound(len(found.at_risk))
    return [
        ("requests", str(found.total)),
        ("ok", str(found.ok)),
        ("streams cut", str(found.count(CUT))),
        ("refused", str(found.count(REFUSED))),
        ("refused on a kept connection", str(found.count(KEPT))),
        ("unfinished", str(found.count(UNFINISHED))),
        ("streams at risk", str(len(found.at_risk))),
        ("bound on the cut rate of streams at risk", below),
        ("service restored", "not seen" if found.still_failing else back),
    ]


def _notes(state: State, start: float) -> list[tuple[str, str]]:
    """When and what; what the cluster repeats is told once, with how often it was said."""
    # That the run begins is no action, and its title is above.
    notes = [note for note in state.notes if note["kind"] != "run"]
    said = Counter(map(_note, notes))
    first: dict[str, float] = {}
    for note in notes:
        first.setdefault(_note(note), note["t"] - start)
    return [(f"{at:.1f}", f"{text} ({said[text]} times)" if said[text] > 1 else text) for text, at in first.items()]


def _note(note: dict[str, Any]) -> str:
    match note["kind"]:
        case "event":
            return f"{note['reason']} {note['object']}: {note['message']}"
        case "node":
            cordoned = ", cordoned" if note.get("cordoned") else ""
            return f"node {note['node']}: {note['state']}{cordoned}"
        case "verdict":
            return f"verdict: {note['outcome']}: {note['reason']}"
        case "disrupt":
            return f"disruption: {note['text']}"
        case _:
            return str(note.get("text", note["kind"]))


def _lost_rows(found: Findings, start: float) -> list[tuple[str, ...]]:
    rows = [(request, kind) for kind, requests in found.lost.items() for request in requests]
    rows.sort(key=lambda row: row[0].end or 0.0)
    return [
        (
            f"{(request.end or start) - start:.2f}", kind, request.outcome, request.pod, request.client,
            str(request.chunks), request.detail, _escaped(request.last_bytes),
        )
        for request, kind in rows
    ]  # fmt: skip


def _escaped(text: str) -> str:
    """Text with its line ends written out, as they are what an answer's framing consists of."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')


def _environment(state: State, start: float) -> list[tuple[str, str]]:
    known = [("began", datetime.fromtimestamp(start, UTC).isoformat(timespec="seconds"))]
    known += list(state.facts.get("run", {}).get("environment", {}).items())
    for name, record in sorted(state.clients.items()):
        late = state.summaries.get(name, {}).get("lag", {}).get("p99")
        lag = "" if late is None else f"; own lag {1000 * late:.1f} ms (p99)"
        known.append((f"load {name}", record["text"] + lag))
    return known


def _bucket_seconds(start: float, end: float) -> int:
    """The width of what the charts add up: a second, or as many as keep a page of a long run small."""
    return math.ceil(math.ceil(end - start) / _MOST_BUCKETS)


def _data(state: State, found: Findings, start: float, end: float) -> dict[str, Any]:
    width = _bucket_seconds(start, end)
    seconds = math.ceil(end - start)
    count = math.ceil(seconds / width)

    def bucket(at: float) -> int:
        return int(at - start) // width

    ended: dict[str, list[int]] = {kind: [0] * count for kind in (OK, UNFINISHED, CUT, REFUSED, KEPT)}
    # How many requests more, or less, are in flight at the bucket's end than at its beginning.
    change = [0] * count
    first_tokens: defaultdict[int, list[float]] = defaultdict(list)
    for request in state.requests.values():
        if request.end is None:
            continue
        last = bucket(request.end)
        ended[fate(request, found.retired)][last] += 1
        if request.sent is not None and request.sent <= request.end:
            change[bucket(request.sent)] += 1
            change[last] -= 1
        if request.outcome == OK and request.ttft is not None and request.first_token is not None:
            first_tokens[bucket(request.first_token)].append(request.ttft)
    buckets = range(count)
    x = [number * width for number in buckets]
    return {
        "from": -_BEFORE_SECONDS,
        "to": seconds,
        "marks": [{"t": note["t"] - start} for note in state.notes if note["kind"] in {"action", "disrupt", "settled"}],
        "width": width,
        "requests": [x, *ended.values(), list(accumulate(change))],
        "latency": [x, *([_quantile(first_tokens[number], q) for number in buckets] for q in (0.5, 0.99))],
        "pods": [_pod(pod, start, end) for pod in sorted(state.pods.values(), key=lambda pod: pod.states[0][0])],
    }


def _quantile(values: list[float], q: float) -> float | None:
    """In milliseconds; None of nothing."""
    if not values:
        return None
    return round(1000 * sorted(values)[min(len(values) - 1, int(q * len(values)))], 1)


def _pod(pod: Pod, start: float, end: float) -> dict[str, Any]:
    bands = []
    for (since, name), (until, _) in zip(pod.states, [*pod.states[1:], (end, "")], strict=True):
        if name == "Terminating":
            # Word of the signal may come before word that the pod was told to stop.
            split = until if pod.sigterm is None else min(max(pod.sigterm, since), until)
            bands += [[since - start, split - start, "prestop"], [split - start, until - start, "drain"]]
        elif name in _COLOURS:
            bands.append([since - start, until - start, _COLOURS[name]])
    signals = [pod.sigterm - start] if pod.sigterm else []
    exits = [at - start for at in pod.exits]
    return {"name": pod.name, "node": pod.node, "bands": bands, "signals": signals, "exits": exits}
