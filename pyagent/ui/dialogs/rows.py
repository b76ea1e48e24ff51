"""A scrolling body of prepared lines, for dialogs: cached strips, nothing mounted per line, search, copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.lines import Line, inert, join_copied, truncate
from pyagent.ui.strips import line_strip, painted
from pyagent.ui.theme import palette
from pyagent.ui.transcript_model import Match, find_in_lines

_LONGEST_TITLE_CELLS = 100

Layout = Callable[[int], Sequence[Line]]
"""Makes the lines for a width in cells."""


def set_title(box: Widget, title: str) -> None:
    """Give a box a literal title: as a plain string Textual would read it as markup."""
    literal = Text(truncate(" ".join(inert(title).split()), _LONGEST_TITLE_CELLS))
    box.border_title = literal


SCROLLBAR_CELLS = 1
"""Kept free always: whether there is a scrollbar follows from the number of lines, and that from their width."""

FIELD_KEYS = "enter sends · esc back"
"""What is said of the keys while a dialog's own input line has them: letters are text there."""


class Rows(ScrollView, can_focus=True):
    """Shows what a layout function makes of the width."""

    DEFAULT_CSS = """
    Rows {
        height: auto;
        max-height: 1fr;
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "row(-1)", show=False),
        Binding("down,j", "row(1)", show=False),
        Binding("pageup,ctrl+b", "half_page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "half_page(1)", show=False),
        Binding("home,ctrl+home,g", "edge(0)", show=False),
        Binding("end,ctrl+end,G", "edge(1)", show=False),
    ]

    def __init__(self, layout: Layout, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make_lines = layout
        self._lines: list[Line] = []
        self._made_for_cells = 0
        self._query = ""
        self._matches: list[Match] = []
        self._match_at = 0

    def show(self, layout: Layout) -> None:
        """Show other lines, from the top."""
        self._make_lines = layout
        self._made_for_cells = 0
        self._ensure(self.outer_size.width - SCROLLBAR_CELLS)
        self.scroll_to(y=0, animate=False)
        self.refresh(layout=True)

    def _ensure(self, width_cells: int) -> None:
        if width_cells > 0 and width_cells != self._made_for_cells:
            self._made_for_cells = width_cells
            self._lines = list(self._make_lines(width_cells))
            self._matches = find_in_lines(self._lines, self._query)
            self.virtual_size = Size(width_cells, len(self._lines))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._ensure(width - SCROLLBAR_CELLS)
        return len(self._lines)

    def on_resize(self) -> None:
        self._ensure(self.outer_size.width - SCROLLBAR_CELLS)
        self.refresh()

    def action_row(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)

    def action_half_page(self, direction: int) -> None:
        self.scroll_relative(y=direction * max(1, self.size.height // 2), animate=False)

    def action_edge(self, end: int) -> None:
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)

    def find(self, query: str) -> int:
        """Mark what matches and go to the first match from here on; how many there are."""
        self._query = query
        self._matches = find_in_lines(self._lines, query)
        here = self.scroll_offset.y
        self._match_at = next((at for at, match in enumerate(self._matches) if match[0][0] >= here), 0)
        self._show_match()
        return len(self._matches)

    def find_next(self, direction: int) -> None:
        """Go to the next or previous match, around the ends."""
        if self._matches:
            self._match_at = (self._match_at + direction) % len(self._matches)
            self._show_match()

    @property
    def match_position(self) -> tuple[int, int]:
        """The number of the present match, from 1, and how many there are."""
        return (self._match_at + 1 if self._matches else 0, len(self._matches))

    def _show_match(self) -> None:
        if self._matches:
            row = self._matches[self._match_at][0][0]
            first = self.scroll_offset.y
            if not first <= row < first + self.size.height:
                self.scroll_to(y=max(0, row - self.size.height // 3), animate=False)
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        picked: list[tuple[Line, int, int | None]] = []
        for number, line in enumerate(self._lines):
            span = selection.get_span(number)
            if span is not None:
                picked.append((line, span[0], None if span[1] < 0 else span[1]))
        return join_copied(picked), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width_cells = self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        base = self.rich_style
        if row >= len(self._lines):
            return Strip.blank(width_cells, base).apply_offsets(0, row)
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        line = self._lines[row]
        strip = line_strip(line, colours, width_cells, base)
        ranges: list[tuple[int, int, Style]] = []
        for count, match in enumerate(self._matches):
            role = "found.current" if count == self._match_at else "found"
            ranges += [(start, end, colours.style(role)) for number, start, end in match if number == row]
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is not None:
            end = len(line.text) if span[1] < 0 else span[1]
            ranges.append((max(span[0], line.gutter_chars), end, colours.style("selection")))
        return (painted(strip, ranges) if ranges else strip).apply_offsets(0, row)
