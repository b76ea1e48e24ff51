"""Which colours are shown, and how the terminal's answer is told from keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyagent.agent.setting_catalogue import THEME_NAMES
from pyagent.ui.theme import DARK, LIGHT
from pyagent.ui.theming import ReplyFilter, first_theme_setting, is_light_colour, theme_names, theme_of

WHITE = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"


@pytest.mark.parametrize(
    ("setting", "environ", "is_light", "expected"),
    [
        ("light", {}, False, LIGHT),
        ("dark", {"COLORFGBG": "0;15"}, True, DARK),
        ("auto", {}, True, LIGHT),
        ("auto", {"COLORFGBG": "0;15"}, False, DARK),
        ("auto", {"COLORFGBG": "0;15"}, None, LIGHT),
        ("", {"COLORFGBG": "15;0"}, None, DARK),
        ("a theme of another program", {}, None, DARK),
        ("dark-daltonized", {}, True, "pyagent-dark-daltonized"),
    ],
)
def test_a_named_theme_goes_before_the_terminal_and_that_before_the_environment(
    setting: str, environ: dict[str, str], is_light: bool | None, expected: str
) -> None:
    assert theme_of(setting, environ, is_light=is_light) == expected


def test_the_setting_takes_what_the_screen_has() -> None:
    assert set(THEME_NAMES) == set(theme_names())


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("rgb:ffff/ffff/ffff", True), ("rgb:1c/1c/1c", False), ("rgba:fb/fa/f7/ff", True), ("?", None), ("", None)],
)
def test_the_brightness_of_the_answer_decides(reply: str, expected: bool | None) -> None:
    assert is_light_colour(reply) is expected


@pytest.mark.parametrize("cut", range(1, len(WHITE)))
def test_the_answer_is_taken_out_wherever_the_reads_cut_it(cut: int) -> None:
    replies = ReplyFilter()
    text = "a" + WHITE + "b"
    left = replies.feed(text[:cut]) + replies.feed(text[cut:])
    assert left == ("a\x1bb" if cut == 2 else "ab"), "an Escape at the end of a read may be the key, so it goes on"
    assert replies.reply == "rgb:ffff/ffff/ffff"


def test_a_lone_escape_goes_through_at_once() -> None:
    assert ReplyFilter().feed("\x1b") == "\x1b"


def test_an_answer_that_never_ends_is_given_up() -> None:
    replies = ReplyFilter()
    replies.feed("\x1b]11;" + "x" * 100)
    assert replies.feed("typed") == "typed"


def test_the_first_paint_follows_the_user_s_own_settings(tmp_path: Path) -> None:
    assert first_theme_setting(tmp_path) == ""
    (tmp_path / "settings.json").write_text(json.dumps({"theme": "light"}))
    assert first_theme_setting(tmp_path) == "light"
    (tmp_path / "settings.json").write_text("{ broken")
    assert first_theme_setting(tmp_path) == ""
