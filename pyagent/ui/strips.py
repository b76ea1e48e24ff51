"""Lines to Textual strips: roles become styles, rows get their width, parts of rows get painted over."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.strip import Strip

from pyagent.ui.lines import Line
from pyagent.ui.theme import Palette

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Lines are made of inert text; this is the last place where one that was forgotten can be kept from the terminal."""


KEPT_STRIP_COUNT = 120
"""Strips kept: some screens of rows. One takes 20 kB with the crops and styled copies that Textual caches in it, a
hundred times what its line takes, and is made anew in microseconds."""

STRIPS_BETWEEN_SWEEPS = 500
"""A sweep costs the next frame well under a millisecond; what gathers in between is some 2 MB."""


def sweep() -> None:
    """Empty two caches of Textual's that only grow.

    One holds the terminal codes of 16,384 styles, and each style of a transcript is one of its own, since it carries
    its place for the selection. The other is keyed by the drawn rows of a widget, 1,024 of them, and so keeps those
    of every dialog that was ever open.
    """
    Strip.render_ansi.cache_clear()
    StylesCache.get_inner_outer.cache_clear()


class StripCache:
    """The strips of the rows that were shown last, by line."""

    def __init__(self) -> None:
        self._strips: OrderedDict[Line, Strip] = OrderedDict()
        self._made_count = 0

    def __len__(self) -> int:
        return len(self._strips)

    def strip(self, line: Line, width_cells: int, make: Callable[[], Strip]) -> Strip:
        """The strip of a line, made now unless it is there in this width."""
        strip = self._strips.get(line)
        if strip is None or strip.cell_length != width_cells:
            strip = self._strips[line] = make()
            self._made_count += 1
            if self._made_count % STRIPS_BETWEEN_SWEEPS == 0:
                sweep()
            if len(self._strips) > KEPT_STRIP_COUNT:
                self._strips.popitem(last=False)
        self._strips.move_to_end(line)
        return strip

    def clear(self) -> None:
        """Forget the strips, which does not put off the next sweep."""
        self._strips.clear()


def _instead(control: re.Match[str]) -> str:
    return " " if control.group() == "\t" else "\ufffd"


def line_strip(line: Line, palette: Palette, width_cells: int, base: Style) -> Strip:
    """A strip of exactly `width_cells`. The gutter of a filled line that is only blank stays unfilled."""
    fill = base + palette.style(line.fill) if line.fill else base
    segments: list[Segment] = []
    used_cells = 0
    chars = 0
    for span in line.spans:
        is_margin = chars < line.gutter_chars - 1 and span.text.isspace() and not span.role
        style = base if is_margin else fill
        if span.role or span.href:
            style = style + palette.style(span.role, "" if _CONTROL.search(span.href) else span.href)
        text = _CONTROL.sub(_instead, span.text)
        segments.append(Segment(text, style))
        used_cells += cell_len(text)
        chars += len(text)
    if used_cells > width_cells:
        return Strip(_cropped(segments, width_cells), width_cells)
    if used_cells < width_cells:
        segments.append(Segment(" " * (width_cells - used_cells), fill))
    return Strip(segments, width_cells)


def _cropped(segments: Iterable[Segment], width_cells: int) -> list[Segment]:
    """The first cells of a row; half a wide character becomes a blank."""
    result: list[Segment] = []
    left_cells = width_cells
    for text, style, _ in segments:
        cells = cell_len(text)
        if cells > left_cells:
            end = 0
            for _, last, wide_cells in split_graphemes(text)[0]:
                if wide_cells > left_cells:
                    break
                end, left_cells = last, left_cells - wide_cells
            return [*result, Segment(text[:end] + " " * left_cells, style)]
        result.append(Segment(text, style))
        left_cells -= cells
    return result


def painted(strip: Strip, ranges: Iterable[tuple[int, int, Style]]) -> Strip:
    """The strip with styles laid over (first character, end character) ranges; an end of -1 is the row's end."""
    segments = list(strip)
    for start, end, style in ranges:
        segments = _painted_range(segments, start, end, style)
    return Strip(segments, strip.cell_length)


def _painted_range(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    result: list[Segment] = []
    at = 0
    for segment in segments:
        text, own, _ = segment
        size = len(text)
        first = min(max(start - at, 0), size)
        last = size if end < 0 else min(max(end - at, 0), size)
        if first < last:
            first, last = _whole_graphemes(text, first, last)
            result += [
                Segment(text[:first], own),
                Segment(text[first:last], own + style if own else style),
                Segment(text[last:], own),
            ]
        else:
            result.append(segment)
        at += size
    return [segment for segment in result if segment.text]


def _whole_graphemes(text: str, start: int, end: int) -> tuple[int, int]:
    """The range widened to whole graphemes: a half of one has other cells than half of the whole."""
    if text.isascii():
        return start, end
    for first, last, _ in split_graphemes(text)[0]:
        start = first if first < start < last else start
        end = last if first < end < last else end
    return start, end
