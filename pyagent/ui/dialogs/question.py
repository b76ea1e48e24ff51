"""The model's own questions: one after the other, with options to choose and a field for other words."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

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

from pyagent.events import Question
from pyagent.ui.dialogs.bottom_box import BottomBox
from pyagent.ui.dialogs.rows import FIELD_KEYS, Rows, set_title
from pyagent.ui.keymap import bound
from pyagent.ui.lines import Line, Span, inert, truncate, wrap_text
from pyagent.ui.sign_input import SignInput
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

MAX_DESCRIPTION_ROWS = 2
"""Of each option: four of them and the question must fit a terminal of 24 rows."""

OTHER = "Something else …"

_OTHER_ROWS = 4
"""Border, the margin above the options, and one row of the conversation behind."""

QuestionAnswers: TypeAlias = tuple[tuple[str, ...], ...]
"""For each question the labels chosen, or the person's own words."""


class ChoiceRows(Widget, can_focus=True):
    """The options of one question, with their descriptions; the last row is for other words."""

    DEFAULT_CSS = """
    ChoiceRows { height: auto; margin-top: 1; background: $background; color: $foreground; }
    """

    class Chosen(Message):
        """An option was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.show(question)

    def show(self, question: Question) -> None:
        """Offer another question's options, none chosen yet."""
        self._question = question
        self.chosen = 0
        self.picked: set[int] = set()
        self.refresh(layout=True)

    @property
    def count(self) -> int:
        """Options, with the one for other words."""
        return len(self._question.options) + 1

    def move(self, step: int) -> None:
        """Go to another option, around the ends."""
        self.chosen = (self.chosen + step) % self.count
        self.refresh()

    def toggle(self, index: int) -> None:
        """Pick an option or put it back, where several may be picked."""
        self.picked ^= {index}
        self.refresh()

    def _rows(self, width_cells: int) -> list[tuple[int, Line]]:
        """(option, line) of each row."""
        rows: list[tuple[int, Line]] = []
        for index in range(self.count):
            is_chosen = index == self.chosen
            is_other = index == len(self._question.options)
            label = OTHER if is_other else inert(" ".join(self._question.options[index].label.split()))
            mark = ""
            if self._question.is_multi_select and not is_other:
                mark = "[x] " if index in self.picked else "[ ] "
            spans = (
                Span("❯ " if is_chosen else "  ", "accent"),
                Span(f"{index + 1}. {mark}", "muted"),
                Span(truncate(label, max(8, width_cells - 10)), "accent bold" if is_chosen else "text"),
            )
            rows.append((index, Line(spans, fill="fill.current" if is_chosen else "")))
            if not is_other:
                words = self._question.options[index].description
                wrapped = wrap_text(words, max(8, width_cells - 5), "muted") if words.strip() else []
                for line in wrapped[:MAX_DESCRIPTION_ROWS]:
                    rows.append((index, Line((Span("     "), *line.spans))))
        return rows

    def on_click(self, event: events.Click) -> None:
        rows = self._rows(self.size.width)
        if 0 <= event.y < len(rows):
            self.post_message(self.Chosen(rows[event.y][0]))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width))

    def render_line(self, y: int) -> Strip:
        rows = self._rows(self.size.width)
        if y >= len(rows):
            return Strip.blank(self.size.width, self.rich_style)
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        return line_strip(rows[y][1], colours, self.size.width, self.rich_style)


