"""A text area whose cursor never stands inside of what a person sees as one character."""

from __future__ import annotations

import re
from typing import Any

from rich.text import Text
from textual import events
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from pyagent.ui.graphemes import boundary_at_or_before, next_boundary, previous_boundary, word_classes

_WORD_EDGE = re.compile(r"(?<=\W)(?=\w)|(?<=\w)(?=\W)")
"""As the text area has it: a run of other signs counts as a word too."""


class WholeText(Text):
    """A line on which a style, such as the cursor's, covers whole characters: half of one has other cells than it."""

    def stylize(self, style: Any, start: int = 0, end: int | None = None) -> None:
        text = self.plain
        if end is not None and not text.isascii() and 0 <= start < end <= len(text):
            start, end = boundary_at_or_before(text, start), next_boundary(text, end - 1)
        super().stylize(style, start, end)


class SignTextArea(TextArea):
    """A text area that moves, deletes and selects by whole characters."""

    def _line_and_column(self) -> tuple[str, int]:
        row, column = self.cursor_location
        return self.document.get_line(row), column

    def _whole(self, location: Location) -> Location:
        row, column = location
        return row, boundary_at_or_before(self.document.get_line(row), column)

    def get_cursor_left_location(self) -> Location:
        line, column = self._line_and_column()
        if not column:
            return super().get_cursor_left_location()
        return self.cursor_location[0], previous_boundary(line, column)

    def get_cursor_right_location(self) -> Location:
        line, column = self._line_and_column()
        if column >= len(line):
            return super().get_cursor_right_location()
        return self.cursor_location[0], next_boundary(line, column)

    def get_cursor_up_location(self) -> Location:
        return self._whole(super().get_cursor_up_location())

    def get_cursor_down_location(self) -> Location:
        return self._whole(super().get_cursor_down_location())

    def get_target_document_location(self, event: events.MouseEvent) -> Location:
        return self._whole(super().get_target_document_location(event))

    def get_cursor_word_left_location(self) -> Location:
        line, column = self._line_and_column()
        if line.isascii() or not column:
            return super().get_cursor_word_left_location()
        edges = list(_WORD_EDGE.finditer(word_classes(line[:column]).rstrip()))
        return self.cursor_location[0], edges[-1].start() if edges else 0

    def get_cursor_word_right_location(self) -> Location:
        line, column = self._line_and_column()
        if line.isascii() or column >= len(line):
            return super().get_cursor_word_right_location()
        rest = word_classes(line[column:])
        blanks = len(rest) - len(rest.lstrip())
        edge = _WORD_EDGE.search(rest.lstrip())
        return self.cursor_location[0], column + blanks + edge.start() if edge else len(line)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        return line if line.plain.isascii() else WholeText(line.plain, end="", no_wrap=True)
