"""`/cost`: the bill by model and by purpose, and a chart of the turns: what was sent, how much of it from the cache."""

from __future__ import annotations

from collections.abc import Sequence

from pyagent.pages import CostPage, CostRow, CostTurn
from pyagent.ui.gauge import short_tokens
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, truncate
from pyagent.ui.pages.parts import cell, dollars, duration, hanging, heading

CACHED, FRESH = "▒", "█"
"""Told apart by their sign, so that the chart needs no colour."""
MAX_BAR_CELLS = 40


def cost_lines(page: CostPage, width_cells: int) -> Sequence[Line]:
    total = dollars(page.total_usd) + ("" if page.is_exact else " and calls of unknown price")
    lines = [
        Line((Span("Total ", "muted"), Span(total, "bold"), Span(f" · open for {duration(page.open_for_s)}", "muted")))
    ]
    if not page.models:
        return [*lines, BLANK_LINE, Line((Span("Nothing was sent yet.", "muted"),))]
    lines += heading("By model")
    for row in page.models:
        lines += _row(row, width_cells)
    if len(page.purposes) > 1:
        lines += heading("By purpose")
        for row in page.purposes:
            lines += _row(row, width_cells)
    lines += _chart(page.turns, width_cells)
    if page.lost_caches:
        lines += heading("Prompt cache lost unexpectedly")
        for words in page.lost_caches:
            lines += hanging((Span("  "),), words, width_cells, "warning")
    lines += [
        BLANK_LINE,
        *hanging((), "List prices. Side questions, summaries and notes are counted.", width_cells),
    ]
    return lines


def _row(row: CostRow, width_cells: int) -> list[Line]:
    head = (Span("  "), Span(cell(row.name, 26), "text"), Span(cell(dollars(row.usd), 14, "right"), "bold"), Span("  "))
    calls = f"{row.calls:,} call" + ("" if row.calls == 1 else "s")
    words = (
        f"{calls} · {short_tokens(row.prompt_tokens)} sent, {row.cache_share:.0%} from the cache · "
        f"{short_tokens(row.cache_write_tokens)} written to it · {short_tokens(row.output_tokens)} received"
    )
    if width_cells >= 100:
        return hanging(head, words, width_cells)
    return [Line(head[:3]), *hanging((Span("    "),), words, width_cells)]


def _chart(turns: Sequence[CostTurn], width_cells: int) -> list[Line]:
    if not turns:
        return []
    lines = heading("Turns: tokens sent")
    key = (Span("  "), Span(f"{CACHED} ", "success"), Span("from the cache  ", "muted"))
    lines.append(Line((*key, Span(f"{FRESH} ", "warning"), Span("fresh or written to it", "muted"))))
    most = max(turn.row.prompt_tokens for turn in turns) or 1
    bar_cells = max(8, min(MAX_BAR_CELLS, width_cells - 42))
    for turn in turns:
        lines.append(_bar(turn, most, bar_cells, width_cells))
    return lines


def _bar(turn: CostTurn, most_tokens: int, bar_cells: int, width_cells: int) -> Line:
    row = turn.row
    filled = max(1, round(row.prompt_tokens / most_tokens * bar_cells))
    cached = min(filled, round(filled * row.cache_share))
    facts = f" {short_tokens(row.prompt_tokens):>5} {row.cache_share:>4.0%} {dollars(row.usd):>9} "
    head = f"{turn.number:>4} "
    left = width_cells - len(head) - bar_cells - len(facts)
    return Line(
        (
            Span(head, "muted"),
            Span(CACHED * cached, "success"),
            Span(FRESH * (filled - cached), "warning"),
            Span(" " * (bar_cells - filled)),
            Span(facts, "text"),
            Span(truncate(inert_row(turn.prompt), left) if left > 6 else "", "muted"),
        )
    )
