"""The agent's task list above the input line, while it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.lines import Line, Span, inert, truncate
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

if TYPE_CHECKING:
    from pyagent.messages import JsonObject

MAX_ROWS = 10
"""More tasks are counted, not listed: the panel must not push the conversation off a small screen."""

_MARKS = {"completed": ("[x]", "muted"), "in_progress": ("[~]", "accent")}


class TaskPanel(Widget):
    """Hidden until it is called for, and as long as there are no tasks. Takes no focus."""

    DEFAULT_CSS = """
    TaskPanel { height: auto; width: 100%; display: none; background: $background; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tasks: Sequence[JsonObject] = ()
        self._is_wanted = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The rows' words."""
        return tuple(self._line(y).text.strip() for y in range(self._row_count)) if self.display else ()

    def show(self, tasks: Sequence[JsonObject]) -> None:
        """This is the list now."""
        if list(tasks) != list(self._tasks):
            self._tasks = tasks
            self._update()

    def toggle(self) -> bool:
        """Show or hide the list; False if there is none."""
        self._is_wanted = not self._is_wanted and bool(self._tasks)
        self._update()
        return bool(self._tasks)

    def _update(self) -> None:
        self.display = self._is_wanted and bool(self._tasks)
        self.styles.height = self._row_count
        self.refresh(layout=True)

    @property
    def _row_count(self) -> int:
        return min(len(self._tasks), MAX_ROWS)

    def _line(self, y: int) -> Line:
        hidden = len(self._tasks) - MAX_ROWS
        if hidden > 0 and y == MAX_ROWS - 1:
            return Line((Span(f"  … and {hidden + 1} more", "muted"),))
        task = self._tasks[y]
        mark, role = _MARKS.get(str(task.get("status")), ("[ ]", "text"))
        words = " ".join(inert(str(task.get("content", ""))).split())
        return Line((Span(f"  {mark} ", role), Span(truncate(words, max(8, self.size.width - 8)), role)))

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        line = self._line(y) if y < self._row_count else Line()
        return line_strip(line, colours, self.size.width, self.rich_style)
