"""A list with what belongs to the chosen row beside or below it, and keys that act on that row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from pyagent.pages import Page
from pyagent.ui.dialogs.picker import PickerItem, PickerList
from pyagent.ui.dialogs.rows import Rows, set_title
from pyagent.ui.lines import Line, inert, plain_line, truncate
from pyagent.ui.sign_input import SignInput

BESIDE_FROM_CELLS = 100
"""Narrower than this the detail stands below the list."""

PageT = TypeVar("PageT", bound=Page)
SendCommand = Callable[[str, str], None]
"""Has the agent do a command: its name and argument."""


class BrowserScreen(ModalScreen[None], Generic[PageT]):
    """Shows a page's rows. Subclasses say what they are and what keys do; the agent's answer replaces the page."""

    DEFAULT_CSS = """
    BrowserScreen { background: $background; }
    BrowserScreen > Vertical {
        width: 100%;
        height: 100%;
        border: round $border-blurred;
        border-title-color: $primary;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
    }
    BrowserScreen #remark { height: auto; max-height: 3; }
    BrowserScreen #panes { height: 1fr; layout: vertical; }
    BrowserScreen #panes PickerList { width: 100%; height: 2fr; }
    BrowserScreen #panes #detail { width: 100%; height: 3fr; max-height: 100%; border-top: solid $border-blurred; }
    BrowserScreen.-beside #panes { layout: horizontal; }
    BrowserScreen.-beside #panes PickerList { width: 5fr; height: 100%; }
    BrowserScreen.-beside #panes #detail {
        width: 6fr; height: 100%; border-top: none; border-left: solid $border-blurred; padding-left: 1;
    }
    BrowserScreen Input { display: none; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("escape", "back", show=False),
        Binding("up,ctrl+p", "move(-1)", show=False),
        Binding("down,ctrl+n", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
        Binding("j", "move(1)", show=False),
        Binding("home", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
        Binding("pageup", "scroll_detail(-1)", show=False),
        Binding("pagedown,space", "scroll_detail(1)", show=False),
        Binding("slash", "search", show=False),
        Binding("enter", "take", show=False),
    ]
    AUTO_FOCUS = ""
    KEYS = "↑↓ choose · q leave"
    LABEL_SHARE = 0.75

    def __init__(self, page: PageT, send: SendCommand) -> None:
        super().__init__()
        self.page = page
        self.send_command = send
        self._answer: Callable[[str], None] | None = None
        self._query = ""

    # ── what subclasses say ──

    @abstractmethod
    def title_words(self) -> str: ...

    @abstractmethod
    def items(self) -> Sequence[PickerItem]:
        """The rows."""

    @abstractmethod
    def detail(self, item_id: str, width_cells: int) -> Sequence[Line]:
        """What belongs to a row."""

    def remark(self) -> str:
        """Words above the list; empty for none. Where the list is empty, they alone say so."""
        return ""

    def take(self, item_id: str) -> None:
        """Enter was pressed on a row."""

    # ── the screen ──

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            set_title(box, self.title_words())
            yield Rows(self._remark_lines, id="remark")
            with Horizontal(id="panes"):
                yield PickerList(self.items(), label_share=self.LABEL_SHARE, none_words="")
                yield Rows(self._detail_lines, id="detail")
            yield SignInput(compact=True)

    def on_mount(self) -> None:
        for rows in self.query(Rows):
            rows.can_focus = False
        self._say_keys()
        self._show_all()

    def accepts(self, page: Page) -> bool:
        """Whether an answer of the agent belongs here."""
        return type(page) is type(self.page)

    def show(self, page: PageT) -> None:
        """Another state of the same page."""
        self.page = page
        rows = self.query_one(PickerList)
        chosen = rows.chosen
        rows.replace(self.items(), self._query)
        if chosen is not None:
            rows.choose(chosen.id)
        self._show_all()

    @property
    def chosen_id(self) -> str:
        """The chosen row; empty if there is none."""
        chosen = self.query_one(PickerList).chosen
        return chosen.id if chosen is not None else ""

    def _show_all(self) -> None:
        set_title(self.query_one(Vertical), self.title_words())
        self.query_one("#remark", Rows).show(self._remark_lines)
        self._show_detail()

    def _show_detail(self) -> None:
        self.query_one("#detail", Rows).show(self._detail_lines)

    def _remark_lines(self, width_cells: int) -> Sequence[Line]:
        words = self.remark()
        return [plain_line(truncate(inert(words).replace("\n", " "), width_cells), "accent")] if words else []

    def _detail_lines(self, width_cells: int) -> Sequence[Line]:
        chosen = self.chosen_id if self.is_mounted else ""
        return self.detail(chosen, max(20, width_cells - 1)) if chosen else []

    def keys(self) -> str:
        """What the keys do, for the frame."""
        return self.KEYS

    def _say_keys(self) -> None:
        self.say(self.keys())

    def say(self, words: str) -> None:
        """Show words in the frame."""
        self.query_one(Vertical).border_subtitle = Text(inert(words))

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE_FROM_CELLS, "-beside")

    def on_picker_list_moved(self) -> None:
        self._show_detail()

    def on_picker_list_clicked(self) -> None:
        self.query_one(PickerList).move(0)

    def action_move(self, step: int) -> None:
        self.query_one(PickerList).move(step)

    def action_scroll_detail(self, direction: int) -> None:
        self.query_one("#detail", Rows).action_half_page(direction)

    def action_take(self) -> None:
        if self.chosen_id:
            self.take(self.chosen_id)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_back(self) -> None:
        if self.query_one(Input).display:
            self._end_input()
        elif self._query:
            self._filter("")
        else:
            self.dismiss(None)

    # ── words from the person ──

    def ask(self, placeholder: str, value: str, answer: Callable[[str], None]) -> None:
        """Have a line typed; `answer` gets it."""
        self._answer = answer
        field = self.query_one(Input)
        field.placeholder, field.value = placeholder, value
        field.cursor_position = len(value)
        field.display = True
        field.focus()
        self.say("enter take · esc leave as it is")

    def action_search(self) -> None:
        self.ask("Search", self._query, lambda words: None)
        self._answer = None

    def _filter(self, query: str) -> None:
        self._query = query
        self.query_one(PickerList).search(query)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._answer is None and self.query_one(Input).display:
            self._filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        answer, words = self._answer, event.value
        self._end_input()
        if answer is not None and words.strip():
            answer(words.strip())

    def _end_input(self) -> None:
        field = self.query_one(Input)
        self._answer = None
        field.display = False
        self.set_focus(None)
        self._say_keys()
