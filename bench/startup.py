"""How long until something can be typed, and until all of pyagent is there, in a real pseudo-terminal.

    python -m bench.startup [runs]

Three moments after exec: the instant prompt is painted; a key typed right at exec is shown; Textual has painted its
own first frame. The last one is held against a bare Textual app of the same widgets, which starts on the same loaded or
idle machine, one after the other: this ratio is the firm figure. Nothing heavy may be imported before the first paint.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

MAX_RATIO = 1.3
MAX_FRAME_S = 0.06
MAX_ECHO_S = 0.1
"""From exec, on an idle machine: below this a program seems to be there at once."""

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 30.0
"""A start that takes longer has failed."""

OWN_SCREEN = b"\x1b[?1049h"
"""Nothing before it was drawn by the program: until then the terminal itself echoes keys."""
DRIVER = b"\x1b[>25u"
"""Textual's driver has taken the terminal."""
PLACEHOLDER = b"sk, or /"
"""Of the prompt's placeholder, behind the cursor's cell: painted means that this came out of the terminal."""
KEY = b"Z"

BARE = """
from textual.app import App
from textual.content import Content
from textual.widget import Widget
from textual.scroll_view import ScrollView
from textual.widgets import Input, TextArea
from textual.screen import ModalScreen

class Bare(App):
    ENABLE_COMMAND_PALETTE = False
    CSS = "ScrollView {height: 1fr} .row {height: 1} TextArea {height: 5}"
    def compose(self):
        yield ScrollView()
        yield Widget(classes="row")
        yield Widget(classes="row")
        yield Widget(classes="row")
        yield TextArea(placeholder=Content("Ask, or / for commands"))
        yield Widget(classes="row")
    def on_mount(self):
        self.query_one(TextArea).focus()
Bare().run()
"""

PYAGENT = """
import os, sys
from pyagent.ui.instant import open_instant
instant = open_instant([], os.environ)
from pyagent.ui.cli import build_invocation, dispatch, parse_arguments

class Silent:
    def __call__(self, options, sink): return self
    def send(self, command): pass
    def close(self, timeout_s): pass

sys.exit(dispatch(build_invocation(parse_arguments([]), os.environ), Silent(), instant))
"""


def seconds_until(marker: bytes, script: str, home: str, *, after: bytes = b"", typed: bytes = b"") -> float:
    """Seconds from exec until the terminal got the marker, behind another one if `after` says so."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT),
    }
    started_s = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.execve(sys.executable, [sys.executable, "-c", script], env)
    os.write(terminal, typed)
    seen = b""
    try:
        while marker not in seen.partition(after)[2] if after else marker not in seen:
            left_s = started_s + LIMIT_S - time.perf_counter()
            if left_s <= 0 or not select.select([terminal], [], [], left_s)[0]:
                raise TimeoutError(f"nothing painted; the terminal got {seen[-500:]!r}")
            seen += os.read(terminal, 65_536)
        return time.perf_counter() - started_s
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
        # The mark by which the next start would cure what the kill left of the terminal.
        shutil.rmtree(Path(home) / ".pyagent" / "terminals", ignore_errors=True)


def measured(run_count: int) -> dict[str, list[float]]:
    """Seconds of every run, for each moment; the kinds take turns, so that a busy spell hits all alike."""
    rows: dict[str, list[float]] = {"interpreter": [], "frame": [], "echo": [], "full": [], "bare": []}
    with tempfile.TemporaryDirectory() as home:
        for script in (BARE, PYAGENT):
            seconds_until(PLACEHOLDER, script, home, after=DRIVER)  # fills the bytecode cache
        for _ in range(run_count):
            rows["interpreter"].append(seconds_until(b"up", "print('up')", home))
            rows["frame"].append(seconds_until(PLACEHOLDER, PYAGENT, home))
            rows["echo"].append(seconds_until(KEY, PYAGENT, home, after=OWN_SCREEN, typed=KEY))
            rows["bare"].append(seconds_until(PLACEHOLDER, BARE, home, after=DRIVER))
            rows["full"].append(seconds_until(PLACEHOLDER, PYAGENT, home, after=DRIVER))
    return rows


def ratio_to_bare(rows: dict[str, list[float]]) -> float:
    return statistics.median(rows["full"]) / statistics.median(rows["bare"])


def main() -> int:
    rows = measured(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
    names = {
        "interpreter": "bare Python says a word",
        "frame": f"first frame (limit {MAX_FRAME_S * 1_000:.0f})",
        "echo": f"a key is shown (limit {MAX_ECHO_S * 1_000:.0f})",
        "full": "Textual's first frame",
        "bare": "bare Textual's",
    }
    for row, times in rows.items():
        print(f"{names[row]:28} median {statistics.median(times) * 1_000:5.0f} ms   best {min(times) * 1_000:5.0f} ms")
    ratio = ratio_to_bare(rows)
    print(f"ratio to bare Textual {ratio:.2f} (limit {MAX_RATIO})")
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
