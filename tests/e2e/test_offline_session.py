"""The real program with its built-in model in a real terminal: a prompt, a question, a report, a clean end."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e.pty_harness import Terminal

PYAGENT = [sys.executable, "-m", "pyagent", "--model", "offline"]


def test_a_first_session_from_prompt_to_resume_line(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("SIDES = 4\n")
    with Terminal.spawn(PYAGENT, home=tmp_path, columns=100, lines=30) as terminal:
        terminal.wait_for("/help shows commands and keys")
        terminal.type("list the files")
        terminal.press("enter")
        terminal.wait_for(lambda screen: "shapes.py" in screen and "esc to interrupt" not in screen)
        terminal.type("run ls > names.txt")
        terminal.press("enter")
        terminal.wait_for("Run this command?")
        terminal.press("y")
        terminal.wait_for(lambda screen: "Run this command?" not in screen and "esc to interrupt" not in screen)
        assert (tmp_path / "names.txt").exists()
        terminal.type("/context")
        terminal.press("enter")
        terminal.wait_for("q leave")
        terminal.press("q")
        terminal.wait_for("Ask, or /")
        terminal.type("/exit")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0
        terminal.assert_restored()
        assert "Resume this session with: pyagent --resume" in terminal.text
