"""Two real programs and one session: the second reads it, goes on in a copy, or lets it be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.pty_harness import Terminal, isolated_environment
from tests.e2e.test_rough_handling import PYAGENT, is_idle


def say(terminal: Terminal, text: str) -> None:
    terminal.wait_for(is_idle)
    terminal.type(text)
    terminal.wait_for(text)
    terminal.press("enter")


def sessions(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.glob(".pyagent/projects/*/*.jsonl")}


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Terminal]:
    """A program that holds a session open, in which something was said."""
    with Terminal.spawn(PYAGENT, home=tmp_path, lines=40) as terminal:
        say(terminal, "hello there")
        terminal.wait_for(lambda screen: "I work without a network" in screen and is_idle(screen))
        yield terminal


def test_the_screen_offers_to_read_and_keeps_what_is_typed(first: Terminal, tmp_path: Path) -> None:
    before = sessions(tmp_path)
    with Terminal.spawn([*PYAGENT, "--continue"], home=tmp_path, lines=40) as second:
        second.wait_for("open in another pyagent")
        second.press("enter")
        second.wait_for(lambda screen: "open for reading only" in screen and "hello there" in screen)
        second.wait_for("read-only")
        second.type("my own words")
        second.wait_for("my own words")
        second.press("enter")
        second.wait_for(lambda screen: screen.count("open for reading only") >= 2 and "my own words" in screen)
        assert sessions(tmp_path) == before
        second.press("ctrl+c")
        say(second, "/branch")
        second.wait_for(lambda screen: is_idle(screen) and len(sessions(tmp_path)) == 2)
    say(first, "what can you do?")
    first.wait_for(is_idle)


def test_line_by_line_the_ways_have_numbers(first: Terminal, tmp_path: Path) -> None:
    with Terminal.spawn([*PYAGENT, "--plain", "--continue"], home=tmp_path, lines=40) as second:
        second.wait_for("2. Go on in a copy")
        second.type("2\r")
        second.wait_until(lambda terminal: len(sessions(tmp_path)) == 2)


def test_not_wanting_it_ends_the_second_program(first: Terminal, tmp_path: Path) -> None:
    with Terminal.spawn([*PYAGENT, "--plain", "--continue"], home=tmp_path, lines=40) as second:
        second.wait_for("3. Cancel")
        second.type("3\r")
        second.wait_for_exit()
    assert len(sessions(tmp_path)) == 1


def test_a_headless_run_is_told_of_the_copy(first: Terminal, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pyagent", "--model", "offline", "-p", "hi", "--continue"],
        cwd=tmp_path,
        env=isolated_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "--fork-session" in done.stderr


@pytest.mark.parametrize("arguments", [("--continue",), ("--view", "hello")])
def test_piped_prompts_are_refused_and_the_program_ends(first: Terminal, tmp_path: Path, arguments: tuple[str]) -> None:
    before = sessions(tmp_path)
    done = subprocess.run(
        [*PYAGENT, "--plain", *arguments],
        cwd=tmp_path,
        env=isolated_environment(tmp_path),
        input="more words\n/context\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "open for reading only" in done.stdout
    assert done.stderr.startswith("pyagent: This session is open for reading only")
    assert "--fork-session" in done.stderr
    assert sessions(tmp_path) == before
