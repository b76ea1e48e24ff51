"""Text from outside is literal wherever it is shown: no markup, and no control sequence, in a real terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyagent.agent.session_store import project_dir
from pyagent.log import SessionStarted, UserEntry
from pyagent.messages import TextBlock
from pyagent.record_lines import record_to_line
from tests.e2e.pty_harness import Terminal
from tests.ui.hostile_program import HOSTILE, NAME, SCENES
from tests.ui.records import Recorder

LITERAL = f"{NAME}[/no][link=http://a]l[/][@click=app.quit]q[/]"

_SEQUENCE = re.compile(
    r"\x1b\[[<-?]?[0-9;:]*[ -/]*[@-~]"  # of the screen's own
    r"|\x1b\](?:0|22);[^\x00-\x1f\x7f-\x9f]*\x07"  # a title, the pointer's shape
    r"|\x1b\]1[01];\?\x1b\\"  # a question for the terminal's colours
    r"|\x1b\](?:8;[^\x00-\x20\x7f-\x9f]*|133;[A-D][;0-9]*)\x1b\\"  # a link, a mark
    r"|\x1b[78=>]|\x1b\(B"
)
_FOREIGN = ("\x1b[31m", "\x1b[2J\x1b[6n", "\x1bc", "\x1b]52", "\x1b]8;;http://b", "\x1b]0;owned", "\x1bP")
_ROW_MOVES = "\r\n\x08"
"""Without sequences only these move the cursor; prompt_toolkit uses backspace."""


def assert_clean(output: bytes) -> None:
    """Nothing but sequences of our own was written, and none that outside text asked for."""
    text = output.decode("utf-8", "strict")
    for foreign in _FOREIGN:
        assert foreign not in text
    left = _SEQUENCE.sub("", text)
    strange = {sign for sign in left if (ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0) and sign not in _ROW_MOVES}
    assert strange == set(), re.findall(r".{0,20}[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f].{0,20}", left)[:5]
    assert "\u202e" not in left


FOLDER = "[bold]y[@click=app.quit]z\x1b[31m\x1b]0;owned\x07\x9b31m"
FOLDER_SHOWN = "[bold]y[@click=app.quit]z␛[31m␛]0;owned␇"


@contextmanager
def program(tmp_path: Path, *args: str, wait_for: str = "/help shows") -> Iterator[Terminal]:
    argv = [sys.executable, "-m", "tests.ui.hostile_program", *args]
    folder = tmp_path / FOLDER
    folder.mkdir(exist_ok=True)
    with Terminal.spawn(argv, home=tmp_path, cwd=folder, columns=220, lines=50) as terminal:
        terminal.wait_for(wait_for)
        yield terminal


@pytest.mark.parametrize("scene", SCENES)
def test_on_the_screen_it_is_literal(tmp_path: Path, scene: str) -> None:
    with program(tmp_path, "--verbose") as terminal:
        assert terminal.text.count(LITERAL) >= 2, "model and branch in the banner, the model in the status bar"
        assert FOLDER_SHOWN in terminal.text
        terminal.type(f"{scene}\r")
        terminal.wait_for(f"{scene}»{LITERAL}")
        assert_clean(terminal.output)


COMMANDS = ("points", "ways")
"""Scenes that answer a command, line by line."""
PAGES = ("costs", "compactions", "differences", "settings", "permissions", "tasks", "memory", "aside")
SCREEN_ONLY = ("queue", "model", "status line", *PAGES)


@pytest.mark.parametrize("scene", [name for name in SCENES if name not in (*COMMANDS, *SCREEN_ONLY)])
def test_line_by_line_it_is_literal(tmp_path: Path, scene: str) -> None:
    with program(tmp_path, "--plain", "--verbose", wait_for="\n>") as terminal:
        assert terminal.text.count(LITERAL) >= 1, "in the first line"
        assert FOLDER_SHOWN in terminal.text
        terminal.type(f"{scene}\r")
        terminal.wait_for(f"{scene}»{LITERAL}")
        assert_clean(terminal.output)


def test_line_by_line_choices_are_literal(tmp_path: Path) -> None:
    with program(tmp_path, "--plain", wait_for="\n>") as terminal:
        terminal.type("/rewind\r")
        terminal.wait_for(f"1. points»{LITERAL}")
        terminal.wait_for("Enter selection")
        terminal.type("1\r")
        terminal.wait_for(f"ways»{LITERAL}")
        assert_clean(terminal.output)


def test_in_the_window_s_title_it_is_literal(tmp_path: Path) -> None:
    with program(tmp_path) as terminal:
        terminal.wait_until(lambda terminal: FOLDER_SHOWN in terminal.modes.title)
        terminal.type("title\r")
        terminal.wait_until(lambda terminal: terminal.modes.title.startswith(f"title»{LITERAL}"[:70]))
        assert_clean(terminal.output)


def test_names_of_files_and_earlier_prompts_are_literal(tmp_path: Path) -> None:
    with program(tmp_path) as terminal:
        (tmp_path / FOLDER / "[bold]f[@click=app.quit]\x1b[31m\x1b]0;owned\x07\x9b31m.txt").touch()
    with program(tmp_path) as terminal:
        terminal.type("@bold")
        terminal.wait_for("[bold]f[@click=app.quit]␛[31m␛]0;owned␇")
        terminal.press("tab")
        terminal.wait_for(lambda screen: "@bold" not in screen and "[bold]f[@click=app.quit]" in screen)
        assert_clean(terminal.output)
        terminal.press("ctrl+c")
        terminal.wait_for(lambda screen: "[bold]f" not in screen)
        terminal.paste(f"pasted»{LITERAL}")
        terminal.wait_for(f"pasted»{LITERAL}")
        terminal.press("enter")
        terminal.wait_for(f"queued  pasted»{LITERAL}")
        terminal.press("ctrl+r")
        terminal.wait_for(lambda screen: "Earlier prompts" in screen and f"pasted»{LITERAL}" in screen)
        assert_clean(terminal.output)


def test_titles_of_sessions_are_literal(tmp_path: Path) -> None:
    recorder = Recorder()
    folder = project_dir(tmp_path / ".pyagent", tmp_path / FOLDER)
    folder.mkdir(parents=True)
    session_id = "0d9a2f4e-1111-4d7e-9b55-0d2f6f1e7a11"
    words = UserEntry((TextBlock(f"saved»{HOSTILE}"),))
    payloads = (SessionStarted(1, session_id, str(tmp_path / FOLDER), "0"), words)
    (folder / f"{session_id}.jsonl").write_bytes(b"".join(record_to_line(recorder.record(it)) for it in payloads))
    with program(tmp_path) as terminal:
        terminal.type("/resume\r")
        terminal.wait_for(f"saved»{LITERAL}")
        assert_clean(terminal.output)
