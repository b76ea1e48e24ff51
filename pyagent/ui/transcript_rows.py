"""Rows of the transcript: the strip of a line, what is laid over it, and the sign for what came in below."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pyagent.ui.file_links import with_file_links
from pyagent.ui.lines import Line
from pyagent.ui.strips import KEPT_STRIP_COUNT, StripCache, line_strip, painted
from pyagent.ui.theme import Palette

Overlay: TypeAlias = tuple[int, int, str]
"""(first character, end character or -1 for the row's end, role)"""


class RowPainter:
    """Draws rows in one set of colours, and keeps those shown last."""

    def __init__(self, colours: Palette, base: Style) -> None:
        self.base = base
        self._colours = colours
        self._linked_folder: Path | None = None
        self._strips = StripCache()
        self._placed: OrderedDict[int, tuple[Strip, Strip]] = OrderedDict()
        """By place the strip of a line and the same with the place in it, which a selection goes by."""

    def use(self, colours: Palette, base: Style, linked_folder: Path | None) -> None:
        """Draw like this from now on. Names of files below `linked_folder` are links; None for none."""
        if (colours, base, linked_folder) != (self._colours, self.base, self._linked_folder):
            self._colours, self.base, self._linked_folder = colours, base, linked_folder
            self._strips.clear()
            self._placed.clear()

    def row(self, line: Line, width_cells: int, place: int, overlays: Sequence[Overlay]) -> Strip:
        """A line's strip; `place` is the y it has for a selection."""
        strip = self._strips.strip(
            line, width_cells, lambda: line_strip(self._linked(line), self._colours, width_cells, self.base)
        )
        if overlays:
            over = [(start, end, self._colours.style(role)) for start, end, role in overlays]
            return painted(strip, over).apply_offsets(0, place)
        kept = self._placed.get(place)
        if kept is None or kept[0] is not strip:
            kept = self._placed[place] = strip, strip.apply_offsets(0, place)
            if len(self._placed) > KEPT_STRIP_COUNT:
                self._placed.popitem(last=False)
        self._placed.move_to_end(place)
        return kept[1]

    def blank(self, width_cells: int, place: int) -> Strip:
        """A row without text."""
        return Strip.blank(width_cells, self.base).apply_offsets(0, place)

    def with_pill(self, strip: Strip, text: str) -> Strip:
        """The row with a sign at its right."""
        pill = Strip([Segment(text, self.base + self._colours.style("pill"))], len(text))
        start = max(0, strip.cell_length - len(text) - 1)
        return Strip.join([strip.crop(0, start), pill, strip.crop(start + len(text), strip.cell_length)])

    def _linked(self, line: Line) -> Line:
        return line if self._linked_folder is None else with_file_links(line, self._linked_folder)
