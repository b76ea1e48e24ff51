"""The menu above the prompt: `/commands` and `@files`, matched as letters come."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, split_graphemes
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.fuzzy import FuzzyMatch, rank
from pyagent.ui.lines import Line, Span, inert, inert_row, truncate
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

MENU_ROWS = 8
_MAX_MATCHES = 50
_SLASH = re.compile(r"^/([\w:.-]*)$")
_FILE = re.compile(r"(?:^|(?<=\s))@((?:\"[^\"\n]*)|(?:[^\s\"]*))$")


class CompletionKind(StrEnum):
    """What is being completed."""

    COMMAND = "command"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to complete to: what is matched and shown, a remark, and what is inserted (else the label)."""

    label: str
    detail: str = ""
    insert: str = ""

    @property
    def inserted(self) -> str:
        return self.insert or self.label


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """The word before the cursor that asks for completion: characters `start` to `end` of the line."""

    kind: CompletionKind
    query: str
    start: int
    end: int


Source = Callable[[str], Sequence[Candidate]]
"""Gives the candidates for a query; the menu matches and orders them. It is called on the screen's thread: be quick."""


def completion_context(line: str, column: int, *, is_first_line: bool) -> CompletionContext | None:
    """What the cursor asks for: a command at the very start, a file after an @ that begins a word."""
    head = line[:column]
    if is_first_line and (slash := _SLASH.match(head)):
        return CompletionContext(CompletionKind.COMMAND, slash.group(1), 0, column)
    if at := _FILE.search(head):
        return CompletionContext(CompletionKind.FILE, at.group(1).lstrip('"'), at.start(), column)
    return None


class CompletionMenu(Widget):
    """A list of candidates with one chosen. It takes no focus: the prompt passes it its keys."""

    DEFAULT_CSS = """
    CompletionMenu {
        height: auto;
        max-height: 8;
        display: none;
        background: $surface;
        color: $foreground;
        margin: 0 1;
    }
    """

    class Picked(Message):
        """A candidate was clicked."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._matches: list[tuple[Candidate, FuzzyMatch]] = []
        self._chosen = 0
        self._first = 0

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose from."""
        return bool(self._matches)

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that Tab or Enter takes."""
        return self._matches[self._chosen][0] if self._matches else None

    @property
    def labels(self) -> tuple[str, ...]:
        """What is listed, best first."""
        return tuple(candidate.label for candidate, _ in self._matches)

    def show(self, query: str, candidates: Sequence[Candidate]) -> None:
        """List what matches; close when nothing does."""
        matches = rank(query, candidates, lambda candidate: candidate.label, limit=_MAX_MATCHES)
        rows_before = min(MENU_ROWS, len(self._matches))
        self._matches, self._chosen, self._first = matches, 0, 0
        self.display = bool(matches)
        self.refresh(layout=min(MENU_ROWS, len(matches)) != rows_before)

    def close(self) -> None:
        """Hide the list."""
        self._matches = []
        self.display = False

    def move(self, step: int) -> None:
        """Choose another candidate, around the ends."""
        if not self._matches:
            return
        self._chosen = (self._chosen + step) % len(self._matches)
        self._first = min(self._first, self._chosen)
        self._first = max(self._first, self._chosen - MENU_ROWS + 1)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        index = self._first + event.y
        if index < len(self._matches):
            self._chosen = index
            self.post_message(self.Picked())

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(MENU_ROWS, len(self._matches))

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        width_cells = self.size.width
        index = self._first + y
        if index >= len(self._matches):
            return Strip.blank(width_cells, self.rich_style)
        candidate, match = self._matches[index]
        line = candidate_line(candidate, match, width_cells, self._label_cells(), is_chosen=index == self._chosen)
        return line_strip(line, colours, width_cells, self.rich_style)

    def _label_cells(self) -> int:
        shown = self._matches[self._first : self._first + MENU_ROWS]
        return max((cell_len(candidate.label) for candidate, _ in shown), default=0)


def candidate_line(
    candidate: Candidate, match: FuzzyMatch, width_cells: int, label_cells: int, *, is_chosen: bool
) -> Line:
    """One row of a menu: a mark if chosen, the label with its matched letters strong, the remark."""
    room_cells = max(8, width_cells - 4)
    label = truncate(inert_row(candidate.label), room_cells)
    spans = [Span("❯ " if is_chosen else "  ", "accent")]
    spans += marked_label(label, match.positions, "accent bold" if is_chosen else "text")
    if candidate.detail and room_cells - label_cells > 12:
        spans.append(Span(" " * (max(0, min(label_cells, room_cells) - cell_len(label)) + 3)))
        spans.append(Span(truncate(" ".join(inert(candidate.detail).split()), room_cells - label_cells - 3), "muted"))
    return Line(tuple(spans), fill="fill.current" if is_chosen else "")


def marked_label(label: str, positions: Sequence[int], role: str) -> list[Span]:
    """A label with the matched letters strong and in colour."""
    marked = set(positions)
    spans: list[Span] = []
    for start, end, _ in split_graphemes(label)[0]:
        own = role if marked.isdisjoint(range(start, end)) else f"{role} match"
        if spans and spans[-1].role == own:
            spans[-1] = Span(spans[-1].text + label[start:end], own)
        else:
            spans.append(Span(label[start:end], own))
    return spans
