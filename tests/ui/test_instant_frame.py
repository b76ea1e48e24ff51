"""The instant prompt draws what Textual will draw; see also the tests in a pseudo-terminal."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color, ColorSystem
from textual._wrap import compute_wrap_offsets

from pyagent.ui.cli import build_parser
from pyagent.ui.instant_frame import COLOURS, Inks, Picture, wrapped
from pyagent.ui.instant_when import SCREEN_FLAGS, will_be_a_screen
from pyagent.ui.theme import DARK, LIGHT, palette

OTHER_FLAGS = {
    *("-h", "--help", "-v", "--version"),
    *("--plain", "--ax-screen-reader", "-p", "--print", "--output-format", "--input-format"),
    *("--include-partial-messages", "--replay-user-messages", "--max-turns"),
    *("--json-schema", "--permission-prompt-tool"),
}
"""Flags with which no full screen starts."""


def picture(columns: int = 80, lines: int = 24) -> Picture:
    return Picture(columns, lines, Inks({}), title="pyagent", model="offline", folder="/work")


def shown(drawn: str) -> list[str]:
    """The rows' text, by the order of their places."""
    rows = re.findall(r"\x1b\[(\d+);1H((?:(?!\x1b\[\d+;1H).)*)", drawn)
    assert [int(number) for number, _ in rows] == list(range(int(rows[0][0]), int(rows[0][0]) + len(rows)))
    return [re.sub(r"\x1b\[[0-9;]*m", "", text) for _, text in rows]


@given(st.text("ab  .日é", max_size=60), st.integers(4, 30))
def test_a_draft_is_wrapped_where_the_text_area_wraps_it(text: str, width: int) -> None:
    offsets = [0, *compute_wrap_offsets(text, width, 4), len(text)]
    assert wrapped(text, width) == [text[a:b] for a, b in pairwise(offsets)]


@pytest.mark.parametrize("name", ["dark", "light"])
def test_the_colours_are_those_of_the_theme_as_rich_rounds_them(name: str) -> None:
    styles = palette(DARK if name == "dark" else LIGHT)
    for ink in ("text", "muted", "faint", "accent"):
        style = styles.style(ink)
        assert style.color is not None
        assert style.color.triplet is not None
        assert COLOURS[name][ink][0] == ";".join(map(str, style.color.triplet))
    for table in COLOURS.values():
        for rgb, of_256, of_16 in table.values():
            color = Color.from_rgb(*map(int, rgb.split(";")))
            assert color.downgrade(ColorSystem.EIGHT_BIT).number == of_256
            assert color.downgrade(ColorSystem.STANDARD).number == of_16


@given(st.integers(56, 120), st.integers(10, 40), st.text("ab 日\n", max_size=300), st.integers(0, 5))
def test_every_row_is_drawn_over_its_whole_width(columns: int, lines: int, draft: str, queued_count: int) -> None:
    screen = picture(columns, lines)
    rows = shown(screen.whole(draft, ("prompt",) * queued_count))
    assert len(rows) == lines
    assert {len(row) + row.count("日") for row in rows} == {columns}


def test_the_rows_of_the_draft_alone_are_drawn_where_they_stand_in_the_whole() -> None:
    screen = picture()
    draft = "one\ntwo"
    whole = screen.whole(draft, ())
    assert screen.text_rows(draft).removesuffix("\x1b[0m") in whole


def test_every_flag_is_known_to_open_a_screen_or_not() -> None:
    flags = {flag for action in build_parser()._actions for flag in action.option_strings}
    assert flags == SCREEN_FLAGS | OTHER_FLAGS


@pytest.mark.parametrize(
    "argv",
    [
        ["-p", "x"],
        ["--help"],
        ["--unknown"],
        ["--model", "x", "--plain"],
        ["--tui", "plain"],
        ["context", "replay"],
        ["import", "claude"],
        ["reset"],
    ],
)
def test_no_instant_prompt_where_no_screen_will_start(argv: list[str]) -> None:
    assert not will_be_a_screen(argv, {"TERM": "xterm"})


@pytest.mark.parametrize(
    ("queued", "rows"),
    [
        (("one", "two"), ["◌ queued  one", "◌ queued  two · sent once the session is open"]),
        (("a", "b", "c", "d"), ["◌ queued  a", "◌ queued  b", "◌ queued  c · and 1 more"]),
    ],
)
def test_what_is_said_of_the_queue_stands_at_its_last_row_as_in_the_panel(
    queued: tuple[str, ...], rows: list[str]
) -> None:
    drawn = shown(picture().whole("", queued))
    assert [row.strip() for row in drawn if "queued" in row] == rows