class QuestionScreen(ModalScreen[QuestionAnswers]):
    """Asks all questions; the answers are the screen's result. Esc at the first one leaves them unanswered."""

    DEFAULT_CSS = """
    QuestionScreen { align: center bottom; }
    QuestionScreen > Vertical {
        width: 100%;
        height: auto;
        max-height: 100%;
        border: round $accent;
        border-title-color: $accent;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        background: $background;
        padding: 0 1;
    }
    QuestionScreen Input { display: none; background: $surface; margin-top: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("enter", "take", show=False),
        Binding("space", "pick", show=False),
        bound("confirm:previous", "move(-1)"),
        bound("confirm:next", "move(1)"),
        bound("confirm:nextField", "other"),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        *(Binding(str(digit), f"digit({digit})", show=False) for digit in range(1, 6)),
    ]
    AUTO_FOCUS = "ChoiceRows"

    def __init__(self, questions: tuple[Question, ...]) -> None:
        super().__init__()
        self._questions = questions
        self._answers: list[tuple[str, ...]] = []

    @property
    def _question(self) -> Question:
        return self._questions[len(self._answers)]

    def compose(self) -> ComposeResult:
        with BottomBox():
            yield Rows(lambda width_cells: wrap_text(self._question.text, width_cells, "bold"))
            yield ChoiceRows(self._question)
            yield SignInput(placeholder="Your answer. Enter sends, Esc goes back", compact=True)

    def on_mount(self) -> None:
        self._name_question()

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size)

    def _fit(self, size: Size) -> None:
        """The question scrolls so that its options stay in sight."""
        choices = self.query_one(ChoiceRows).get_content_height(size, size, max(10, size.width - 4))
        self.query_one(Rows).styles.max_height = max(3, size.height - _OTHER_ROWS - choices)

    def _name_question(self) -> None:
        box = self.query_one(Vertical)
        place = f" ({len(self._answers) + 1} of {len(self._questions)})" if len(self._questions) > 1 else ""
        set_title(box, f"{self._question.header or 'Question'}{place}")
        keys = "space picks · enter takes" if self._question.is_multi_select else "enter takes"
        box.border_subtitle = f"↑↓ choose · {keys} · tab other words · esc back"

    def _show_question(self) -> None:
        self.query_one(Input).value = ""
        self._close_field()
        self.query_one(ChoiceRows).show(self._question)
        self.query_one(Rows).show(lambda width_cells: wrap_text(self._question.text, width_cells, "bold"))
        self._fit(self.size)
        self._name_question()

    def _answer(self, *words: str) -> None:
        self._answers.append(words)
        if len(self._answers) == len(self._questions):
            self.dismiss(tuple(self._answers))
        else:
            self._show_question()

    def _picked_labels(self) -> list[str]:
        return [self._question.options[index].label for index in sorted(self.query_one(ChoiceRows).picked)]

    def _choose(self, index: int) -> None:
        if index == len(self._question.options):
            self.action_other()
        elif self._question.is_multi_select:
            self.query_one(ChoiceRows).toggle(index)
        else:
            self._answer(self._question.options[index].label)

    def action_take(self) -> None:
        chosen = self.query_one(ChoiceRows).chosen
        picked = self._picked_labels()
        if picked and chosen < len(self._question.options):
            self._answer(*picked)
        elif chosen < len(self._question.options):
            self._answer(self._question.options[chosen].label)
        else:
            self.action_other()

    def action_pick(self) -> None:
        if self._question.is_multi_select:
            self._choose(self.query_one(ChoiceRows).chosen)

    def action_digit(self, digit: int) -> None:
        if digit <= self.query_one(ChoiceRows).count:
            self._choose(digit - 1)

    def action_move(self, step: int) -> None:
        self.query_one(ChoiceRows).move(step)

    def action_page(self, direction: int) -> None:
        self.query_one(Rows).action_half_page(direction)

    def action_other(self) -> None:
        self.query_one(ChoiceRows).display = False
        field = self.query_one(Input)
        field.display = True
        field.focus()
        self.query_one(Vertical).border_subtitle = FIELD_KEYS

    def _close_field(self) -> None:
        self.query_one(Input).display = False
        choices = self.query_one(ChoiceRows)
        choices.display = True
        choices.focus()

    def action_back(self) -> None:
        if self.query_one(Input).has_focus:
            self._close_field()
            self._name_question()
        elif self._answers:
            self._answers.pop()
            self._show_question()
        else:
            self.dismiss(None)

    def on_choice_rows_chosen(self, event: ChoiceRows.Chosen) -> None:
        self._choose(event.index)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._answer(*self._picked_labels(), event.value.strip())
