"""`pyagent doctor` and `/doctor`: what was found, one line each; and what only the screen's side knows to look at."""

from __future__ import annotations

import locale
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pyagent import __version__
from pyagent.findings import Finding, Verdict
from pyagent.launch import LaunchOptions
from pyagent.ui import flag_values

SMALLEST_COLUMNS, SMALLEST_ROWS = 60, 15
"""Below this the screen still works, but parts of it are cut."""

PROBES = (("漢字", 4, "wide characters"), ("👩‍👩‍👧", 2, "joined emoji"), ("e\u0301", 1, "combining marks"))
"""Texts, the cells they should take, and what they stand for."""
PROBE_WAIT_S = 0.5
_POSITION = re.compile(rb"\x1b\[(\d+);(\d+)R")

_SIGNS: Mapping[Verdict, str] = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "info": "–   "}


def run_doctor(options: LaunchOptions) -> int:
    """Print what is found; 1 if anything fails."""
    found = [*terminal_findings(options.environ, has_terminal=_has_terminal()), *all_findings(options)]
    found = [*found[:1], *_measured_widths(), *found[1:]] if _has_terminal() else found
    for line in lines_of(found):
        print(line)
    return 1 if any(finding.verdict == "fail" for finding in found) else 0


def options_of(environ: Mapping[str, str]) -> LaunchOptions:
    """The options of a run without flags in the current folder.

    Raises:
        UsageError: the folder is gone.
    """
    home = Path(environ.get("PYAGENT_HOME") or "~/.pyagent").expanduser().absolute()
    return LaunchOptions(cwd=flag_values.current_folder(), home=home, environ=dict(environ))


def all_findings(options: LaunchOptions) -> Iterator[Finding]:
    """What is found besides the terminal. Waits for the disk and for other programs."""
    from pyagent.agent.doctor import findings

    yield from findings(options)
    yield from _keys(options)


def lines_of(found: Iterable[Finding]) -> list[str]:
    """The findings as text, and how it stands in all."""
    found = list(found)
    lines = [f"pyagent {__version__}"]
    for finding in found:
        lines.append(f"{_SIGNS[finding.verdict]}  {finding.subject}: {' '.join(finding.text.split())}")
        if finding.fix:
            lines.append(f"      → {' '.join(finding.fix.split())}")
    failed = sum(finding.verdict == "fail" for finding in found)
    warned = sum(finding.verdict == "warn" for finding in found)
    if failed:
        lines.append(f"{failed} of {len(found)} checks failed.")
    else:
        lines.append("Nothing is broken." + (f" {warned} worth a look." if warned else ""))
    return lines


def _has_terminal() -> bool:
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def terminal_findings(environ: Mapping[str, str], *, has_terminal: bool) -> Iterator[Finding]:
    """What the environment says of the terminal."""
    term = environ.get("TERM", "")
    if not has_terminal:
        yield Finding("info", "terminal", "none: the output goes elsewhere")
        return
    if term in ("", "dumb", "unknown"):
        yield Finding(
            "warn", "terminal", f"TERM is {term or 'not set'}", "Only the line mode works; set TERM for the screen."
        )
    else:
        size = shutil.get_terminal_size()
        colours = "no colours (NO_COLOR)" if "NO_COLOR" in environ else _colours(environ)
        program = environ.get("TERM_PROGRAM", "")
        words = f"{term}{f' in {program}' if program else ''}, {colours}, {size.columns}×{size.lines}"
        is_small = size.columns < SMALLEST_COLUMNS or size.lines < SMALLEST_ROWS
        fix = f"Give it {SMALLEST_COLUMNS}×{SMALLEST_ROWS} or more." if is_small else ""
        yield Finding("warn" if is_small else "ok", "terminal", words, fix)
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") != "utf8":
        yield Finding(
            "warn", "text", f"the locale's encoding is {encoding}", "Set LANG to one in UTF-8, such as C.UTF-8."
        )
    if environ.get("TMUX"):
        yield from _tmux()
    elif environ.get("STY"):
        yield Finding("info", "clipboard", "GNU screen passes no copied text on", "Copy with Shift and the mouse.")


def _colours(environ: Mapping[str, str]) -> str:
    if environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "16 million colours"
    return "256 colours" if "256color" in environ.get("TERM", "") else "few colours"


def _tmux() -> Iterator[Finding]:
    """Whether what is copied reaches the clipboard through tmux (OSC 52)."""
    try:
        done = subprocess.run(
            ["tmux", "show", "-gv", "set-clipboard"], capture_output=True, timeout=2.0, text=True, check=False
        )
        value = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        value = ""
    if value == "on":
        yield Finding("ok", "clipboard", "tmux passes copied text on")
    else:
        fix = "Put `set -g set-clipboard on` into ~/.tmux.conf."
        yield Finding(
            "warn", "clipboard", f"tmux keeps copied text to itself (set-clipboard {value or 'unknown'})", fix
        )


def _keys(options: LaunchOptions) -> Sequence[Finding]:
    from pyagent.ui.keybindings_file import load_keys

    problems = load_keys(options.home, options.environ).problems
    return [Finding("warn", "keys", problem, "See /keybindings.") for problem in problems] or [
        Finding("ok", "keys", "as they were set")
    ]


# ── asking the terminal ──


def _measured_widths() -> Iterator[Finding]:
    """Whether the terminal gives characters the cells that the screen counts on: written, measured, wiped out."""
    wrong = []
    for text, cells, words in PROBES:
        measured = _measured_cells(text)
        if measured is None:
            yield Finding("info", "width", "the terminal does not say where its cursor is, so it was not measured")
            return
        if measured != cells:
            wrong.append(f"{words} take {measured} cells instead of {cells}")
    if wrong:
        yield Finding(
            "warn", "width", "; ".join(wrong), "Columns stay where they are put, but such text may look torn."
        )
    else:
        yield Finding("ok", "width", "wide characters, emoji and combining marks are as wide as expected")


def _measured_cells(text: str) -> int | None:
    """Cells the terminal moves its cursor by for a text; None if it does not answer."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSANOW)
        os.write(sys.stdout.fileno(), b"\r" + text.encode() + b"\x1b[6n\r\x1b[K")
        answer, ends_at_s = b"", time.monotonic() + PROBE_WAIT_S
        while (left_s := ends_at_s - time.monotonic()) > 0:
            if select.select([fd], [], [], left_s)[0]:
                answer += os.read(fd, 100)
            if match := _POSITION.search(answer):
                return int(match[2]) - 1
        return None
    except (OSError, termios.error):
        return None
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


def with_terminal(found: Sequence[Finding], environ: Mapping[str, str]) -> list[Finding]:
    """The findings behind those about the terminal, for a front end that has one."""
    return [*terminal_findings(environ, has_terminal=True), *found]
