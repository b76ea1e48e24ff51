"""A field of one line whose cursor never stands inside of what a person sees as one character."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Input

from pyagent.ui.graphemes import next_boundary, previous_boundary
from pyagent.ui.sign_area import WholeText


class SignInput(Input):
    """An input that moves and deletes by whole characters."""

    def action_cursor_left(self, select: bool = False) -> None:
        start, end = self.selection
        if select or start == end:
            self._move(start, previous_boundary(self.value, end), is_selecting=select)
        else:
            super().action_cursor_left()

    def action_cursor_right(self, select: bool = False) -> None:
        start, end = self.selection
        if (select or start == end) and end < len(self.value):
            self._move(start, next_boundary(self.value, end), is_selecting=select)
        else:
            super().action_cursor_right(select)

    def _move(self, start: int, to: int, *, is_selecting: bool) -> None:
        self.selection = type(self.selection)(start if is_selecting else to, to)

    def action_delete_left(self) -> None:
        if self.selection.is_empty:
            self.delete(previous_boundary(self.value, self.cursor_position), self.cursor_position)
        else:
            super().action_delete_left()

    def action_delete_right(self) -> None:
        if self.selection.is_empty:
            self.delete(self.cursor_position, next_boundary(self.value, self.cursor_position))
        else:
            super().action_delete_right()

    @property
    def _value(self) -> Text:
        text = super()._value
        return text if text.plain.isascii() else WholeText(text.plain, no_wrap=True, overflow="ignore", end="")
