"""What people and terminals do to the running program: it takes all of it as text, and loses nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal

PYAGENT = [sys.executable, "-P", "-m", "pyagent", "--model", "offline"]


def is_idle(screen: str) -> bool:
    return "to compact" in screen and "esc to interrupt" not in screen


def test_what_is_typed_before_the_first_paint_is_sent(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.type("hello there")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "I work without a network" in screen and is_idle(screen))


def test_a_pasted_log_with_escape_sequences_waits_as_text(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.paste("\x1b[31mred\x1b[0m one\x1b]0;t\x07\x1b\nquit\x1b\n\x03")
        screen = terminal.wait_for("quit")
        assert "red one␛" in screen
        assert "▌ " not in screen, "nothing was sent"


@pytest.mark.parametrize("text", ["y" * 30_000, "a word and a line\r" * 2_000], ids=["one word", "lines"])
def test_a_long_paste_without_brackets_is_a_chip_at_once_and_sends_nothing(tmp_path: Path, text: str) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.send(text)
        screen = terminal.wait_for("[Pasted text #1")
        assert "▌ " not in screen
        terminal.press("backspace")
        terminal.wait_for("Ask, or /")


def test_a_long_paste_without_brackets_right_at_the_start_is_no_long_wait(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_until(lambda it: it.modes.has_bracketed_paste)
        terminal.send("word " * 6_000 + "end.")
        terminal.wait_for("[Pasted text #1")
        terminal.type(" more")
        terminal.wait_for("more")


def test_bytes_that_are_no_utf8_do_not_end_the_reading(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.send(b"a\xff\xfeb")
        terminal.wait_for("a��b")
        terminal.type("c")
        terminal.wait_for("bc")


def test_a_name_with_a_newline_takes_one_row_of_the_menu(tmp_path: Path) -> None:
    (tmp_path / "two\nlines.txt").write_text("x")
    (tmp_path / "zebra.txt").write_text("x")
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.type("@")
        screen = terminal.wait_for("zebra.txt")
        assert "two␊lines.txt" in screen


@pytest.mark.parametrize("sizes", [[(1, 1), (300, 2), (2, 90), (5, 1), (80, 24)]], ids=["storm"])
def test_resizing_while_an_answer_streams_is_survived(tmp_path: Path, sizes: list[tuple[int, int]]) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.type("what can you do?")
        terminal.press("enter")
        for columns, lines in sizes * 8:
            terminal.resize(columns, lines)
        terminal.wait_for(lambda screen: "offline model" in screen and is_idle(screen))
        terminal.type("/exit")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()


def test_a_terminal_that_stalls_and_is_then_closed_leaves_no_process_behind(tmp_path: Path) -> None:
    """The screen's loop is stuck in a write that never ends: only what works without the loop can end the program."""
    with Terminal.spawn(PYAGENT, home=tmp_path, columns=200, lines=60) as terminal:
        terminal.wait_for(is_idle)
        terminal.type("what can you do?")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "offline model" in screen and is_idle(screen))
        terminal.pause_reading()
        for _ in range(60):
            terminal.resize(190, 55)
            terminal.send(b"x" * 50)
            terminal.resize(200, 60)
            terminal.wait_for_unread_output()
        terminal.hang_up()
        assert terminal.wait_for_exit() == 129
