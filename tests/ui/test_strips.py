"""Strips are kept within limits, ours and those that Textual keeps of them."""

from __future__ import annotations

from rich.color import ColorSystem
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.strip import Strip

from pyagent.ui.lines import plain_line
from pyagent.ui.strips import KEPT_STRIP_COUNT, STRIPS_BETWEEN_SWEEPS, StripCache
from pyagent.ui.theme import DARK, LIGHT, palette
from pyagent.ui.transcript_rows import RowPainter


def fill(cache: StripCache, count: int) -> None:
    for number in range(count):
        cache.strip(plain_line(f"line {number}"), 10, lambda: Strip.blank(10))


def test_a_strip_is_made_once_a_width_and_the_oldest_go() -> None:
    cache, line = StripCache(), plain_line("a line")
    first = cache.strip(line, 10, lambda: Strip.blank(10))
    assert cache.strip(line, 10, lambda: Strip.blank(10)) is first
    assert cache.strip(line, 20, lambda: Strip.blank(20)).cell_length == 20
    fill(cache, 3 * KEPT_STRIP_COUNT)
    assert len(cache) == KEPT_STRIP_COUNT


def test_what_textual_keeps_of_styles_and_of_closed_dialogs_is_swept_as_rows_are_made() -> None:
    StylesCache().get_inner_outer(Color(0, 0, 0), Color(0, 0, 0))
    Strip.render_ansi(Style(color="red"), ColorSystem.TRUECOLOR)
    assert StylesCache.get_inner_outer.cache_info().currsize
    assert Strip.render_ansi.cache_info().currsize
    fill(StripCache(), STRIPS_BETWEEN_SWEEPS)
    assert not StylesCache.get_inner_outer.cache_info().currsize
    assert not Strip.render_ansi.cache_info().currsize


def test_a_row_that_only_moves_on_the_screen_is_not_drawn_anew() -> None:
    painter = RowPainter(palette(DARK), Style.null())
    line = plain_line("a line")
    first = painter.row(line, 40, 7, [])
    assert painter.row(line, 40, 7, []) is first
    assert painter.row(line, 30, 7, []).cell_length == 30
    assert painter.row(line, 40, 8, []) is not first


def test_what_is_laid_over_a_row_goes_with_it() -> None:
    painter = RowPainter(palette(DARK), Style.null())
    line = plain_line("a line")
    plain = painter.row(line, 40, 7, [])
    assert list(painter.row(line, 40, 7, [(0, 1, "found")])) != list(plain)
    assert painter.row(line, 40, 7, []) is plain


def test_rows_are_drawn_anew_for_other_colours_only() -> None:
    painter = RowPainter(palette(DARK), Style.null())
    line = plain_line("a line")
    first = painter.row(line, 40, 7, [])
    painter.use(palette(DARK), Style.null(), None)
    assert painter.row(line, 40, 7, []) is first
    painter.use(palette(LIGHT), Style.null(), None)
    assert painter.row(line, 40, 7, []) is not first


def test_textuals_own_caches_are_swept_also_where_ours_is_emptied_in_between() -> None:
    Strip.render_ansi(Style(bold=True), ColorSystem.TRUECOLOR)
    cache = StripCache()
    for _ in range(STRIPS_BETWEEN_SWEEPS // 10):
        fill(cache, 10)
        cache.clear()
    assert Strip.render_ansi.cache_info().currsize == 0
