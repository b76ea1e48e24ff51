"""The prompt that stands before Textual is loaded: nothing typed is lost, nothing flickers, the terminal is safe."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.emulator import Emulator
from tests.e2e.pty_harness import Terminal

PYAGENT = [sys.executable, "-P", "-m", "pyagent", "--model", "offline"]
NEVER_LOADED = """
import importlib.abc, sys

class Gate(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "textual":
            {deed}

sys.meta_path.insert(0, Gate())
sys.argv[1:] = ["--model", "offline"]
from pyagent.__main__ import main
sys.exit(main())
"""
"""pyagent that gets no further than to the import of Textual: only the instant prompt is ever on the screen."""

DRIVER_STARTS = b"\x1b[>25u"
"""Written by Textual's driver, and by nothing before it."""

PLACEHOLDER = "Ask, or / for commands"


def stuck(tmp_path: Path) -> Terminal:
    """The instant prompt, for ever."""
    script = NEVER_LOADED.format(deed="import signal\n            while True: signal.pause()")
    return Terminal.spawn([sys.executable, "-P", "-c", script], home=tmp_path)


def held(tmp_path: Path, columns: int, lines: int) -> Terminal:
    """The instant prompt until something is written to the pipe "gate", and then Textual."""
    os.mkfifo(tmp_path / "gate")
    script = NEVER_LOADED.format(deed='sys.meta_path.remove(self); open("gate").read()')
    return Terminal.spawn([sys.executable, "-P", "-c", script], home=tmp_path, columns=columns, lines=lines)


def is_idle(screen: str) -> bool:
    return "to compact" in screen and "esc to interrupt" not in screen


def box(screen: str) -> list[str]:
    """The text in the prompt, a row each."""
    return re.findall(r"^│ (.*?) *│$", screen, re.MULTILINE)


def cells(emulator: Emulator) -> list[list[object]]:
    """Everything that can be seen; the colour of a sign that is not there cannot."""
    screen = emulator.screen
    seen = [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]
    return [[(cell.data, cell.bg) if cell.data == " " else cell for cell in row] for row in seen]


def first_frames(terminal: Terminal, columns: int, lines: int) -> tuple[Emulator, Emulator]:
    """The screen just before Textual's driver starts, and after Textual's first frame."""
    last_row = f"\x1b[{lines};1H".encode()
    terminal.wait_until(
        lambda t: (
            re.search(re.escape(DRIVER_STARTS) + b".*" + re.escape(last_row) + b"[^H]*H", t.output, re.S) is not None
        )
    )
    output = terminal.output
    start = output.index(DRIVER_STARTS)
    end = output.index(b"H", output.index(last_row, start) + len(last_row))
    before, after = Emulator(columns, lines), Emulator(columns, lines)
    before.feed(output[:start])
    after.feed(output[:end])
    return before, after


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"COLORTERM": ""},
        {"COLORTERM": "", "TERM": "xterm"},
        {"NO_COLOR": "1"},
        {"COLORFGBG": "0;15"},
        {"COLORFGBG": "0;15", "COLORTERM": "", "NO_COLOR": "1"},
    ],
    ids=["truecolor", "256", "16", "no-color", "light", "light-no-color"],
)
def test_textual_paints_the_same_first_frame(tmp_path: Path, environment: dict[str, str]) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path, env=environment) as terminal:
        before, after = first_frames(terminal, 80, 24)
    assert cells(before) == cells(after)
    assert PLACEHOLDER in "\n".join(before.lines)


@pytest.mark.parametrize("theme", ["light", "dark-daltonized", "light-daltonized"])
def test_the_first_frame_has_the_colours_of_the_settings(tmp_path: Path, theme: str) -> None:
    (tmp_path / ".pyagent").mkdir()
    (tmp_path / ".pyagent" / "settings.json").write_text(f'{{"theme": "{theme}"}}')
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        before, after = first_frames(terminal, 80, 24)
    assert cells(before) == cells(after)


@pytest.mark.parametrize("content", ['{"theme": "ansi"}', '{"theme": '])
def test_settings_it_cannot_follow_only_mean_a_start_without_it(tmp_path: Path, content: str) -> None:
    (tmp_path / ".pyagent").mkdir()
    (tmp_path / ".pyagent" / "settings.json").write_text(content)
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for("starting")
        assert terminal.output.index(DRIVER_STARTS) < terminal.output.index(b"starting")


