"""The conversation on the screen: one virtual widget over plain blocks, whatever the length of the session.

Nothing is mounted per message. Rows come from `TranscriptModel`, which renders a block when it comes into sight; the
widget turns rows into cached strips, keeps the reader's place, and knows selection, search and folding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from pyagent.ui.block_view import MAX_DETAIL_ROWS
from pyagent.ui.blocks import FOLDED_BY_DEFAULT, Block, BlockKind
from pyagent.ui.covering import end_above
from pyagent.ui.lines import BLANK_LINE, Line, join_copied
from pyagent.ui.theme import palette
from pyagent.ui.transcript_model import Rendered, TranscriptModel
from pyagent.ui.transcript_rows import Overlay, RowPainter
from pyagent.ui.transcript_search import TranscriptSearch

_ROW_BITS = 20
"""A selection's y is (block index << 20 | line in block): it stays on its text when heights change."""
_PROMPTS = frozenset({BlockKind.USER})


class Transcript(ScrollView, can_focus=True):
    """The scrolling record of a session. It follows the end only while the reader is there."""

    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    FOCUS_ON_CLICK = False
    """A click unfolds or selects; what is typed next belongs to the input line all the same."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Line up", show=False),
        Binding("down,j", "scroll_down", "Line down", show=False),
        Binding("pageup,ctrl+b", "half_page(-1)", "Half a page up", show=False),
        Binding("pagedown,ctrl+f", "half_page(1)", "Half a page down", show=False),
        Binding("home,ctrl+home,g", "scroll_home", "Beginning", show=False),
        Binding("end,ctrl+end,G", "scroll_end", "End", show=False),
        Binding("left_curly_bracket", "jump_prompt(-1)", "Previous prompt", show=False),
        Binding("right_curly_bracket", "jump_prompt(1)", "Next prompt", show=False),
        Binding("J", "select_block(1)", "Next block that folds", show=False),
        Binding("K", "select_block(-1)", "Previous block that folds", show=False),
        Binding("enter,space", "toggle_fold", "Fold or unfold", show=False),
        Binding("o", "open_block", "Open in the pager", show=False),
        Binding("n", "find_next(1)", "Next match", show=False),
        Binding("N", "find_next(-1)", "Previous match", show=False),
    ]

    virtual_size = Reactive(Size(0, 0), layout=False)
    """The base class lays the whole screen out when this changes; a growing answer changes it 30 times a second."""
    follow: reactive[bool] = reactive(True, init=False, repaint=False)
    """The end is kept in sight. Only the reader's scrolling changes it."""
    unseen_lines: reactive[int] = reactive(0, init=False)
    """Rows added below the view since the reader left the end."""
    current_id: reactive[str | None] = reactive(None, init=False)
    """The block chosen with the keyboard."""

    class UnseenChanged(Message):
        """Rows added below the view changed."""

        def __init__(self, line_count: int) -> None:
            super().__init__()
            self.line_count = line_count

    class TopReached(Message):
        """The reader has scrolled to the very first row."""

    class OpenRequested(Message):
        """The reader wants the whole of a block (the pager)."""

        def __init__(self, block_id: str) -> None:
            super().__init__()
            self.block_id = block_id

    def __init__(
        self,
        *,
        is_unfolded: bool = False,
        detail_rows: int = MAX_DETAIL_ROWS,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """`is_unfolded` shows new blocks unfolded that would be folded, `detail_rows` of each at most."""
        super().__init__(id=id, classes=classes)
        self._is_unfolded = is_unfolded
        self._model = TranscriptModel(detail_rows=detail_rows)
        self._batch_depth = 0
        self._is_placing = False
        self._covered_rows = 0
        self._made_painter: RowPainter | None = None
        self._is_restyled = False
        self._search = TranscriptSearch(self._model)
        self._mouse_down_at: Offset | None = None
        self._linked_folder: Path | None = None

    # What is shown

    @property
    def linked_folder(self) -> Path | None:
        """Names of files below it are links."""
        return self._linked_folder

    @linked_folder.setter
    def linked_folder(self, folder: Path | None) -> None:
        self._linked_folder = folder
        self._is_restyled = True

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, oldest first."""
        return tuple(self._model)

    def __contains__(self, block_id: object) -> bool:
        return block_id in self._model

    def block(self, block_id: str) -> Block:
        """A block by its id. KeyError if there is none."""
        return self._model[self._model.index(block_id)]

    def append(self, block: Block) -> None:
        """Add a block at the end."""
        with self._changing():
            self._model.append(self._as_unfolded(block))

    def _as_unfolded(self, block: Block) -> Block:
        if not self._is_unfolded or block.kind not in FOLDED_BY_DEFAULT or block.collapsed is not None:
            return block
        return replace(block, collapsed=False)

    def update(self, block_id: str, **changes: Any) -> None:
        """Change fields of a block."""
        with self._changing():
            self._model.update(block_id, **changes)

    def append_text(self, block_id: str, delta: str) -> None:
        """Add to a block's text: the cost is that of the new part."""
        with self._changing():
            self._model.append_text(block_id, delta)

    def remove_block(self, block_id: str) -> None:
        """Take a block out (a prompt given back to the reader)."""
        with self._changing():
            self._model.remove(block_id)
            self._search.refresh()

    def load(self, blocks: Iterable[Block]) -> None:
        """Replace everything and go to the end."""
        self.clear_find()
        with self._changing():
            self._model.load(map(self._as_unfolded, blocks))
            self.follow = True

    def load_older(self, blocks: Iterable[Block]) -> None:
        """Replace everything by the same with more before it; what is in sight stays there."""
        index, line = self._top_line() if len(self._model) else (0, 0)
        count_before = len(self._model)
        self.clear_find()
        self._model.load(map(self._as_unfolded, blocks))
        self.follow = False
        self._place((max(0, index + len(self._model) - count_before), line))

    def clear(self) -> None:
        """Forget everything."""
        self.load(())

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Changes inside are placed once, at the end: for draining many events in one frame."""
        self._batch_depth += 1
        try:
            yield
        finally:
            self._batch_depth -= 1
            if not self._batch_depth:
                self._place()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        rows_before = self._model.heights.total
        yield
        if not self.follow:
            self.unseen_lines = max(0, self.unseen_lines + self._model.heights.total - rows_before)
        if not self._batch_depth:
            self._place()

    # Keeping the place

    @property
    def _view_rows(self) -> int:
        return self.scrollable_content_region.height

    def _place(self, top: tuple[int, int] | None = None) -> None:
        """Render what is in sight, correct heights, and put the view where it belongs.

        `top` is the (block, line) to stand at the top; None keeps the present one, or the end while following.
        """
        width_cells = self.scrollable_content_region.width
        if not width_cells or not self._view_rows:
            return
        if not len(self._model):
            self._move_to(0)
            return
        if self._model.width_cells != width_cells:
            top = top or self._top_line()
            self._model.set_width(width_cells)
        if self.follow:
            self._settle_up(len(self._model) - 1, self._view_rows * 2)
            self._move_to(max(0, self._model.heights.total - self._view_rows))
            return
        index, line = top or self._top_line()
        rows = self._settle_down(index, self._view_rows + line)
        if rows < self._view_rows + line:
            self._settle_up(index - 1, self._view_rows + line)
        else:
            self._settle_up(index - 1, self._view_rows)
        line = min(line, max(0, self._model.heights[index] - 1))
        self._move_to(self._model.heights.top(index) + line)

    def _top_line(self) -> tuple[int, int]:
        return self._model.heights.at(self.scroll_offset.y)

    def _settle_down(self, index: int, rows: int) -> int:
        """Render blocks from `index` on until `rows` rows are exact; how many there are."""
        done = 0
        while index < len(self._model) and done < rows:
            done += len(self._model.rendered(index).lines)
            index += 1
        return done

    def _settle_up(self, index: int, rows: int) -> None:
        """Render blocks from `index` backwards, so that scrolling up meets no estimate."""
        while index >= 0 and rows > 0:
            rows -= len(self._model.rendered(index).lines)
            index -= 1

    def _move_to(self, row: int) -> None:
        self._is_placing = True
        try:
            size = Size(self.scrollable_content_region.width, self._model.heights.total)
            if size != self.virtual_size:
                self.virtual_size = size
                self._scroll_update(size)
            row = min(row, self.max_scroll_y)
            self.scroll_target_y = row
            self.scroll_y = row
        finally:
            self._is_placing = False
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) == 0 and round(old_value) > 0:
            self.post_message(self.TopReached())
        if self._is_placing or round(old_value) == round(new_value):
            return
        self.follow = new_value >= self.max_scroll_y
        self._place()

    def watch_follow(self, follow: bool) -> None:
        if follow:
            self.unseen_lines = 0

    def watch_unseen_lines(self, line_count: int) -> None:
        self.post_message(self.UnseenChanged(line_count))

    def watch_current_id(self) -> None:
        self.refresh()

    def on_resize(self) -> None:
        self._place()
        end_above(self, self._covered_rows)

    def on_show(self) -> None:
        self._place()

    def end_above(self, covered_rows: int) -> None:
        """End above a dialog that covers so many of the screen's lowest rows; 0 if there is none any more."""
        self._covered_rows = covered_rows
        end_above(self, covered_rows)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._is_restyled = True

    # Going places

    def action_scroll_up(self) -> None:
        self.scroll_relative(y=-1, animate=False)

    def action_scroll_down(self) -> None:
        self.scroll_relative(y=1, animate=False)

    def action_scroll_home(self) -> None:
        self.follow = False
        self._place((0, 0))

    def action_scroll_end(self) -> None:
        self.follow = True
        self._place()

    def action_half_page(self, direction: int) -> None:
        """Scroll by half a page, so that half of what was read stays."""
        self.scroll_relative(y=direction * max(1, self._view_rows // 2), animate=False)

    def action_jump_prompt(self, direction: int) -> None:
        """Put the previous or next prompt at the top."""
        if not len(self._model):
            return
        index, line = self._top_line()
        start = index
        if direction < 0 and self._model[index].kind is BlockKind.USER and line > self._first_row(index):
            start = index + 1
        target = self._model.neighbour(start, direction, _PROMPTS)
        if target is not None:
            self.show_block(self._model[target].id)
        elif direction > 0:
            self.action_scroll_end()

    @property
    def top_id(self) -> str:
        """The block at the top of the view; empty while the end is followed or nothing is there."""
        return "" if self.follow or not len(self._model) else self._model[self._top_line()[0]].id

    def show_block(self, block_id: str) -> None:
        """Scroll so that a block stands at the top (as far as there is text below it)."""
        index = self._model.index(block_id)
        self.follow = False
        self._place((index, self._first_row(index)))
        self.follow = self.scroll_offset.y >= self.max_scroll_y

    def _first_row(self, index: int) -> int:
        """The first line of a block that is not its blank row."""
        lines = self._model.rendered(index).lines
        return 1 if len(lines) > 1 and lines[0] is BLANK_LINE else 0

    def action_select_block(self, direction: int) -> None:
        """Choose the next block that folds, from the chosen one or from the edge of the view."""
        if not len(self._model):
            return
        if self.current_id is not None and self.current_id in self._model:
            start = self._model.index(self.current_id)
        elif direction > 0:
            start = self._top_line()[0] - 1
        else:
            start = self._model.heights.at(self.scroll_offset.y + self._view_rows - 1)[0] + 1
        target = self._model.neighbour(start, direction)
        if target is not None:
            self.current_id = self._model[target].id
            self._reveal(target, self._first_row(target))

    def _reveal(self, index: int, line: int) -> None:
        """Bring a line into sight, a third down if it was out of it."""
        self._model.rendered(index)
        row = self._model.heights.top(index) + line
        first = self.scroll_offset.y
        if first <= row < first + self._view_rows:
            self.refresh()
            return
        self.follow = False
        self._place(self._model.heights.at(max(0, row - self._view_rows // 3)))

    # Folding

    def toggle(self, block_id: str) -> None:
        """Fold or unfold a block, its headline staying where it is."""
        block = self.block(block_id)
        if not block.is_foldable:
            return
        was_following, self.follow = self.follow, False
        top = self._top_line()
        self._model.update(block_id, collapsed=not block.is_collapsed)
        self._place(top)
        self.follow = was_following and self.scroll_offset.y >= self.max_scroll_y

    def action_toggle_fold(self) -> None:
        """Fold or unfold the chosen block, else the last one in sight that folds."""
        if self.current_id is not None and self.current_id in self._model:
            self.toggle(self.current_id)
        elif len(self._model):
            last = self._model.heights.at(self.scroll_offset.y + self._view_rows - 1)[0]
            target = self._model.neighbour(last + 1, -1)
            if target is not None and target >= self._top_line()[0]:
                self.toggle(self._model[target].id)

    def action_open_block(self) -> None:
        """Ask for the pager on the chosen block."""
        if self.current_id is not None and self.current_id in self._model:
            self.post_message(self.OpenRequested(self.current_id))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._mouse_down_at = event.screen_offset

    def on_click(self, event: events.Click) -> None:
        if event.screen_offset != self._mouse_down_at or not len(self._model):
            return
        if self.unseen_lines and event.y == self._view_rows - 1 and event.x >= self.size.width - self._pill_cells():
            self.action_scroll_end()
            return
        row = self.scroll_offset.y + event.y
        if row >= self._model.heights.total:
            return
        index, line = self._model.heights.at(row)
        block = self._model[index]
        lines = self._model.rendered(index).lines
        if block.is_foldable and line == self._first_row(index):
            self.toggle(block.id)
        elif block.is_foldable and lines[line].text.lstrip().startswith("… "):
            self.post_message(self.OpenRequested(block.id))

    # Search

    def find(self, query: str) -> int:
        """Search and go to the nearest match upwards; how many blocks contain it."""
        top = self._top_line() if len(self._model) else (0, 0)
        last_visible = self._model.heights.at(self.scroll_offset.y + self._view_rows - 1)[0] if len(self._model) else 0
        self._search.start(query, last_visible)
        self._show_match(top)
        return self._search.block_count

    def action_find_next(self, direction: int) -> None:
        """Go to the next or previous match, around the ends."""
        if self._search.block_count:
            top = self._top_line()
            self._search.step(direction)
            self._show_match(top)

    def clear_find(self) -> None:
        """Take the search's marks off."""
        self._search.clear()
        self.refresh()

    def _show_match(self, top: tuple[int, int]) -> None:
        """Bring the present match into sight; `top` is where the view stood before a block may have unfolded."""
        place = self._search.place()
        if place is not None:
            self._place(top)
            index, line = place
            self._reveal(index, self._first_row(index) if line is None else line)
        self.refresh()

    # Selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, unwrapped and without gutters."""
        if not len(self._model):
            return None
        first, last = selection.start, selection.end
        first_block = first.y >> _ROW_BITS if first else 0
        last_block = min(last.y >> _ROW_BITS if last else len(self._model) - 1, len(self._model) - 1)
        picked: list[tuple[Line, int, int | None]] = []
        for index in range(first_block, last_block + 1):
            for number, line in enumerate(self._model.rendered(index).lines):
                span = selection.get_span(index << _ROW_BITS | number)
                if span is not None:
                    picked.append((line, span[0], None if span[1] < 0 else span[1]))
        return join_copied(picked), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # Painting

    def _pill_text(self) -> str:
        lines = self.unseen_lines
        return f" {lines} new line{'s' if lines != 1 else ''} ↓ " if lines else ""

    def _pill_cells(self) -> int:
        return len(self._pill_text()) + 2

    @property
    def _painter(self) -> RowPainter:
        painter = self._made_painter
        if painter is None or self._is_restyled:
            colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
            painter = self._made_painter = painter or RowPainter(colours, self.rich_style)
            painter.use(colours, self.rich_style, self._linked_folder)
            self._is_restyled = False
        return painter

    def render_lines(self, crop: Region) -> list[Strip]:
        """As every widget's, without what rows need that have borders, padding or tints; so a row that only moves is
        not drawn anew: the strip it had keeps its crops and terminal codes."""
        width_cells, background = self.region.width, self.background_colors[1]
        filters, base = self.get_line_filters(), self._painter.base
        strips = []
        for y in crop.line_range:
            strip = self.render_line(y).adjust_cell_length(width_cells, base)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip.crop(*crop.column_span))
        return strips

    def render_line(self, y: int) -> Strip:
        painter, width_cells = self._painter, self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        if row >= self._model.heights.total:
            strip = painter.blank(width_cells, (max(1, len(self._model)) << _ROW_BITS) - 1)
        else:
            index, number = self._model.heights.at(row)
            rendered = self._model.rendered(index)
            place = index << _ROW_BITS | number
            if number >= len(rendered.lines):
                strip = painter.blank(width_cells, place)
            else:
                strip = painter.row(
                    rendered.lines[number], width_cells, place, self._overlays(index, number, place, rendered)
                )
        if self.unseen_lines and y == self._view_rows - 1:
            strip = painter.with_pill(strip, self._pill_text())
        return strip

    def _overlays(self, index: int, number: int, place: int, rendered: Rendered) -> list[Overlay]:
        """What is painted over a row: the chosen block, search matches, the selection."""
        overlays: list[Overlay] = []
        if self._model[index].id == self.current_id and number == self._first_row(index):
            overlays.append((0, -1, "fill.current"))
        for start, end, is_current in self._search.pieces(index, number):
            overlays.append((start, end, "found.current" if is_current else "found"))
        selection = self.text_selection
        span = selection.get_span(place) if selection is not None else None
        if span is not None and rendered.lines[number].text:
            line = rendered.lines[number]
            end = len(line.text) if span[1] < 0 else span[1]
            start = max(span[0], line.gutter_chars)
            if start < end:
                overlays.append((start, end, "selection"))
        return overlays
