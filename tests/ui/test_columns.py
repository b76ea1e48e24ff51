from __future__ import annotations

import pyte
import pytest
from hypothesis import given, settings
from rich.cells import cell_len

from pyagent.ui.columns import placed
from pyagent.ui.lines import inert_row, truncate
from tests.ui.nasty import NASTY, NASTY_TEXTS

COLUMNS = 60
MARK = "¶"


def column_of_mark(row: str) -> int:
    """Where a terminal that counts each code point by itself shows the mark; -1 if it does not."""
    screen = pyte.Screen(COLUMNS, 2)
    pyte.Stream(screen).feed(placed(f"\x1b[1;1H{row}"))
    return next((x for x in range(COLUMNS) if screen.buffer[0][x].data == MARK), -1)


@pytest.mark.parametrize("number", range(len(NASTY)))
def test_what_stands_behind_an_odd_character_stands_in_its_column(number: int) -> None:
    shown = truncate(inert_row(NASTY[number]), 50)
    assert column_of_mark(f"|{shown}{MARK}") == 1 + cell_len(shown)


@settings(max_examples=400, deadline=None)
@given(NASTY_TEXTS)
def test_the_right_edge_of_any_row_stays_where_it_is(text: str) -> None:
    shown = truncate(inert_row(text.replace(MARK, "")), COLUMNS - 1)
    assert column_of_mark(shown + " " * (COLUMNS - 1 - cell_len(shown)) + MARK) == COLUMNS - 1


def test_a_wide_sign_at_the_right_edge_does_not_reach_the_next_row() -> None:
    screen = pyte.Screen(10, 2)
    pyte.Stream(screen).feed(placed("\x1b[2;1Hsecond row\x1b[1;1H12345678👩‍👩‍👧"))
    assert screen.display[1] == "second row"
    assert pyte.modes.DECAWM in screen.mode


def test_ordinary_frames_go_through_untouched() -> None:
    frame = "\x1b[3;4H\x1b[38;2;1;2;3mΟδυσσέας Пётр 漢字 ─│✓ …\x1b[0m\n\x1b[4;1Hplain"
    assert placed(frame) is frame


def test_text_before_any_absolute_move_is_left_alone() -> None:
    assert placed("👍🏽") == "\x1b[?7l👍🏽\x1b[?7h"


def test_links_and_colours_take_no_columns() -> None:
    frame = "\x1b[1;5H\x1b]8;;http://x/👍\x1b\\\x1b[1mab\x1b[0m👍🏽"
    assert placed(frame).endswith("  \x1b[7G👍🏽\x1b[9G\x1b[?7h")
