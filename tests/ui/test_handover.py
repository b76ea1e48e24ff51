"""From one front end to the other: when, with which command line, and what the settings choose at the start."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.launch import LaunchOptions
from pyagent.ui.cli import FrontEnd, Invocation, build_invocation, parse_arguments
from pyagent.ui.front_settings import front_end_settings
from pyagent.ui.handover import HANDOVER_VARIABLE, Handover, arguments, handed_draft, refusal, target
from tests.ui.fake_agent import launch_options


def test_the_other_front_end_gets_the_same_options(tmp_path: Path) -> None:
    flags = [
        *("--effort", "high", "--fallback-model", "a,b", "--settings", "{}", "--system-prompt=-x", "--trust"),
        *("--allowedTools", "Bash(git log *)", "Read", "--tools", "Read,Bash", "--add-dir", str(tmp_path)),
        *("--setting-sources", "user", "--autocompact", "64000", "--safe-mode", "--verbose", "--no-mouse"),
        *("--debug=wire", "--append-system-prompt", "two\nlines", "--max-budget-usd", "2"),
    ]
    environ = {"TERM": "xterm", "PYAGENT_HOME": str(tmp_path)}
    before = build_invocation(parse_arguments(flags), environ)
    handover = Handover("plain", "opus", "plan", "5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11")
    after = build_invocation(parse_arguments(arguments(handover, before)), environ)
    expected = replace(
        before.options, model="opus", permission_mode="plan", resume="5f0c1a52-7d7e-4d7e-9b55-0d2f6f1e7a11"
    )
    assert after.options == expected
    assert (after.is_verbose, after.has_mouse, after.debug) == (True, False, "wire")
    assert after.front_end is FrontEnd.PLAIN


def test_nothing_is_resumed_where_nothing_was_said(tmp_path: Path) -> None:
    invocation = Invocation(launch_options(tmp_path), FrontEnd.SCREEN)
    assert "--resume" not in arguments(Handover("plain", "offline", "default"), invocation)


@pytest.mark.parametrize(
    ("argument", "here", "wanted"),
    [
        ("", "plain", "fullscreen"),
        ("", "fullscreen", "plain"),
        ("default", "plain", "fullscreen"),
        ("PLAIN", "fullscreen", "plain"),
        ("tmux", "plain", None),
    ],
)
def test_the_front_end_that_is_meant(argument: str, here: str, wanted: str | None) -> None:
    assert target(argument, here=here) == wanted  # type: ignore[arg-type]  # one of the two names


def test_a_session_is_not_taken_along_while_the_agent_works_or_where_it_is_not_saved(tmp_path: Path) -> None:
    options = launch_options(tmp_path)
    assert "at work" in refusal(options, is_busy=True, is_there=False)
    assert "not saved" in refusal(replace(options, is_persistent=False), is_busy=False, is_there=False)
    assert refusal(options, is_busy=False, is_there=False) == ""


def test_a_draft_is_handed_along_once(tmp_path: Path) -> None:
    path = tmp_path / "draft.json"
    path.write_text(json.dumps({"draft": "so far"}))
    assert handed_draft({HANDOVER_VARIABLE: str(path)}) == "so far"
    assert handed_draft({HANDOVER_VARIABLE: str(path)}) == ""
    assert handed_draft({}) == ""


@pytest.mark.parametrize("place", ["home", "project", "claude", "flag", "nowhere"])
def test_any_settings_file_may_choose_the_front_end(tmp_path: Path, place: str) -> None:
    options = LaunchOptions(tmp_path / "work", tmp_path / "home", {"HOME": str(tmp_path)})
    files = {
        "home": tmp_path / "home" / "settings.json",
        "project": tmp_path / "work" / ".pyagent" / "settings.local.json",
        "claude": tmp_path / ".claude" / "settings.json",
    }
    content = json.dumps({"tui": "plain", "axScreenReader": True})
    if place in files:
        files[place].parent.mkdir(parents=True)
        files[place].write_text(content)
    elif place == "flag":
        options = replace(options, settings_json=content)
    found = front_end_settings(options)
    assert (found.front_end, found.has_screen_reader) == (("", False) if place == "nowhere" else ("plain", True))
