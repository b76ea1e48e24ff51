"""What a real terminal is told besides the screen: title, notifications, clipboard, links, marks."""

from __future__ import annotations

import base64
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pyagent.choices import TerminalSettings
from pyagent.ui.busy import SPINNER, BusyLine
from pyagent.ui.prompt import Prompt
from tests.e2e.pty_harness import Terminal
from tests.ui.fake_agent import opened
from tests.ui.test_app import session

Start = Callable[..., Terminal]
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
READY = "claude-test-5 ·"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the full screen with a scripted agent in a folder called `engine`."""
    folder = tmp_path / "engine"
    folder.mkdir()
    with ExitStack() as running:

        def begin(*args: str, wait_for: str = READY, settings: dict[str, object] | None = None, **env: str) -> Terminal:
            argv = [sys.executable, "-m", "tests.ui.fake_program", *args]
            env["TERMINAL_SETTINGS"] = json.dumps(settings or {})
            terminal = running.enter_context(Terminal.spawn(argv, home=tmp_path, cwd=folder, env=env, columns=100))
            terminal.wait_for(wait_for)
            return terminal

        yield begin


def test_the_title_follows_the_session_and_the_old_one_comes_back(start: Start) -> None:
    terminal = start()
    terminal.wait_until(lambda terminal: terminal.modes.title == "engine – pyagent")
    terminal.type("ask\r")
    terminal.wait_until(lambda terminal: terminal.modes.title == "? engine – pyagent")
    terminal.press("ctrl+z")
    terminal.wait_until_stopped()
    terminal.wait_until(lambda terminal: terminal.modes.title == "")
    terminal.signal(signal.SIGCONT)
    terminal.wait_until(lambda terminal: terminal.modes.title == "? engine – pyagent")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_for_exit() == 143
    assert terminal.modes.title == ""
    terminal.assert_restored()


def test_without_the_title_the_terminal_keeps_its_own(start: Start) -> None:
    terminal = start(settings={"has_title": False})
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    assert b"\x1b]0;" not in terminal.output


def test_a_question_calls_whoever_looks_elsewhere_and_nobody_else(start: Start) -> None:
    terminal = start(TERM_PROGRAM="iTerm.app")
    terminal.send(FOCUS_IN)
    terminal.type("ask\r")
    terminal.wait_for("make install")
    assert b"\x1b]9;" not in terminal.output
    terminal.press("esc")
    terminal.wait_for(lambda screen: "make install" not in screen)
    terminal.send(FOCUS_OUT)
    terminal.type("ask\r")
    terminal.wait_until(lambda terminal: b"\x1b]9;pyagent: Permission needed: Bash make install\a" in terminal.output)


def test_a_copy_reaches_the_terminal_s_clipboard(start: Start) -> None:
    terminal = start()
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.type("/copy\r")
    terminal.wait_for("Copied 15 characters.")
    assert b"\x1b]52;c;" + base64.b64encode(b"You said: hello") + b"\a" in terminal.output


def test_where_nothing_can_copy_that_is_said(start: Start) -> None:
    terminal = start(TERM="linux", PATH="/nonexistent")
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.type("/copy\r")
    terminal.wait_for("Nothing here can copy")
    assert b"\x1b]" not in terminal.output, "a console would print it"


def test_files_and_addresses_are_links_where_the_terminal_takes_them(start: Start, tmp_path: Path) -> None:
    (tmp_path / "engine" / "parse.py").touch()
    words = "see parse.py:3 and https://example.org/x"
    terminal = start()
    terminal.type(f"{words}\r")
    terminal.wait_for(f"You said: {words}")
    path = str(tmp_path / "engine" / "parse.py").encode()
    assert path + b"#3\x1b\\" in terminal.output
    assert b";https://example.org/x\x1b\\" in terminal.output
    without = start(FORCE_HYPERLINK="0")
    without.type(f"{words}\r")
    without.wait_for(f"You said: {words}")
    assert b"\x1b]8;" not in without.output


@pytest.mark.parametrize("flag", ["--plain", "--ax-screen-reader"])
def test_line_by_line_turns_are_marked_and_nothing_is_a_link(start: Start, flag: str) -> None:
    terminal = start(flag, wait_for="\n>")
    terminal.type("see https://example.org/x\r")
    terminal.wait_for("You said: see https://example.org/x")
    terminal.wait_until(lambda terminal: terminal.output.count(b"\x1b]133;A\x1b\\") == 2)
    marks = [part[:1] for part in terminal.output.split(b"\x1b]133;")[1:]]
    assert marks == [b"A", b"C", b"D", b"A"]
    assert b"\x1b]8;" not in terminal.output
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()


async def test_with_reduced_motion_nothing_turns_or_blinks(tmp_path: Path) -> None:
    first = [opened(terminal=TerminalSettings(is_motion_reduced=True))]
    async with session(tmp_path, first) as running:
        assert not running.app.query_one(Prompt).cursor_blink
        busy = running.app.query_one(BusyLine)
        busy.show("Answering", elapsed_s=0.0, streamed_tokens=0)
        still = busy.shown
        busy.show("Answering", elapsed_s=0.5, streamed_tokens=0)
        assert busy.shown == still
        assert not set(SPINNER) & set(still)
