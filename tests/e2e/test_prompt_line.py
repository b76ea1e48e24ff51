"""The input line in a real terminal: the shell, pastes, wide characters, keys, and what a crash leaves."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from unicodedata import normalize

import pytest

from tests.e2e.pty_harness import Terminal
from tests.e2e.served import is_idle, pyagent_on, serving
from tests.fakes.script import Script
from tests.pictures import png

PYAGENT = [sys.executable, "-P", "-m", "pyagent", "--model", "offline"]


def write(terminal: Terminal, text: str) -> None:
    """Type as a person does: a key is on the screen before the next one is pressed, so that none counts as pasted."""
    for at, char in enumerate(text, start=1):
        terminal.send(char)
        terminal.wait_for(text[:at].rstrip() or text[0])


def test_a_shell_command_runs_at_once_and_a_resume_shows_it(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        write(terminal, "!echo $((40+2))")
        terminal.wait_for("─ shell ─")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "│ 42" in screen and is_idle(screen))
        terminal.press("ctrl+d")
        terminal.wait_for("again to leave")
        terminal.press("ctrl+d")
        assert terminal.wait_for_exit() == 0
    with Terminal.spawn([*PYAGENT, "--continue"], home=tmp_path) as terminal:
        terminal.wait_for(lambda screen: "│ 42" in screen and is_idle(screen))


def test_escape_ends_a_shell_command_and_its_children(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        write(terminal, "!!echo begun; sleep 1000")
        terminal.press("enter")
        terminal.wait_for("│ begun")
        terminal.press("esc")
        screen = terminal.wait_for(lambda screen: "interrupted" in screen and is_idle(screen))
        assert "not told to the model" in screen


def test_plain_mode_runs_shell_commands_too(tmp_path: Path) -> None:
    with Terminal.spawn([*PYAGENT, "--plain"], home=tmp_path) as terminal:
        terminal.wait_for(lambda screen: screen.rstrip().endswith(">"))
        terminal.type("!echo $((40+2))")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "  42" in screen and screen.rstrip().endswith(">"))
        terminal.type("#always tabs")
        terminal.press("enter")
        terminal.wait_for("Enter selection")
        terminal.type("3")
        terminal.press("enter")
        terminal.wait_for("CLAUDE.local.md;")
    assert (tmp_path / "CLAUDE.local.md").read_text() == "- always tabs\n"


def test_a_draft_is_there_again_after_the_program_was_killed(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.paste("the whole draft\n" * 40)
        terminal.wait_for("+40 lines]")
        write_down = tmp_path / ".pyagent" / "drafts"
        wait_until(lambda: any("Pasted" in path.read_text() for path in write_down.glob("*.json")))
        terminal.signal(signal.SIGKILL)
        terminal.wait_for_exit()
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for("+40 lines]")
        terminal.wait_for(is_idle)


def wait_until(is_true: object) -> None:
    """Wait for something outside of the screen."""
    assert callable(is_true)
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def test_a_paste_of_a_megabyte_is_a_chip_at_once_and_sent_whole(tmp_path: Path) -> None:
    line = "0123456789abcdef" * 4
    pasted = "\n".join(f"{number:06} {line}" for number in range(14_000))
    assert len(pasted) > 1_000_000
    with serving(Script(["Read."]), window_tokens=None) as server, pyagent_on(server, tmp_path) as terminal:
        terminal.wait_for(is_idle)
        write(terminal, "look ")
        terminal.paste(pasted)
        terminal.wait_for("[Pasted text #1 +13999 lines]")
        terminal.send("!")
        terminal.wait_for("lines]!")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "Read." in screen and is_idle(screen))
        sent = server.message_requests[-1].body["messages"][-1]["content"][-1]["text"]
    assert sent == f"look {pasted}!"


@pytest.mark.parametrize(
    ("text", "cells"),
    [("한글中文ABC", 11), ("日本語", 6), ("e\u0301te\u0301", 3)],
    ids=["hangul-han-latin", "japanese", "combining"],
)
def test_the_cursor_stands_behind_wide_and_combined_characters(tmp_path: Path, text: str, cells: int) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.paste(text)
        screen = terminal.wait_for(lambda screen: terminal.cursor[0] == len("│ ") + cells)
        assert screen.splitlines()[terminal.cursor[1]].startswith(f"│ {normalize('NFC', text)}")
        rows = terminal.text.splitlines()
        borders = [line.rstrip()[-1] for line in rows if line.startswith(("╭", "│", "╰"))]
        assert borders == ["╮", "│", "╯"]


@pytest.mark.parametrize(
    ("sign", "cells"), [("👩‍👩‍👧", 2), ("🇩🇪", 2), ("👍🏽", 2), ("e\u0301", 1), ("中", 2), ("א", 1)], ids=ascii
)
def test_arrows_and_backspace_take_what_is_seen_as_one_character(tmp_path: Path, sign: str, cells: int) -> None:
    first = 3  # Behind the border, a blank and the "a".
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.type("ab")
        terminal.press("left")
        terminal.wait_for(lambda _: terminal.cursor[0] == first)
        terminal.send(sign)
        terminal.wait_for(lambda _: terminal.cursor[0] == first + cells)
        terminal.press("left")
        terminal.wait_for(lambda _: terminal.cursor[0] == first)
        terminal.press("right")
        terminal.wait_for(lambda _: terminal.cursor[0] == first + cells)
        terminal.press("backspace")
        terminal.wait_for("│ ab ")


def test_a_dropped_image_becomes_a_chip_and_reaches_the_model(tmp_path: Path) -> None:
    (tmp_path / "my shot.png").write_bytes(png(64, 48))
    with serving(Script(["A grey one."])) as server, pyagent_on(server, tmp_path) as terminal:
        terminal.wait_for(is_idle)
        terminal.paste(str(tmp_path / "my\\ shot.png"))
        terminal.wait_for("[Image #1 64×48]")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "A grey one." in screen and is_idle(screen))
        content = server.message_requests[-1].body["messages"][-1]["content"]
    assert [block["type"] for block in content if block["type"] == "image"] == ["image"]


def test_keys_of_ones_own_work_and_a_mistake_is_told(tmp_path: Path) -> None:
    folder = tmp_path / ".pyagent"
    folder.mkdir()
    bindings = {"Chat": {"chat:stash": "ctrl+x s", "chat:nonsense": "f9"}}
    (folder / "keybindings.json").write_text(json.dumps(bindings))
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for("chat:nonsense")
        terminal.wait_for(is_idle)
        write(terminal, "a thought")
        terminal.press("ctrl+x")
        terminal.wait_for("Ctrl+X …")
        terminal.send("s")
        terminal.wait_for("Ask, or / for commands")


def test_the_keybindings_command_opens_the_file_and_uses_what_it_then_says(tmp_path: Path) -> None:
    editor = tmp_path / "edit.py"
    editor.write_text(
        "import json, sys\nfile = sys.argv[1]\ncontent = json.load(open(file))\n"
        "content['Chat']['chat:stash'] = 'f5'\njson.dump(content, open(file, 'w'))\n"
    )
    environ = {"EDITOR": f"{sys.executable} {editor}"}
    with Terminal.spawn(PYAGENT, home=tmp_path, env=environ) as terminal:
        terminal.wait_for(is_idle)
        write(terminal, "/keybindings")
        terminal.press("enter")
        terminal.wait_for("The keys are in force.")
        write(terminal, "a thought")
        terminal.send("\x1b[15~")
        terminal.wait_for("Ask, or / for commands")
    assert json.loads((tmp_path / ".pyagent" / "keybindings.json").read_text())["Chat"] == {"chat:stash": "f5"}


def test_vim_edits_the_line(tmp_path: Path) -> None:
    folder = tmp_path / ".pyagent"
    folder.mkdir()
    (folder / "settings.json").write_text('{"editorMode": "vim"}')
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(lambda screen: "─ INSERT ─" in screen and is_idle(screen))
        write(terminal, "one two three")
        terminal.press("esc")
        terminal.wait_for("─ NORMAL ─")
        terminal.send("bdw")
        terminal.wait_for(lambda screen: "one two" in screen and "three" not in screen)
        terminal.send("u")
        terminal.wait_for("one two three")


def test_alt_and_a_letter_is_a_key_of_its_own_in_every_terminal(tmp_path: Path) -> None:
    with Terminal.spawn(PYAGENT, home=tmp_path) as terminal:
        terminal.wait_for(is_idle)
        write(terminal, "one two")
        terminal.press("alt+p")
        terminal.wait_for("─ Model ─")
        terminal.press("esc")
        terminal.wait_for(lambda screen: "─ Model ─" not in screen)
        terminal.press("alt+enter")
        terminal.send("three")
        terminal.wait_for("│ three")
