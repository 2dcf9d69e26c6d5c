"""The live view of a run in a terminal: counts by outcome, pods with what is open on them, and the clock."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from inferctl.report.findings import CUT, KEPT, REFUSED, UNFINISHED, find
from inferctl.report.state import OK

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from inferctl.report.recorder import Recorder
    from inferctl.report.state import State

_REFRESH_SECONDS = 0.5
_NOTES = 4
_STYLES = {"Ready": "green", "Terminating": "yellow", "Unready": "red", "Running": "cyan", "Gone": "dim"}
_SHOWN = ("requests", "in flight", OK, CUT, REFUSED, "refused, kept", UNFINISHED)


def show(recorder: Recorder, console: Console) -> Callable[[], None]:
    """Show a run until the returned function is called; nothing is shown where there is no terminal."""
    if not console.is_terminal:
        return lambda: None
    began = time.monotonic()
    live = Live(console=console, auto_refresh=False, transient=True)
    over = threading.Event()

    def draw() -> None:
        while not over.wait(_REFRESH_SECONDS):
            live.update(recorder.look(lambda state: view(state, time.monotonic() - began, recorder.left)), refresh=True)

    live.start()
    thread = threading.Thread(target=draw, daemon=True)
    thread.start()

    def stop() -> None:
        over.set()
        thread.join()
        live.stop()

    return stop


def view(state: State, elapsed: float, left: float | None = None) -> Group:
    """The state of a run as it is drawn.

    Args:
        state: the run so far.
        elapsed: seconds since it began.
        left: seconds that its present step may still take; None if that is not known.
    """
    run = state.facts.get("run", {})
    more = "" if left is None else f", this step at most {left:.0f} s more"
    title = Text(f"{run.get('scenario', 'run')}  {phase(state)}  {elapsed:.0f} s{more}", style="bold")
    return Group(title, _counts(state), _pods(state), *_notes(state))


def phase(state: State) -> str:
    """Where a run is."""
    for kind, text in (("verdict", "judged"), ("settled", "ending load"), ("disrupt", "disrupted")):
        if kind in state.facts:
            return text
    return "load runs" if state.requests else "arranging"


def _counts(state: State) -> Table:
    found = find(state)
    table = Table(*_SHOWN, box=None, padding=(0, 2, 0, 0))
    lost = [found.count(kind) for kind in (CUT, REFUSED, KEPT, UNFINISHED)]
    styles = ["red" if count and at != 2 else "" for at, count in enumerate(lost)]  # noqa: PLR2004 - KEPT is no loss
    cells = [Text(str(count), style=style) for count, style in zip(lost, styles, strict=True)]
    table.add_row(str(found.total), str(state.open), str(found.ok), *cells)
    return table


def _pods(state: State) -> Table:
    table = Table("pod", "node", "state", "streams", "in the Service", box=None, padding=(0, 2, 0, 0))
    for pod in state.pods.values():
        if pod.gone is None or state.begun[pod.name]:
            shown = f"{pod.state} {pod.reason}".strip() + (", SIGTERM" if pod.sigterm else "")
            style = _STYLES.get(pod.state, "")
            serves = "yes" if pod.name in state.ready else ""
            table.add_row(pod.name, pod.node, Text(shown, style=style), str(len(state.begun[pod.name])), serves)
    return table


def _notes(state: State) -> list[Text]:
    said = [note for note in state.notes if note["kind"] in {"action", "disrupt", "event"}]
    return [Text(_line(note), style="dim", overflow="ellipsis", no_wrap=True) for note in said[-_NOTES:]]


def _line(note: dict[str, object]) -> str:
    if note["kind"] == "event":
        return f"{note['reason']} {note['object']}: {note['message']}"
    return str(note.get("text", ""))
