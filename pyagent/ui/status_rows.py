"""The rows of the user's own status line, below the built-in one."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.sgr import styled_pieces


class StatusRows(Widget):
    """Shows rows as they come; takes no space while there are none."""

    DEFAULT_CSS = """
    StatusRows { height: auto; width: 100%; display: none; background: $background; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        return self._rows

    def show(self, rows: tuple[str, ...]) -> None:
        """Show these rows."""
        has_other_height = len(rows) != len(self._rows)
        self._rows = rows
        self.display = bool(rows)
        self.styles.height = max(1, len(rows))
        self.refresh(layout=has_other_height)

    def render_line(self, y: int) -> Strip:
        width_cells, base = self.size.width, self.rich_style
        if y >= len(self._rows):
            return Strip.blank(width_cells, base)
        segments = [Segment(" ", base), *(Segment(text, base + style) for text, style in styled_pieces(self._rows[y]))]
        return Strip(segments).adjust_cell_length(width_cells, base)
