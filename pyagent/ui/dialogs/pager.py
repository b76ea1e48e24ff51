"""Reading something long in full: text, Markdown, output or a diff, with search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from pyagent.ui.block_view import block_lines
from pyagent.ui.blocks import Block, BlockKind
from pyagent.ui.dialogs.rows import Layout, Rows, set_title
from pyagent.ui.diff_view import diff_view
from pyagent.ui.lines import BLANK_LINE, Line, Span, wrap_text
from pyagent.ui.markdown import markdown_lines
from pyagent.ui.sign_input import SignInput

MAX_PAGER_LINES = 50_000
"""More lines are cut with a remark: laying out a million would freeze the screen."""


def text_layout(text: str) -> Layout:
    """Literal text."""

    def lines(width_cells: int) -> Sequence[Line]:
        source = text.split("\n")
        shown = "\n".join(source[:MAX_PAGER_LINES])
        made = wrap_text(shown, width_cells - 1, "text")
        if len(source) > MAX_PAGER_LINES:
            made.append(Line((Span(f"… {len(source) - MAX_PAGER_LINES} more lines", "muted"),)))
        return made

    return lines


def markdown_layout(source: str) -> Layout:
    """Rendered Markdown."""
    return lambda width_cells: markdown_lines(source, width_cells - 1)


def block_layout(block: Block) -> Layout:
    """The whole of a transcript block, nothing folded or capped."""

    def lines(width_cells: int) -> Sequence[Line]:
        if block.kind is BlockKind.BOUNDARY:
            return markdown_lines(block.detail, width_cells - 1)
        if block.kind not in (BlockKind.TOOL, BlockKind.DIFF):
            return block_lines(block, width_cells)
        made: list[Line] = wrap_text(block.text, width_cells - 1, "bold") if block.text else []
        if block.diff:
            made += (
                [BLANK_LINE, *diff_view(block.diff, width_cells - 1)] if made else diff_view(block.diff, width_cells)
            )
        if block.detail:
            made += (
                [BLANK_LINE, *text_layout(block.detail)(width_cells)]
                if made
                else text_layout(block.detail)(width_cells)
            )
        return made

    return lines


class PagerScreen(ModalScreen[None]):
    """Shows a layout over the whole screen until q or Esc."""

    DEFAULT_CSS = """
    PagerScreen { background: $background; }
    PagerScreen > Vertical {
        width: 100%;
        height: 100%;
        border: round $border-blurred;
        border-title-color: $primary;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
    }
    PagerScreen Rows { height: 1fr; }
    PagerScreen Input { display: none; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("escape", "back", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "next(1)", show=False),
        Binding("N", "next(-1)", show=False),
    ]
    AUTO_FOCUS = "Rows"

    def __init__(self, title: str, layout: Layout) -> None:
        super().__init__()
        self._title = title
        self._shown = layout

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            set_title(box, self._title)
            box.border_subtitle = "/ search · n N next · q leave"
            yield Rows(self._shown)
            yield SignInput(placeholder="Search", compact=True)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_back(self) -> None:
        field = self.query_one(Input)
        if field.display:
            field.display = False
            self.query_one(Rows).focus()
        else:
            self.dismiss(None)

    def action_search(self) -> None:
        field = self.query_one(Input)
        field.display = True
        field.focus()

    def action_next(self, direction: int) -> None:
        self.query_one(Rows).find_next(direction)
        self._show_position()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(Rows).find(event.value)
        self._show_position()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(Rows).focus()

    def _show_position(self) -> None:
        number, count = self.query_one(Rows).match_position
        self.query_one(Vertical).border_subtitle = f"match {number} of {count} · n N next · q leave"
