"""What the program leaves behind in a real terminal, whatever ends it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the full screen with a scripted agent and waits until it can be typed into."""
    with ExitStack() as running:

        def begin(*args: str, wait_for: str = "claude-test-5 ·", **changes: str) -> Terminal:
            argv = [sys.executable, "-m", "tests.ui.fake_program", *args]
            terminal = running.enter_context(Terminal.spawn(argv, home=tmp_path, env=changes, columns=100))
            terminal.wait_for(wait_for)
            return terminal

        yield begin


def test_exit_restores_the_terminal_and_names_the_session_to_resume(start: Start) -> None:
    terminal = start()
    terminal.type("hello\r")
    terminal.wait_for("You said: hello")
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()
    assert "pyagent --resume 5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11" in terminal.text


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_the_program_with_its_code_and_a_clean_terminal(
    start: Start, number: signal.Signals, exit_code: int
) -> None:
    terminal = start()
    terminal.type("hang\r")
    terminal.wait_for("working on it")
    terminal.signal(number)
    assert terminal.wait_for_exit() == exit_code
    terminal.assert_restored()


def test_an_agent_that_never_ends_is_left_behind_by_the_watchdog(start: Start) -> None:
    terminal = start(STUCK="1")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_for_exit() == 143
    terminal.assert_restored()


def test_stray_output_and_a_crash_go_to_the_log_and_not_to_the_screen(start: Start, tmp_path: Path) -> None:
    terminal = start()
    terminal.type("/status\r")
    assert terminal.wait_for_exit() == 1
    terminal.assert_restored()
    assert "Traceback" not in terminal.text
    assert "pyagent.log" in terminal.text
    log = (tmp_path / ".pyagent" / "logs" / "pyagent.log").read_text()
    assert "stray library output" in log
    assert "a mistake in a handler" in log


def test_ctrl_z_suspends_and_the_screen_comes_back(start: Start) -> None:
    terminal = start()
    terminal.type("draft")
    terminal.wait_for("draft")
    terminal.type("\x1a")
    terminal.wait_until(lambda terminal: not terminal.modes.is_alternate_screen)
    terminal.wait_until_stopped()
    terminal.signal(signal.SIGCONT)
    terminal.type(" goes on")
    terminal.wait_for("draft goes on")


def test_a_dumb_terminal_gets_plain_lines(start: Start) -> None:
    terminal = start(wait_for="\n>", TERM="dumb")
    terminal.type("hello\r")
    terminal.wait_for("pyagent: You said: hello")
    assert b"\x1b[?1049h" not in terminal.output
    assert "you: hello" not in terminal.text
    terminal.type("/exit\r")
    assert terminal.wait_for_exit() == 0
