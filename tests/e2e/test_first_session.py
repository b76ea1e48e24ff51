"""The README's first session in a real terminal: start, ask, edit, compact, leave, continue."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal

SIZES = [(120, 40), (80, 24)]
THRESHOLDS = '''"""Where the lines are drawn."""


class Thresholds:
    """All in tokens."""

    warning = 147_000
    trigger = 167_000
'''
REPORT = "def threshold_lines(thresholds):\n    return [str(thresholds)]\n\n\n" + "".join(
    f"def helper_{number}(value):\n    return value + {number}\n\n\n" for number in range(120)
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "app").mkdir(parents=True)
    (folder / "README.md").write_text("# Sample\n\nThe context engine keeps the colour.\n")
    (folder / "app" / "thresholds.py").write_text(THRESHOLDS)
    (folder / "app" / "a_report.py").write_text(REPORT)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return folder


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    chosen: tuple[int, int] = request.param
    return chosen


def started(home: Path, folder: Path, size: tuple[int, int], *arguments: str) -> Terminal:
    argv = [sys.executable, "-P", "-m", "pyagent", *arguments]
    return Terminal.spawn(argv, home=home, cwd=folder, columns=size[0], lines=size[1])


def send(terminal: Terminal, line: str) -> None:
    terminal.type(line)
    terminal.wait_for(lambda screen: line.split()[-1] in screen)
    terminal.press("enter")


def is_idle(screen: str) -> bool:
    """Whether an answer stands whole and the prompt waits."""
    return "esc to interrupt" not in screen and "to compact" in screen


def has_shown_report(screen: str) -> bool:
    return "def helper_1" in screen and "offline model" in screen and is_idle(screen)


def used_tokens(screen: str) -> int:
    """What the gauge says, in tokens."""
    found = re.search(r"~?([\d.]+)k/200k", screen)
    assert found is not None, screen
    return int(float(found[1]) * 1_000)


def leave(terminal: Terminal) -> None:
    send(terminal, "/exit")
    assert terminal.wait_for_exit() == 0
    terminal.assert_restored()
    assert "pyagent --resume" in terminal.text


def test_ask_edit_compact_leave_and_continue(tmp_path: Path, repository: Path, size: tuple[int, int]) -> None:
    with started(tmp_path, repository, size) as terminal:
        terminal.wait_for(lambda screen: "Offline model" in screen and is_idle(screen))
        send(terminal, "find where the thresholds are defined and show me")
        terminal.wait_for(lambda screen: "offline model" in screen and "167_000" in screen and is_idle(screen))
        terminal.press("pageup")
        terminal.wait_for("app/thresholds.py:4")

        send(terminal, "replace context engine by context pipeline in README.md")
        dialog = terminal.wait_for("Change this file?")
        assert "- The context engine keeps the colour." in dialog
        assert "+ The context pipeline keeps the colour." in dialog
        terminal.press("y")
        terminal.wait_for(lambda screen: "Edit  README.md · +1 -1" in screen and is_idle(screen))
        assert "context pipeline keeps" in (repository / "README.md").read_text()

        send(terminal, "show app/a_report.py")
        before = used_tokens(terminal.wait_for(has_shown_report))
        send(terminal, "/compact")
        after = terminal.wait_for(lambda screen: "→" in screen and is_idle(screen))
        line = re.search(r"── ([\d.]+)k → ([\d.]+)k tokens · summary · 1 API call", after)
        assert line is not None, after
        assert int(float(line[1]) * 1_000) == before
        assert int(float(line[2]) * 1_000) == used_tokens(after) < before
        leave(terminal)

    with started(tmp_path, repository, size, "--continue") as terminal:
        resumed = terminal.wait_for(lambda screen: "→" in screen and is_idle(screen))
        assert "Traceback" not in resumed
        assert used_tokens(resumed) < before
        send(terminal, "show README.md")
        terminal.wait_for(lambda screen: "context pipeline keeps the colour" in screen and is_idle(screen))
        leave(terminal)


def test_the_bar_and_the_report_agree(tmp_path: Path, repository: Path, size: tuple[int, int]) -> None:
    with started(tmp_path, repository, size) as terminal:
        terminal.wait_for(is_idle)
        send(terminal, "show app/a_report.py")
        terminal.wait_for(has_shown_report)
        send(terminal, "/context")
        report = terminal.wait_for("How the lines are drawn")
        terminal.press("q")
        bar = terminal.wait_for(has_shown_report)
        percent = re.search(r"(\d+)% to compact", bar)
        assert percent is not None, bar
        assert f"{percent[1]}% to compact" in report
        used = re.search(r"([\d,]+) of 200,000 tokens", report)
        assert used is not None, report
        assert abs(int(used[1].replace(",", "")) - used_tokens(bar)) <= 500


def test_the_state_folder_is_closed_to_others(tmp_path: Path) -> None:
    with Terminal.spawn([sys.executable, "-P", "-m", "pyagent", "--model", "offline"], home=tmp_path) as terminal:
        terminal.wait_for("to compact")
    assert stat.S_IMODE((tmp_path / ".pyagent").stat().st_mode) == 0o700
