"""The transcript on the whole screen, everything unfolded; letters are keys here, as there is nothing to type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.editor import read_text
from pyagent.ui.keymap import bound
from pyagent.ui.lines import Line, Span, inert_row, truncate
from pyagent.ui.scrollback import show_in_scrollback
from pyagent.ui.search_bar import SearchBar
from pyagent.ui.session_view import SessionView
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import ANSI, palette
from pyagent.ui.transcript import Transcript
from pyagent.ui.transcript_text import newest_rows, source_text, terminal_row

UNFOLDED_ROWS = 400
"""Rows of one output here: a dozen pages. The pager (o) has what is beyond; laying out far more would be felt."""

_KEYS = (
    ("q", "leave", 0),
    ("/", "search", 1),
    ("{ }", "prompts", 2),
    ("[", "print", 4),
    ("v", "editor", 5),
    ("J K", "choose", 6),
    ("enter", "fold", 7),
)
"""(key, what it does, rank): the higher ranks go first where the row is too narrow."""


class TranscriptScreen(Screen[None]):
    """Reads along with the session while it is open. `top_id` is the block to begin at; empty for the end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("transcript:exit", "leave"),
        Binding("escape", "back", show=False),
        bound("transcript:find", "search", priority=True),
        bound("transcript:print", "print"),
        bound("transcript:edit", "edit"),
    ]
    AUTO_FOCUS = "Transcript"

    def __init__(self, session: SessionView, environ: Mapping[str, str], top_id: str) -> None:
        super().__init__()
        self._session = session
        self._environ = environ
        self._top_id = top_id

    def compose(self) -> ComposeResult:
        self._transcript = Transcript(is_unfolded=True, detail_rows=UNFOLDED_ROWS)
        yield self._transcript
        yield ReadingSearch(self._transcript)
        yield KeyRow()

    def on_mount(self) -> None:
        self._session.show_in(self._transcript)
        if self._top_id:
            self.call_after_refresh(self._transcript.show_block, self._top_id)

    def on_unmount(self) -> None:
        self._session.leave(self._transcript)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_back(self) -> None:
        """Take off the marks of a search, else leave."""
        field = self.query_one(ReadingSearch)
        if field.display:
            field.action_leave()
        else:
            self.dismiss(None)

    def action_search(self) -> None:
        if self.query_one(ReadingSearch).has_focus:
            raise SkipAction
        self.query_one(ReadingSearch).open()

    def on_search_bar_found(self, event: SearchBar.Found) -> None:
        event.stop()
        found = "nothing found" if not event.count else f"found in {event.count:,} block{'s' * (event.count != 1)}"
        self.query_one(KeyRow).remark(found + " · n N next" * bool(event.count) if event.query else "")

    def on_search_bar_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self._transcript.focus()

    def action_print(self) -> None:
        """Show the newest rows in the terminal's normal screen."""
        # There the background is the terminal's own, so the colours must be, too.
        blocks, colours = self._session.blocks, palette(ANSI)
        rows, left_out_count = newest_rows(blocks, max(20, self.size.width - 1))
        console = self.app.console
        system, has_colour = console._color_system, not console.no_color
        printed = [terminal_row(row, colours, system, has_colour=has_colour) for row in rows]
        if left_out_count:
            printed.insert(0, f"… the {left_out_count:,} oldest blocks are left out; /export writes them all\n")
        self._away(lambda: show_in_scrollback(printed))

    def action_edit(self) -> None:
        """Open the whole as text in $VISUAL, $EDITOR or $PAGER."""
        text = source_text(self._session.blocks)
        self.query_one(KeyRow).remark(self._away(lambda: read_text(text, self._environ)) or "")

    def _away(self, action: Callable[[], str | None]) -> str | None:
        """Do something that needs the terminal for itself."""
        with self.app.suspend():
            result = action()
        self.app.refresh(layout=True)
        return result


class ReadingSearch(SearchBar):
    """Searches; Enter gives the keys back to the text, where n and N go on."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "keep", show=False, priority=True)]

    def action_keep(self) -> None:
        self.screen.set_focus(self._transcript)


class KeyRow(Widget):
    """The last row: what the keys do, or a remark."""

    DEFAULT_CSS = """
    KeyRow { height: 1; width: 100%; background: $surface; color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._remark = ""

    def remark(self, text: str) -> None:
        """Show this in front of the keys; empty takes it away."""
        self._remark = text
        self.refresh()

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        return line_strip(key_line(self._remark, self.size.width), colours, self.size.width, self.rich_style)


def key_line(remark: str, width_cells: int) -> Line:
    """`Transcript  q leave · / search · …`, as many keys as fit."""
    head = truncate(inert_row(remark) if remark else "Transcript", max(4, width_cells - 12))
    room_cells = width_cells - cell_len(head) - 3
    keys = list(_KEYS)
    while len(keys) > 1 and _cells(keys) > room_cells:
        keys.remove(max(keys, key=lambda key: key[2]))
    spans = [Span(f" {head}", "bar.accent")]
    for key, word, _ in keys:
        spans += [Span(" · ", "bar.faint"), Span(key, "bar.strong"), Span(f" {word}", "bar")]
    return Line(tuple(spans), fill="bar")


def _cells(keys: Sequence[tuple[str, str, int]]) -> int:
    return sum(len(key) + len(word) + 4 for key, word, _ in keys)