@pytest.mark.parametrize(("columns", "lines"), [(56, 10), (61, 19), (60, 24), (200, 50)])
@pytest.mark.parametrize("typed", ["abc", "word " * 24 + "end", "日本語" * 25 + " ok", "a\nb\nc", "sent ahead\r"])
def test_what_was_typed_stands_in_the_same_cells(tmp_path: Path, columns: int, lines: int, typed: str) -> None:
    with held(tmp_path, columns, lines) as terminal:
        terminal.wait_for("starting")
        terminal.send(typed)
        end = typed.split()[-1][-3:]
        terminal.wait_for("queued" if typed.endswith("\r") else lambda screen: "".join(box(screen)).endswith(end))
        (tmp_path / "gate").write_text("")
        before, after = first_frames(terminal, columns, lines)
    shown = "\n".join(before.lines)
    assert typed.split()[0][:10] in shown
    assert ("queued" in shown) == typed.endswith("\r")
    assert cells(before) == cells(after)


def test_nothing_flickers_between_the_first_sign_and_the_open_session(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for("starting")
        terminal.send("hello")
        terminal.wait_for("│ hello")
        begin = len(terminal.output)
        terminal.wait_for(is_idle)
        output = terminal.output
    assert output.count(b"\x1b[?1049h") == 1
    assert b"\x1b[2J" not in output
    assert b"\x1b[J" not in output
    emulator = Emulator(80, 24)
    emulator.feed(output[:begin])
    for piece in re.findall(rb".{1,40}", output[begin:], re.S):
        emulator.feed(piece)
        assert [line[:7] for line in emulator.lines[20:23]] == ["╭──────", "│ hello", "╰──────"]
        assert "pyagent" in emulator.lines[0]
        assert emulator.lines[23].startswith(" offline")


def test_typing_while_the_session_opens_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    choice = random.Random(7)
    text = "Naïve 日本語 words, and é more; " * 6
    with Terminal.spawn(PYAGENT, home=tmp_path, columns=120) as terminal:
        left, shown = text, 0
        while left:
            size = choice.randint(1, 3)  # characters: in a terminal no answer to a query stands inside one
            terminal.send(left[:size])
            left = left[size:]
            # Each slice waits for more of the output, so that the slices spread over the whole start.
            if not is_idle(terminal.text) and choice.random() < 0.4:
                shown = len(terminal.output)
                terminal.wait_until(lambda t, seen=shown: len(t.output) > seen or is_idle(t.text))  # type: ignore[misc]
        terminal.wait_for(lambda screen: is_idle(screen) and "".join(box(screen)).count(";") == 6)
        assert "".join(" ".join(box(terminal.text)).split()) == "".join(text.split())


@pytest.mark.parametrize("seed", range(4))
def test_bytes_cut_anywhere_right_after_the_start_arrive_in_order(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)
    data = "ab é日\x7fx \x1b[200~pasted 語\x1b[201~ y\x1b[D\x1b[D<\x1b[C>\x1b[?1;2c!".encode()
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        if seed % 2:
            terminal.wait_until(lambda t: t.modes.has_bracketed_paste)
        while data:
            size = choice.randint(1, 5)
            terminal.send(data[:size])
            data = data[size:]
        terminal.wait_for(lambda screen: is_idle(screen) and "!" in "".join(box(screen)))
        if seed % 2:
            assert box(terminal.text) == ["ab éx pasted 語< >!y"]


def test_prompts_sent_ahead_are_answered_in_their_order_and_the_rest_stays_as_the_draft(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path, lines=60) as terminal:
        terminal.wait_for(PLACEHOLDER)
        for text in ("first", "second"):
            terminal.send(text)
            terminal.wait_for(f"│ {text}")
            terminal.send("\r")
            terminal.wait_for(lambda screen, sent=text: f"│ {sent}" not in screen)  # type: ignore[misc]
        terminal.send("third")
        terminal.wait_for(lambda screen: box(screen) == ["third"])
        screen = terminal.wait_for(
            lambda screen: is_idle(screen) and screen.count("offline model") >= 2 and "queued" not in screen
        )
        assert screen.index("▌ first") < screen.index("▌ second")
        assert screen.count("▌ ") == 2
        assert box(screen) == ["third"]


def test_a_command_typed_ahead_is_run(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.send("/help")
        terminal.wait_for("/help")
        terminal.send("\r")
        terminal.wait_for("Keys")


def test_an_enter_typed_ahead_does_not_choose_a_session(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.send("what can you do?")
        terminal.wait_for("│ what can")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "▌ what can" in screen and is_idle(screen))
        terminal.press("ctrl+d", "ctrl+d")
        terminal.wait_for_exit()
    with Terminal.spawn([*PYAGENT, "--resume"], home=tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.send("draft")
        terminal.wait_for("│ draft")
        terminal.send("\r")
        terminal.wait_for("Resume")
        assert "▌ what can" not in terminal.text
        terminal.press("esc")
        terminal.wait_for(lambda screen: is_idle(screen) and box(screen) == ["draft"])


@pytest.mark.parametrize(("key", "exit_code"), [("ctrl+c", 130), ("ctrl+d", 0)])
def test_ctrl_c_and_ctrl_d_leave_at_once(tmp_path: Path, key: str, exit_code: int) -> None:
    with stuck(tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.press(key)
        assert terminal.wait_for_exit() == exit_code
        terminal.assert_restored()
        assert PLACEHOLDER not in terminal.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path, number: signal.Signals) -> None:
    with stuck(tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.signal(number)
        assert terminal.wait_for_exit() == 128 + number
        terminal.assert_restored()


def test_the_terminal_is_given_back_while_suspended_and_the_draft_is_there_afterwards(tmp_path: Path) -> None:
    with stuck(tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.type("draft")
        terminal.wait_for("│ draft")
        terminal.press("ctrl+z")
        terminal.wait_until_stopped()
        terminal.wait_until(lambda t: not t.modes.is_alternate_screen)
        terminal.assert_restored()
        terminal.signal(signal.SIGCONT)
        terminal.wait_until(lambda t: t.modes.is_alternate_screen)
        terminal.type("s")
        terminal.wait_for("│ drafts")


def test_a_new_size_is_taken_up(tmp_path: Path) -> None:
    with stuck(tmp_path) as terminal:
        terminal.wait_for(PLACEHOLDER)
        terminal.type("draft")
        terminal.wait_for("│ draft")
        for columns, lines in ((100, 30), (20, 4), (1, 1), (70, 12)):
            terminal.resize(columns, lines)
        screen = terminal.wait_for(lambda screen: screen.splitlines()[11:12] == [" offline · ~"])
        assert screen.splitlines()[9] == f"│ draft{' ' * 62}│"


def test_a_failing_import_is_reported_on_a_restored_terminal(tmp_path: Path) -> None:
    script = NEVER_LOADED.format(deed='raise ImportError("textual is broken")')
    with Terminal.spawn([sys.executable, "-P", "-c", script], home=tmp_path) as terminal:
        assert terminal.wait_for_exit() != 0
        terminal.assert_restored()
        assert "textual is broken" in terminal.text
        assert b"\x1b[?1049h" in terminal.output


def test_flags_that_exclude_each_other_are_reported_on_a_restored_terminal(tmp_path: Path) -> None:
    with Terminal.spawn([*PYAGENT, "--continue", "--resume", "x"], home=tmp_path) as terminal:
        assert terminal.wait_for_exit() == 2
        terminal.assert_restored()
        assert "exclude each other" in terminal.text
        assert b"\x1b[?1049h" in terminal.output


@pytest.mark.parametrize("settings", ['{"tui": "plain"}', '{"axScreenReader": true}'])
def test_it_stays_away_where_the_settings_want_no_screen(tmp_path: Path, settings: str) -> None:
    project = tmp_path / "project"
    (project / ".pyagent").mkdir(parents=True)
    (project / ".pyagent" / "settings.json").write_text(settings)
    with Terminal.spawn(PYAGENT, home=tmp_path, cwd=project) as terminal:
        terminal.wait_for("offline")
        assert b"\x1b[?1049h" not in terminal.output


def test_settings_of_the_command_line_that_want_no_screen_get_the_terminal_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"tui": "plain"}')
    with Terminal.spawn([*PYAGENT, "--settings", "mine.json"], home=tmp_path) as terminal:
        terminal.wait_for(lambda screen: "offline" in screen and "starting" not in screen)
        assert not terminal.modes.is_alternate_screen


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path, env={"PYAGENT_INSTANT_PROMPT": "0"}) as terminal:
        terminal.send("hello\r")
        terminal.wait_for(lambda screen: "▌ hello" in screen and is_idle(screen))
        output = terminal.output
        assert output.index(b"\x1b[?1049h") < output.index(DRIVER_STARTS) < output.index(b"starting")
        terminal.press("ctrl+d", "ctrl+d")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()


def test_the_terminal_is_restored_at_the_end_of_a_session_and_while_it_is_suspended(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.press("ctrl+z")
        terminal.wait_until_stopped()
        terminal.wait_until(lambda t: not t.modes.is_alternate_screen)
        terminal.assert_restored()
        terminal.signal(signal.SIGCONT)
        terminal.wait_until(lambda t: t.modes.is_alternate_screen)
        terminal.wait_for(is_idle)
        terminal.press("ctrl+d", "ctrl+d")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()
