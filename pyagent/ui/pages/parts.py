"""Pieces that several pages are made of."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, pad, truncate, wrap_spans


def heading(text: str) -> list[Line]:
    """A heading with a blank row above it."""
    return [BLANK_LINE, Line((Span(text, "heading"),))]


def hanging(head: Sequence[Span], text: str, width_cells: int, role: str = "muted") -> list[Line]:
    """Text behind a head; further rows stand under the text."""
    indent_cells = sum(cell_len(span.text) for span in head)
    if width_cells - indent_cells < 12:
        return [Line(tuple(head)), *(row.indented((Span("    "),)) for row in _wrapped(text, width_cells - 4, role))]
    first, *rest = _wrapped(text, width_cells - indent_cells, role)
    return [first.indented(head), *(row.indented((Span(" " * indent_cells),)) for row in rest)]


def _wrapped(text: str, width_cells: int, role: str) -> list[Line]:
    return wrap_spans((Span(inert_row(text), role),), max(8, width_cells))


def cell(text: str, width_cells: int, align: str = "left") -> str:
    """Text in exactly that many cells."""
    return pad(truncate(inert_row(text), width_cells), width_cells, align)


def share_bar(share: float, width_cells: int) -> str:
    """A bar that is filled to a share from 0 to 1; anything above 0 shows."""
    filled = min(width_cells, max(1 if share > 0 else 0, round(share * width_cells)))
    return "█" * filled + "·" * (width_cells - filled)


def dollars(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:,.4f}" if usd < 1 else f"${usd:,.2f}"


def duration(seconds: float) -> str:
    """`42 s`, `7 min`, `3 h 20 min`."""
    minutes, hours = int(seconds // 60), int(seconds // 3_600)
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"
