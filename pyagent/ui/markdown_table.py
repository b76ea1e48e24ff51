"""Markdown tables laid out in cells: shrunk to the width, wrapped inside columns, stacked when even that cannot fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from pyagent.ui.lines import Line, Span, wrap_spans

_NARROWEST_COLUMN_CELLS = 5
"""Below this a column of words is one letter heap; the table is stacked as records instead."""
_SEPARATOR = " │ "

Cell = list[Span]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the head first, and each column's alignment ("left", "center", "right")."""

    head: list[Cell]
    body: list[list[Cell]]
    aligns: list[str]


def table_lines(table: Table, width_cells: int) -> list[Line]:
    """The table in at most `width_cells`."""
    count = len(table.head)
    room_cells = width_cells - len(_SEPARATOR) * (count - 1)
    natural = [max(_cells(row[index]) for row in (table.head, *table.body)) or 1 for index in range(count)]
    if sum(natural) <= room_cells:
        widths = natural
    elif room_cells < _NARROWEST_COLUMN_CELLS * count:
        return _stacked(table, width_cells)
    else:
        widths = _shrunk(natural, room_cells)
    lines = _row_lines([_with_role(cell, "table.head") for cell in table.head], widths, table.aligns)
    lines.append(Line((Span("─┼─".join("─" * width for width in widths), "rule"),)))
    for row in table.body:
        lines += _row_lines(row, widths, table.aligns)
    return lines


def _cells(cell: Cell) -> int:
    return cell_len("".join(span.text for span in cell))


def _with_role(cell: Cell, role: str) -> Cell:
    return [span._replace(role=f"{role} {span.role}".strip()) for span in cell]


def _shrunk(natural: Sequence[int], room_cells: int) -> list[int]:
    """Widths that add up to the room: the widest columns give way first, narrow ones keep their size."""
    cap = max(natural)
    low, high = 1, cap
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in natural) <= room_cells:
            low = middle
        else:
            high = middle - 1
    widths = [min(width, low) for width in natural]
    spare = room_cells - sum(widths)
    for index, width in enumerate(natural):
        if spare and widths[index] < width:
            widths[index] += 1
            spare -= 1
    return [max(2, width) if natural[index] > 1 else width for index, width in enumerate(widths)]


def _row_lines(row: Sequence[Cell], widths: Sequence[int], aligns: Sequence[str]) -> list[Line]:
    columns: list[list[Line]] = [wrap_spans(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines: list[Line] = []
    for index in range(max(len(column) for column in columns)):
        spans: list[Span] = []
        for number, width in enumerate(widths):
            column = columns[number]
            if number:
                spans.append(Span(_SEPARATOR, "rule"))
            content = column[index].spans if index < len(column) else ()
            missing = max(0, width - cell_len("".join(span.text for span in content)))
            left = {"right": missing, "center": missing // 2}.get(aligns[number], 0)
            spans += [Span(" " * left), *content, Span(" " * (missing - left))]
        lines.append(Line(tuple(span for span in spans if span.text)))
    return lines


def _stacked(table: Table, width_cells: int) -> list[Line]:
    """One `head: value` line a cell, a rule between records."""
    lines: list[Line] = []
    empty_row: list[Cell] = [[] for _ in table.head]
    for number, row in enumerate(table.body or [empty_row]):
        if number:
            lines.append(Line((Span("─" * min(width_cells, 8), "rule"),)))
        for head, cell in zip(table.head, row, strict=True):
            wrapped = wrap_spans([*_with_role(head, "table.head"), Span(": "), *cell], width_cells - 2)
            lines += [wrapped[0], *(replace(line.indented((Span("  "),)), joint=line.joint) for line in wrapped[1:])]
    return lines
