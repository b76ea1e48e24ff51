"""The question before a tool runs: the real command, path or diff, and what the user may answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from pyagent.ui.blocks import DiffLine
from pyagent.ui.dialogs.bottom_box import BottomBox
from pyagent.ui.dialogs.rows import FIELD_KEYS, Rows, set_title
from pyagent.ui.diff_view import diff_view
from pyagent.ui.keymap import bound
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, truncate, wrap_spans, wrap_text
from pyagent.ui.sign_input import SignInput
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

_CHOOSING_KEYS = "y yes · n no · tab instead · ↑↓ choose"
_OTHER_ROWS = 4
"""Border, the margin above the answers, and one row of the conversation behind."""


class Approval(StrEnum):
    """What the user decided."""

    ONCE = "once"
    SESSION = "session"
    NO = "no"
    INSTEAD = "instead"


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The decision; `text` is what the model shall do instead, for INSTEAD."""

    decision: Approval
    text: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What is asked. Show things as they will happen: the whole command, the resolved path, the diff.

    `rule` names what "for this session" would allow; empty takes that answer away. `warnings` are set above the
    options ("writes outside the project").
    """

    title: str
    command: str = ""
    path: str = ""
    diff: tuple[DiffLine, ...] = ()
    text: str = ""
    reason: str = ""
    rule: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of a list."""

    label: str
    decision: Approval


def options_of(request: ApprovalRequest) -> tuple[Option, ...]:
    """The answers on offer, in order of their digits."""
    session = (Option(f"Yes, and allow {request.rule} for this session", Approval.SESSION),) if request.rule else ()
    return (
        Option("Yes, once", Approval.ONCE),
        *session,
        Option("No", Approval.NO),
        Option("No, and tell the model what to do instead", Approval.INSTEAD),
    )


def request_lines(request: ApprovalRequest, width_cells: int) -> list[Line]:
    """What the request is about, as lines; warnings first, since a long diff scrolls."""
    head = [line for warning in request.warnings for line in wrap_text(f"! {warning}", width_cells, "warning bold")]
    if request.path:
        head += wrap_spans((Span("file  ", "muted"), Span(inert_row(request.path), "bold")), width_cells)
    if request.reason:
        head += wrap_text(request.reason, width_cells, "muted")
    sections = [head] if head else []
    if request.command:
        rows = wrap_text(request.command, width_cells - 3, "bold")
        sections.append([Line((Span(" "), *row.spans), 1, row.joint, "fill.code") for row in rows])
    if request.diff:
        sections.append(diff_view(request.diff, width_cells))
    if request.text:
        sections.append(wrap_text(request.text, width_cells, "text"))
    lines: list[Line] = []
    for section in sections:
        lines += [BLANK_LINE, *section] if lines else section
    return lines


class OptionRows(Widget, can_focus=True):
    """Numbered answers with one chosen."""

    DEFAULT_CSS = """
    OptionRows { height: auto; margin-top: 1; background: $background; color: $foreground; }
    """

    class Chosen(Message):
        """An answer was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        self._labels = tuple(inert_row(label) for label in labels)
        self.chosen = 0

    def move(self, step: int) -> None:
        """Choose another answer, around the ends."""
        self.chosen = (self.chosen + step) % len(self._labels)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        if 0 <= event.y < len(self._labels):
            self.post_message(self.Chosen(event.y))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._labels)

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        if y >= len(self._labels):
            return Strip.blank(self.size.width, self.rich_style)
        is_chosen = y == self.chosen
        label = truncate(self._labels[y], self.size.width - 6)
        role = "accent bold" if is_chosen else "text"
        spans = (Span("❯ " if is_chosen else "  ", "accent"), Span(f"{y + 1}. ", "muted"), Span(label, role))
        line = Line(spans, fill="fill.current" if is_chosen else "")
        return line_strip(line, colours, self.size.width, self.rich_style)


class ApprovalScreen(ModalScreen[ApprovalAnswer]):
    """Asks once; the answer is the screen's result."""

    DEFAULT_CSS = """
    ApprovalScreen { align: center bottom; }
    ApprovalScreen > Vertical {
        width: 100%;
        height: auto;
        max-height: 100%;
        border: round $warning;
        border-title-color: $warning;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
    }
    ApprovalScreen Input { display: none; background: $surface; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("confirm:yes", "decide('once')"),
        bound("confirm:no", "decide('no')"),
        Binding("escape", "back", "No", show=False),
        Binding("enter", "take", "Take the chosen answer", show=False),
        bound("confirm:previous", "move(-1)"),
        bound("confirm:next", "move(1)"),
        bound("confirm:nextField", "instead"),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", show=False),
        *(Binding(str(digit), f"digit({digit})", show=False) for digit in range(1, 5)),
    ]
    AUTO_FOCUS = "OptionRows"

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__()
        self._request = request
        self._options = options_of(request)

    def compose(self) -> ComposeResult:
        with BottomBox() as box:
            set_title(box, self._request.title)
            box.border_subtitle = _CHOOSING_KEYS
            rows = Rows(lambda width_cells: request_lines(self._request, width_cells))
            rows.styles.max_height = self._room_rows(self.app.size.height)
            yield rows
            yield OptionRows([option.label for option in self._options])
            yield SignInput(placeholder="What should the model do instead? Enter sends, Esc goes back", compact=True)

    def on_resize(self, event: events.Resize) -> None:
        for rows in self.query(Rows):  # None while the screen is being taken down.
            rows.styles.max_height = self._room_rows(event.size.height)

    def _room_rows(self, screen_rows: int) -> int:
        """Rows left for what is asked about: the answers always stay in sight, from the first frame on."""
        return max(3, screen_rows - _OTHER_ROWS - len(self._options))

    def action_decide(self, decision: str) -> None:
        self.dismiss(ApprovalAnswer(Approval(decision)))

    def action_take(self) -> None:
        self._answer(self.query_one(OptionRows).chosen)

    def action_digit(self, digit: int) -> None:
        if digit <= len(self._options):
            self._answer(digit - 1)

    def action_move(self, step: int) -> None:
        self.query_one(OptionRows).move(step)

    def action_page(self, direction: int) -> None:
        self.query_one(Rows).action_half_page(direction)

    def action_instead(self) -> None:
        self.query_one(OptionRows).display = False
        field = self.query_one(Input)
        field.display = True
        field.focus()
        self.query_one(Vertical).border_subtitle = FIELD_KEYS

    def action_back(self) -> None:
        field = self.query_one(Input)
        if field.has_focus:
            field.display = False
            options = self.query_one(OptionRows)
            options.display = True
            options.focus()
            self.query_one(Vertical).border_subtitle = _CHOOSING_KEYS
        else:
            self.dismiss(ApprovalAnswer(Approval.NO))

    def on_option_rows_chosen(self, event: OptionRows.Chosen) -> None:
        self._answer(event.index)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.dismiss(ApprovalAnswer(Approval.INSTEAD, event.value.strip()))

    def _answer(self, index: int) -> None:
        decision = self._options[index].decision
        if decision is Approval.INSTEAD:
            self.action_instead()
        else:
            self.dismiss(ApprovalAnswer(decision))
