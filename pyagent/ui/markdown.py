"""Markdown that renders while it arrives: finished blocks are frozen, only the last one is worked on again.

Whole texts go through the same code, so what was streamed and what is loaded from a file look the same, row for row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyagent.ui.lines import BLANK_LINE, Line, inert
from pyagent.ui.markdown_blocks import BlockRenderer, FenceLines, first_line, has_gap_before, list_marker, parse

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_EAGER_TAIL_CHARS = 4_000
"""A live block up to this size is rendered at every feed (1 to 3 ms)."""
_TAIL_GROWTH = 16
"""A larger live block is rendered again only when it grew by a sixteenth, so that one endless paragraph or table costs
a constant factor and not the square of its length."""

_FENCE_OPEN = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*(.*)$")


class _OpenFence:
    """A top-level fence that has begun: what its opening said, and its lines so far."""

    def __init__(self, opening: str, width_cells: int) -> None:
        match = _FENCE_OPEN.match(opening)
        if match is None:
            raise ValueError(f"not a fence: {opening!r}")
        self._indent_chars = len(match.group(1))
        self._mark = match.group(2)
        self._closing = re.compile(rf"^ {{0,3}}{re.escape(self._mark[0])}{{{len(self._mark)},}}[ \t]*$")
        self.code = FenceLines(match.group(3), width_cells)

    def closes(self, text: str) -> bool:
        return self._closing.match(text) is not None

    def may_close(self, text: str) -> bool:
        """Whether an unfinished line could still become the closing one; it is better not shown as code yet."""
        stripped = text.strip()
        return bool(stripped) and not stripped.strip(self._mark[0])

    def dedented(self, text: str) -> str:
        head = text[: self._indent_chars]
        return head.lstrip(" ") + text[self._indent_chars :]


class StreamingMarkdown:
    """An answer being written. `feed` and `finish` return the index of the first line that changed.

    `lines` is one list, kept: rows before `frozen_count` will never change again.
    """

    def __init__(self, width_cells: int) -> None:
        self.lines: list[Line] = []
        self.frozen_count = 0
        self._width_cells = width_cells
        self._tail = ""
        self._has_new_line = False
        self._fence: _OpenFence | None = None
        self._next_number: int | None = None
        self._stored_gap: bool | None = None
        self._previous_type = ""
        self._unrendered_chars = 0

    def feed(self, text: str) -> int:
        """Take more of the source."""
        text = inert(text)
        self._tail += text
        self._has_new_line = self._has_new_line or "\n" in text
        self._unrendered_chars += len(text)
        if len(self._tail) > _EAGER_TAIL_CHARS and self._unrendered_chars * _TAIL_GROWTH < len(self._tail):
            return len(self.lines)
        return self._refresh()

    def finish(self) -> int:
        """The source is complete: show everything."""
        return self._refresh()

    def _refresh(self) -> int:
        self._unrendered_chars = 0
        first_changed = self.frozen_count
        del self.lines[self.frozen_count :]
        if self._has_new_line:
            self._freeze_finished()
            self._has_new_line = False
        self.frozen_count = len(self.lines)
        self._show_tail()
        return first_changed

    def _freeze_finished(self) -> None:
        """Freeze what complete lines have settled. An unfinished line is not trusted: it may turn the line above into a
        heading or a table."""
        while True:
            if self._fence is not None and not self._take_fence_lines(self._fence):
                return
            complete = self._tail[: self._tail.rfind("\n") + 1]
            if not complete.strip():
                self._drop_blank_lines(complete)
                return
            nodes = parse(complete)
            if not nodes:
                return
            source_lines = complete.split("\n")
            renderer = BlockRenderer(source_lines)
            *finished, last = nodes
            for node in finished:
                self._freeze(node, renderer, source_lines)
            start = first_line(last)
            if last.type == "fence":
                self._begin(last, source_lines)
                opening = source_lines[start]
                self._fence = _OpenFence(opening, self._width_cells)
                self.lines += self._fence.code.label()
                self._cut(source_lines, start + 1)
                continue
            if last.type in ("bullet_list", "ordered_list") and len(last.children) > 1:
                self._freeze_items(last, renderer, source_lines)
            elif start:
                if finished:
                    self._stored_gap = self._needs_gap(last, source_lines)
                self._cut(source_lines, start)
            return

    def _drop_blank_lines(self, complete: str) -> None:
        if complete:
            self._tail = self._tail[len(complete) :]

    def _freeze(self, node: SyntaxTreeNode, renderer: BlockRenderer, source_lines: list[str]) -> None:
        self._begin(node, source_lines)
        if node.type == "fence":
            start, end = node.map or (0, 0)
            fence = _OpenFence(source_lines[start], self._width_cells)
            self.lines += fence.code.label()
            for text in source_lines[start + 1 : end]:
                if fence.closes(text):
                    break
                self.lines += fence.code.add(fence.dedented(text))
        else:
            self.lines += self._block(node, renderer)
        self._next_number = None

    def _begin(self, node: SyntaxTreeNode, source_lines: list[str]) -> None:
        """Put the blank row that goes before a top-level block."""
        needs_gap = self._needs_gap(node, source_lines) if self._stored_gap is None else self._stored_gap
        if needs_gap and self.lines:
            self.lines.append(BLANK_LINE)
        self._stored_gap = None
        self._previous_type = node.type

    def _needs_gap(self, node: SyntaxTreeNode, source_lines: list[str]) -> bool:
        """Always, but for a list right under its sentence."""
        is_under_sentence = self._previous_type == "paragraph" and node.type.endswith("_list")
        return not is_under_sentence or has_gap_before(node, source_lines)

    def _block(self, node: SyntaxTreeNode, renderer: BlockRenderer) -> list[Line]:
        if not node.type.endswith("_list"):
            return renderer.block(node, self._width_cells)
        lines: list[Line] = []
        for index in range(len(node.children)):
            lines += self._item(node, index, renderer)
        return lines

    def _item(self, node: SyntaxTreeNode, index: int, renderer: BlockRenderer) -> list[Line]:
        item = node.children[index]
        marker = list_marker(node, index, 0, self._next_number)
        lines = renderer.item(item, marker, self._width_cells, 0)
        if index and has_gap_before(item, renderer.source_lines):
            return [BLANK_LINE, *lines]
        return lines

    def _freeze_items(self, node: SyntaxTreeNode, renderer: BlockRenderer, source_lines: list[str]) -> None:
        """Freeze all items but the last of a growing list."""
        self._begin(node, source_lines)
        count = len(node.children) - 1
        for index in range(count):
            self.lines += self._item(node, index, renderer)
        first_number = self._next_number if self._next_number is not None else int(node.attrs.get("start", 1))
        last_item = node.children[-1]
        self._next_number = first_number + count
        self._stored_gap = has_gap_before(last_item, source_lines)
        self._cut(source_lines, first_line(last_item))

    def _cut(self, source_lines: list[str], start: int) -> None:
        """Drop source lines before `start` from the tail."""
        settled_chars = sum(len(text) + 1 for text in source_lines[:start])
        self._tail = self._tail[settled_chars:]

    def _take_fence_lines(self, fence: _OpenFence) -> bool:
        """Freeze the complete lines of an open fence. True when it closed."""
        *complete, rest = self._tail.split("\n")
        for index, text in enumerate(complete):
            if fence.closes(text):
                self._fence = None
                self._next_number = None
                self._tail = "\n".join([*complete[index + 1 :], rest])
                return True
            self.lines += fence.code.add(fence.dedented(text))
        self._tail = rest
        return False

    def _show_tail(self) -> None:
        if self._fence is not None:
            if self._tail and not self._fence.may_close(self._tail):
                self.lines += self._fence.code.peek(self._fence.dedented(self._tail))
            return
        if not self._tail.strip():
            return
        source_lines = self._tail.split("\n")
        renderer = BlockRenderer(source_lines)
        state = (self._next_number, self._stored_gap, self._previous_type)
        for node in parse(self._tail):
            self._freeze(node, renderer, source_lines)
        self._next_number, self._stored_gap, self._previous_type = state


def markdown_lines(source: str, width_cells: int) -> list[Line]:
    """A whole text at once."""
    stream = StreamingMarkdown(width_cells)
    stream.feed(source)
    stream.finish()
    return stream.lines
