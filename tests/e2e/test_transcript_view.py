"""Reading the transcript in a real terminal: keys, search, the terminal's own scrollback, an editor, no mouse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.pty_harness import Terminal
from tests.e2e.served import is_idle, pyagent_on, serving
from tests.fakes.script import Script, reply, thinking, tool_use

STEPS = [
    reply(thinking("Look first."), tool_use("Bash", {"command": "seq 1 60"})),
    reply("The **first** answer, needle one."),
    reply("The second answer.\n\n" + "\n\n".join(f"paragraph {n}" for n in range(40))),
    reply("The third answer, needle two."),
]
ALLOWED = ("--allowedTools", "Bash(seq:*)")


@contextmanager
def three_turns(home: Path, *arguments: str, **env: str) -> Iterator[Terminal]:
    with serving(Script(STEPS)) as server, pyagent_on(server, home, *ALLOWED, *arguments, env=env) as terminal:
        terminal.wait_for(is_idle)
        for prompt, answer in (("one", "needle one"), ("two", "paragraph 39"), ("three", "needle two")):
            terminal.paste(f"prompt {prompt}")
            terminal.wait_for(f"│ prompt {prompt}")
            terminal.press("enter")
            terminal.wait_for(answer)
            terminal.wait_for(is_idle)
        yield terminal


def first_row(screen: str) -> str:
    return screen.split("\n", 1)[0]


def test_everything_is_unfolded_and_prompts_are_jumped_between(tmp_path: Path) -> None:
    with three_turns(tmp_path) as terminal:
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("{")
        terminal.wait_for(lambda screen: first_row(screen) == "▌ prompt two")
        terminal.press("{")
        screen = terminal.wait_for(lambda screen: first_row(screen) == "▌ prompt one")
        assert "Look first." in screen
        assert "│ 20" in screen
        terminal.press("pagedown", "pagedown", "pagedown")
        terminal.wait_for("│ 60")
        terminal.press("}")
        terminal.wait_for(lambda screen: first_row(screen) == "▌ prompt two")
        terminal.send("\x1b[1;5H")
        terminal.wait_for(lambda screen: "pyagent" in first_row(screen))
        terminal.send("\x1b[1;5F")
        terminal.wait_for("needle two")
        terminal.press("q")
        terminal.wait_for("Ask, or /")
        terminal.type("typed")
        terminal.wait_for("│ typed")


def test_search_goes_on_with_n_and_back_with_capital_n(tmp_path: Path) -> None:
    with three_turns(tmp_path) as terminal:
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("/")
        terminal.type("needle")
        terminal.wait_for("found in 2 blocks")
        terminal.press("enter")
        terminal.press("N")
        terminal.wait_for("needle one")
        terminal.press("n")
        terminal.wait_for("needle two")
        terminal.press("esc")
        terminal.wait_for(lambda screen: "found in" not in screen)
        terminal.press("esc")
        terminal.wait_for("Ask, or /")


def test_the_transcript_is_printed_into_the_terminals_own_scrollback(tmp_path: Path) -> None:
    with three_turns(tmp_path) as terminal:
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("[")
        terminal.wait_for("Any key goes back to pyagent")
        assert not terminal.modes.is_alternate_screen
        printed = terminal.scrollback
        assert "▌ prompt one" in printed
        assert "    │ 60" in printed
        assert "paragraph 39" in printed
        terminal.press("ctrl+c")
        terminal.wait_for("q leave")
        terminal.wait_until(lambda seen: seen.modes.is_alternate_screen)
        terminal.press("q")
        terminal.wait_for("Ask, or /")
        terminal.paste("/exit")
        terminal.wait_for("│ /exit")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()
        assert "▌ prompt one" in terminal.scrollback


def test_the_transcript_opens_in_the_editor_as_text(tmp_path: Path) -> None:
    seen = tmp_path / "seen.md"
    editor = f"{sys.executable} -c 'import shutil, sys; shutil.copy(sys.argv[1], \"{seen}\")'"
    with three_turns(tmp_path, EDITOR=editor) as terminal:
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("v")
        terminal.wait_until(lambda _: seen.exists())
        terminal.wait_for("q leave")
        text = seen.read_text()
        assert "> prompt one\n\n(thinking)\n    Look first.\n\nBash  seq 1 60 · 60 lines\n    1\n    2\n" in text
        assert "The **first** answer, needle one." in text


def test_an_editor_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with three_turns(tmp_path, VISUAL="no-such-editor") as terminal:
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("v")
        terminal.wait_for("Cannot start no-such-editor")


def test_without_the_mouse_the_terminal_selects_by_itself(tmp_path: Path) -> None:
    with three_turns(tmp_path, "--no-mouse") as terminal:
        assert not terminal.modes.has_mouse
        terminal.press("ctrl+o")
        terminal.wait_for("q leave")
        terminal.press("[")
        terminal.wait_for("Any key goes back to pyagent")
        terminal.press("space")
        terminal.wait_for("q leave")
        assert not terminal.modes.has_mouse
        assert b"\x1b[?1003h" not in terminal.output
        terminal.press("q")
        terminal.wait_for("Ask, or /")
        terminal.press("ctrl+d", "ctrl+d")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()


def test_a_click_on_the_transcript_leaves_the_keys_to_the_input_line(tmp_path: Path) -> None:
    with three_turns(tmp_path) as terminal:
        terminal.send("\x1b[<0;10;3M\x1b[<0;10;3m")
        terminal.type("typed")
        terminal.wait_for("│ typed")
