"""Tables of keys and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from pyagent.ui.dialogs.pager import PagerScreen
from pyagent.ui.dialogs.rows import Layout
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, wrap_spans


@dataclass(frozen=True, slots=True)
class HelpSection:
    """A titled table: (key or command, what it does) rows."""

    title: str
    rows: tuple[tuple[str, str], ...]


def help_layout(sections: Sequence[HelpSection]) -> Layout:
    """Two columns under headings, the second one hanging."""

    def lines(width_cells: int) -> Sequence[Line]:
        widest = max((cell_len(name) for section in sections for name, _ in section.rows), default=0)
        name_cells = min(widest, max(8, width_cells // 3))
        made: list[Line] = []
        for section in sections:
            made += [BLANK_LINE] if made else []
            made.append(Line((Span(inert_row(section.title), "heading"),)))
            for name, text in section.rows:
                made += _row(inert_row(name), inert_row(text), name_cells, width_cells)
        return made

    return lines


def _row(name: str, text: str, name_cells: int, width_cells: int) -> list[Line]:
    missing_cells = max(0, name_cells - cell_len(name))
    head = (Span("  "), Span(name, "bold"), Span(" " * (missing_cells + 2)))
    indent = (Span(" " * (name_cells + 4)),)
    rows = wrap_spans((Span(text, "muted"),), width_cells - name_cells - 5)
    if cell_len(name) > name_cells:
        return [Line(head[:2]), *(row.indented(indent) for row in rows)]
    first = Line((*head, *rows[0].spans))
    return [first, *(row.indented(indent) for row in rows[1:])]


class HelpScreen(PagerScreen):
    """All keys and commands, searchable."""

    def __init__(self, sections: Sequence[HelpSection], *, title: str = "Keys and commands") -> None:
        super().__init__(title, help_layout(sections))
