"""Plain mode, the screen reader's form of it, and the way from one front end to the other, on real terminals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal
from tests.fakes.messages_server import FakeMessagesServer, running_in_thread
from tests.fakes.script import Script, reply, stall

PYAGENT = [sys.executable, "-m", "pyagent"]
OFFLINE = [*PYAGENT, "--model", "offline"]
SCREEN = "Ask, or / for commands"


def is_ready(screen: str) -> bool:
    """Whether plain mode waits for a line."""
    return screen.rstrip().endswith(">")


def enter(terminal: Terminal, line: str) -> None:
    """Type a line, see it stand there, and send it: all at once would count as a paste."""
    terminal.type(line)
    terminal.wait_for(line)
    terminal.press("enter")


def write_settings(home: Path, **settings: object) -> None:
    (home / ".pyagent").mkdir(exist_ok=True)
    (home / ".pyagent" / "settings.json").write_text(json.dumps(settings))


def test_a_session_goes_on_in_plain_mode_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("SIDES = 4\n")
    with Terminal.spawn(OFFLINE, home=tmp_path, columns=100, lines=30) as terminal:
        terminal.wait_for(SCREEN)
        enter(terminal, "list the files")
        terminal.wait_for(lambda screen: "shapes.py" in screen and "esc to interrupt" not in screen)
        terminal.press("shift+tab")
        terminal.wait_for("acceptEdits")
        terminal.type("a draft")
        terminal.wait_for("a draft")
        terminal.press("ctrl+s")
        terminal.wait_for(lambda screen: "a draft" not in screen)
        enter(terminal, "/tui plain")
        terminal.wait_for("acceptEdits > a draft")
        assert not terminal.modes.is_alternate_screen
        assert "you: list the files" in terminal.text
        assert "pyagent 0.1.0 · offline" in terminal.text
        terminal.press("ctrl+c")
        terminal.wait_for(lambda screen: screen.rstrip().endswith("acceptEdits >"))
        enter(terminal, "/tui")
        terminal.wait_for(lambda screen: SCREEN in screen and "list the files" in screen and "acceptEdits" in screen)
        enter(terminal, "/exit")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()
    sessions = list((tmp_path / ".pyagent" / "projects").rglob("*.jsonl"))
    assert len(sessions) == 1


def test_the_settings_choose_the_front_end_and_a_flag_overrules_them(tmp_path: Path) -> None:
    write_settings(tmp_path, tui="plain", editorMode="vim")
    with Terminal.spawn(OFFLINE, home=tmp_path) as terminal:
        terminal.wait_for(is_ready)
        terminal.type("hello")
        terminal.press("esc")
        terminal.type("x")
        terminal.wait_for(lambda screen: screen.rstrip().endswith("> hell"))
    with Terminal.spawn([*OFFLINE, "--tui", "fullscreen"], home=tmp_path) as terminal:
        terminal.wait_for(SCREEN)


def test_the_first_line_of_screen_reader_mode_names_what_turned_it_on(tmp_path: Path) -> None:
    with Terminal.spawn([*OFFLINE, "--ax-screen-reader"], home=tmp_path) as terminal:
        terminal.wait_for("[Screen Reader Mode: on via flag]")
    with Terminal.spawn(OFFLINE, home=tmp_path, env={"CLAUDE_AX_SCREEN_READER": "1"}) as terminal:
        terminal.wait_for("[Screen Reader Mode: on via env]")
    write_settings(tmp_path, axScreenReader=True)
    with Terminal.spawn(OFFLINE, home=tmp_path) as terminal:
        terminal.wait_for(is_ready)
        assert terminal.text.startswith("[Screen Reader Mode: on via settings]\n")


def test_a_screen_reader_hears_of_deleted_words_modes_questions_and_the_end_of_an_answer(tmp_path: Path) -> None:
    write_settings(tmp_path, axTellCost=True)
    with Terminal.spawn([*OFFLINE, "--ax-screen-reader"], home=tmp_path, columns=100, lines=40) as terminal:
        terminal.wait_for(is_ready)
        terminal.type("some words")
        terminal.wait_for("some words")
        terminal.press("ctrl+w")
        terminal.wait_for("deleted: words")
        terminal.press("shift+tab")
        terminal.wait_for("mode: acceptEdits")
        terminal.wait_for(lambda screen: screen.rstrip().endswith("acceptEdits > some"))
        terminal.press("ctrl+c")
        terminal.wait_for("line emptied")
        enter(terminal, "run sh -c true")
        terminal.wait_for("Permission Required: Bash")
        terminal.wait_for("Enter selection:")
        assert "1. Yes, once" in terminal.text
        terminal.type("y")
        terminal.press("enter")
        terminal.wait_until(lambda terminal: b"\x1b]133;D;0" in terminal.output)
        assert "Cost: $" in terminal.text
        assert "\x1b[?1049h" not in terminal.output.decode("utf-8", "replace")
        assert b"\x1b]133;A" in terminal.output


@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_what_is_typed_while_the_agent_works_is_queued(tmp_path: Path, term: str) -> None:
    script = Script([stall(reply("First.")), "Second."])
    with running_in_thread(FakeMessagesServer(script)) as server:
        environ = {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": server.url, "TERM": term}
        with Terminal.spawn([*PYAGENT, "--plain"], home=tmp_path, env=environ) as terminal:
            terminal.wait_for(is_ready)
            enter(terminal, "one")
            server.wait_until_from_thread(lambda: server.stalled_count == 1)
            terminal.send("two\n")
            terminal.wait_for("queued: two")
            server.release()
            terminal.wait_for("pyagent: Second.")
            terminal.send("/exit\r")
            assert terminal.wait_for_exit() == 0
    server.assert_finished()


def test_ctrl_c_stops_the_turn_and_twice_leaves(tmp_path: Path) -> None:
    with running_in_thread(FakeMessagesServer(Script([stall(reply("Never"))]))) as server:
        environ = {"ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": server.url}
        with Terminal.spawn([*PYAGENT, "--plain"], home=tmp_path, env=environ) as terminal:
            terminal.wait_for(is_ready)
            enter(terminal, "one")
            server.wait_until_from_thread(lambda: server.stalled_count == 1)
            terminal.press("ctrl+c")
            terminal.wait_for("Stopping.")
            terminal.wait_for(lambda screen: screen.rstrip().endswith("> one"))
            terminal.press("ctrl+u")
            terminal.wait_for(is_ready)
            terminal.press("ctrl+c")
            terminal.wait_for("Ctrl+C again to leave.")
            terminal.press("ctrl+c")
            assert terminal.wait_for_exit() == 0
            terminal.assert_restored()


@pytest.mark.parametrize("sign", ["👩‍👩‍👧", "🇩🇪", "e\u0301"], ids=ascii)
def test_plain_modes_keys_take_what_is_seen_as_one_character(tmp_path: Path, sign: str) -> None:
    with Terminal.spawn([*OFFLINE, "--plain"], home=tmp_path) as terminal:
        terminal.wait_for(is_ready)
        terminal.send(f"a{sign}")
        terminal.press("left")
        terminal.type("b")
        terminal.press("right", "backspace")
        terminal.type("c")
        terminal.wait_for(lambda screen: screen.rstrip().endswith("> abc"))
        terminal.press("left", "backspace")
        terminal.wait_for(lambda screen: screen.rstrip().endswith("> ac"))
