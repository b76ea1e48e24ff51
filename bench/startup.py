"""How long until pyagent's prompt is painted, beside a bare Textual app of the same widgets, in a real pseudo-terminal.

    python -m bench.startup [runs]

The ratio is the firm figure: both start on the same loaded or idle machine, one after the other. It must stay at or
below 1.3; nothing heavy may be imported before the first paint.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

MAX_RATIO = 1.3
ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 30.0
"""A start that takes longer has failed."""

MARKER = b"sk, or /"
"""Of the prompt's placeholder, behind the cursor's cell: painted means that this came out of the terminal."""

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
import sys
from pyagent.ui.cli import build_invocation, dispatch, parse_arguments
import os

class Silent:
    def __call__(self, options, sink): return self
    def send(self, command): pass
    def close(self, timeout_s): pass

sys.exit(dispatch(build_invocation(parse_arguments([]), os.environ), Silent()))
"""


def painted_s(script: str, home: str) -> float:
    """Seconds from exec to the prompt on the screen."""
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
    seen = b""
    try:
        while MARKER not in seen:
            left_s = started_s + LIMIT_S - time.perf_counter()
            if left_s <= 0 or not select.select([terminal], [], [], left_s)[0]:
                raise TimeoutError(f"nothing painted; the terminal got {seen[-500:]!r}")
            seen += os.read(terminal, 65_536)
        return time.perf_counter() - started_s
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def main() -> int:
    run_count = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    bare: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        for script in (BARE, PYAGENT):
            painted_s(script, home)  # fills the bytecode cache
        for _ in range(run_count):
            bare.append(painted_s(BARE, home))
            ours.append(painted_s(PYAGENT, home))
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"bare Textual  median {statistics.median(bare) * 1_000:5.0f} ms   best {min(bare) * 1_000:5.0f} ms")
    print(f"pyagent       median {statistics.median(ours) * 1_000:5.0f} ms   best {min(ours) * 1_000:5.0f} ms")
    print(f"ratio {ratio:.2f} (limit {MAX_RATIO})")
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
