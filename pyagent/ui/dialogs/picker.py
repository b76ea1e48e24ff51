"""Choosing one of many: a list with search as you type and a preview beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from pyagent.ui.completion import Candidate, candidate_line
from pyagent.ui.dialogs.rows import Rows, set_title
from pyagent.ui.fuzzy import FuzzyMatch, rank
from pyagent.ui.keymap import bound
from pyagent.ui.lines import Line, plain_line
from pyagent.ui.markdown import markdown_lines
from pyagent.ui.sign_input import SignInput
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

_MAX_MATCHES = 500
_PREVIEW_FROM_CELLS = 90
"""Narrower than this there is no room for a preview beside the list."""


@dataclass(frozen=True, slots=True)
class PickerItem:
    """One choice: what comes back, what is shown and searched, a remark."""

    id: str
    label: str
    detail: str = ""


Preview = Callable[[str], str]
"""The Markdown to show for an item's id."""


class PickerList(Widget):
    """The matching items with one chosen; draws only what is in sight."""

    DEFAULT_CSS = """
    PickerList { width: 1fr; height: 100%; background: $background; color: $foreground; }
    """

    class Moved(Message):
        """Another item is chosen."""

    class Clicked(Message):
        """An item was clicked."""

    def __init__(
        self, items: Sequence[PickerItem], *, label_share: float = 0.5, none_words: str = "nothing matches"
    ) -> None:
        """`label_share`: how much of the width labels may take, so that the remarks behind them stand in a column.
        `none_words`: what stands in a list that has no item, whatever is searched for."""
        super().__init__()
        self._label_share = label_share
        self._none_words = none_words
        self._items = tuple(items)
        self._matches: list[tuple[PickerItem, FuzzyMatch]] = []
        self._chosen = 0
        self._first = 0
        self.search("")

    @property
    def chosen(self) -> PickerItem | None:
        """The chosen item, if anything matches."""
        return self._matches[self._chosen][0] if self._matches else None

    @property
    def labels(self) -> tuple[str, ...]:
        """What matches, best first."""
        return tuple(item.label for item, _ in self._matches)

    def search(self, query: str) -> None:
        """Keep what matches."""
        self._matches = rank(query, self._items, lambda item: f"{item.label} {item.detail}", limit=_MAX_MATCHES)
        self._chosen = self._first = 0
        self._changed()

    def replace(self, items: Sequence[PickerItem], query: str) -> None:
        """Other items in place of these; the same row stays chosen."""
        chosen = self._chosen
        self._items = tuple(items)
        self.search(query)
        self.move(chosen)

    def choose(self, item_id: str) -> None:
        """Choose an item by its id, if it is listed."""
        for index, (item, _) in enumerate(self._matches):
            if item.id == item_id:
                self.move(index - self._chosen)

    def move(self, step: int) -> None:
        """Choose another item; the ends hold."""
        if self._matches:
            self._chosen = min(max(0, self._chosen + step), len(self._matches) - 1)
            self._changed()

    def _changed(self) -> None:
        rows = max(1, self.size.height)
        self._first = max(min(self._first, self._chosen), self._chosen - rows + 1)
        self._first = min(self._first, max(0, len(self._matches) - rows))
        if self.is_mounted:
            self.post_message(self.Moved())
            self.refresh()

    def on_resize(self) -> None:
        self._changed()

    def on_click(self, event: events.Click) -> None:
        index = self._first + event.y
        if index < len(self._matches):
            self._chosen = index
            self.post_message(self.Clicked())

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        index = self._first + y
        width_cells = self.size.width
        if index >= len(self._matches):
            words = "nothing matches" if self._items else self._none_words
            line = plain_line(f"  {words}", "muted") if not self._matches and y == 0 else Line()
            return line_strip(line, colours, width_cells, self.rich_style)
        item, match = self._matches[index]
        label_cells = max(cell_len(item.label) for item, _ in self._matches[self._first : self._first + 100])
        candidate = Candidate(item.label, item.detail)
        most_cells = int(width_cells * self._label_share)
        line = candidate_line(
            candidate, match, width_cells, min(label_cells, most_cells), is_chosen=index == self._chosen
        )
        return line_strip(line, colours, width_cells, self.rich_style)


class PickerScreen(ModalScreen[str | None]):
    """The result is the id of the chosen item, or None."""

    DEFAULT_CSS = """
    PickerScreen { align: center middle; background: $background 60%; }
    PickerScreen > Vertical {
        width: 92%;
        height: 80%;
        border: round $border;
        border-title-color: $primary;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
    }
    PickerScreen Input { margin-bottom: 1; background: $surface; }
    PickerScreen Horizontal { height: 1fr; }
    PickerScreen Rows { width: 1fr; height: 100%; border-left: solid $border-blurred; padding-left: 1; display: none; }
    PickerScreen.-wide Rows { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("select:cancel", "cancel"),
        bound("select:previous", "move(-1)", priority=True),
        bound("select:next", "move(1)", priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        bound("select:accept", "take", priority=True),
    ]
    AUTO_FOCUS = "Input"
    HINT = "type to search · ↑↓ choose · enter take · esc leave"

    def __init__(
        self, title: str, items: Sequence[PickerItem], *, preview: Preview | None = None, chosen_id: str = ""
    ) -> None:
        super().__init__()
        self._title = title
        self._items = tuple(items)
        self._preview = preview
        self._chosen_id = chosen_id

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            set_title(box, self._title)
            box.border_subtitle = self.HINT
            yield SignInput(placeholder="Search", compact=True)
            with Horizontal():
                yield PickerList(self._items)
                yield Rows(lambda width_cells: ())

    def on_mount(self) -> None:
        if self._chosen_id:
            self.query_one(PickerList).choose(self._chosen_id)
        self._show_preview()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(self._preview is not None and event.size.width >= _PREVIEW_FROM_CELLS, "-wide")
        self._show_preview()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(PickerList).search(event.value)

    def on_picker_list_moved(self) -> None:
        self._show_preview()

    def on_picker_list_clicked(self) -> None:
        self.action_take()

    def action_move(self, step: int) -> None:
        self.query_one(PickerList).move(step)

    def action_take(self) -> None:
        chosen = self.query_one(PickerList).chosen
        if chosen is not None:
            self.dismiss(chosen.id)

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _show_preview(self) -> None:
        chosen = self.query_one(PickerList).chosen
        if self._preview is None or not self.has_class("-wide"):
            return
        source = self._preview(chosen.id) if chosen is not None else ""
        self.query_one(Rows).show(lambda width_cells: markdown_lines(source, width_cells - 1))
