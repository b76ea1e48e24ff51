"""What is shown in a window too small for anything else: one line that says so. Nothing below it is touched."""

from __future__ import annotations

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.lines import Line, Span
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

SMALLEST = Size(20, 6)
"""One row each of conversation, activity and status, and the input line's three; and a gauge's figures across."""


def is_too_small(size: Size) -> bool:
    """Whether the screen's parts do not all have room."""
    return size.width < SMALLEST.width or size.height < SMALLEST.height


def remark(size: Size) -> str:
    """The longest wording that fits across."""
    needed, present = f"{SMALLEST.width}×{SMALLEST.height}", f"{size.width}×{size.height}"
    wordings = (
        f"pyagent needs {needed}; this window is {present}",
        f"{present}, needs {needed}",
        f"needs {needed}",
        "…",
    )
    return next((words for words in wordings if len(words) <= size.width), "")


class TooSmall(Widget):
    """Covers the whole screen."""

    DEFAULT_CSS = """
    TooSmall { layer: cover; width: 100%; height: 100%; background: $background; color: $foreground; }
    """

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        line = Line((Span(remark(self.app.size), "warning"),)) if y == self.size.height // 2 else Line()
        return line_strip(line, colours, self.size.width, self.rich_style)
