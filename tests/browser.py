"""A real browser, without a window: Chromium or Chrome, the one thing here that is no pinned tool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
MISSING = f"no browser on the PATH ({', '.join(NAMES)}); install one (Debian: apt-get install chromium)"
_SECONDS = 120
_CONSOLE = re.compile(r":CONSOLE[:(].*")
#: Frames have the width they are given; a window is never narrower than 500 pixels.
_FRAME = '<iframe src="{url}" style="border: 0; width: {width}px; height: 900px"></iframe>'
_LOOK = """<pre id="seen"></pre><script>
onload = () => {
  const probe = PROBE;
  const frames = [...document.querySelectorAll("iframe")];
  document.getElementById("seen").textContent = JSON.stringify(frames.map((frame) => probe(frame.contentWindow)));
};
</script>"""


@dataclass(frozen=True)
class Seen:
    """What a browser made of some pages.

    Attributes:
        pages: what the probe found in each.
        console: what was said on the console, errors of scripts and refused requests included.
    """

    pages: list[Any]
    console: list[str]


def find() -> str | None:
    """The path of a browser, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def look(pages: Sequence[tuple[Path, int]], probe: str, *, folder: Path, dark: bool = False) -> Seen:
    """Load pages, each in a frame of a width in pixels, and ask each what it has become.

    Args:
        pages: HTML files with the width that they are shown in.
        probe: a JavaScript function from a window to anything that JSON can hold; called when all pages have loaded.
        folder: where the browser's own files go.
        dark: whether the reader prefers a dark scheme.

    Raises:
        AssertionError: the browser gave no answer; with what it said.
    """
    outer = folder / "outer.html"
    frames = "".join(_FRAME.format(url=page.as_uri(), width=width) for page, width in pages)
    outer.write_text("<!doctype html>" + frames + _LOOK.replace("PROBE", probe), encoding="utf-8")
    done = run(
        "--dump-dom",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
        outer.as_uri(),
        folder=folder,
        dark=dark,
    )
    answer = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert answer is not None, done.stderr[-4000:]
    return Seen(json.loads(unescape(answer[1])), _CONSOLE.findall(done.stderr))


def run(*arguments: str, folder: Path, dark: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the browser to its end.

    Args:
        arguments: its flags, and a page.
        folder: where its profile goes, so that a person's own stays as it is.
        dark: whether the reader prefers a dark scheme.

    Raises:
        FileNotFoundError: there is no browser; the message says what to install.
    """
    browser = find()
    if browser is None:
        raise FileNotFoundError(MISSING)
    return subprocess.run(
        [
            browser, "--headless", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={folder / 'profile'}",
            # Its sandbox does not run as root; it only loads pages of ours, and none of any host.
            "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}", *arguments,
        ],
        capture_output=True, text=True, timeout=_SECONDS, check=True,
    )  # fmt: skip
