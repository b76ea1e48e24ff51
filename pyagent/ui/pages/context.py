"""`/context`: a grid of the window, each cell lettered by what fills it; then the figures behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pyagent.pages import CacheState, ContextItem, ContextPage
from pyagent.ui.gauge import short_tokens
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, truncate, wrap_spans
from pyagent.ui.pages.parts import cell, dollars, hanging, heading

GRID_CELLS = 200
"""Half a percent of the window each."""
SPACED_COLUMNS, TIGHT_COLUMNS = 20, 50
LEGEND_BESIDE_FROM_CELLS, EXACT_FROM_CELLS = 74, 90
"""Narrower than the first the legend stands below the grid; from the second on there is room for whole figures."""

GROUPS: tuple[tuple[str, str, str], ...] = (
    ("system", "S", "system prompt"),
    ("tools", "T", "tool declarations"),
    ("memory", "M", "memory files"),
    ("summary", "Y", "summary"),
    ("prompts", "U", "your messages"),
    ("answers", "A", "answers"),
    ("calls", "C", "tool calls"),
    ("results", "R", "tool results"),
    ("thinking", "K", "thinking"),
    ("media", "I", "images, documents"),
    ("notes", "N", "notes to the model"),
    ("frames", "F", "message frames"),
)
"""(group, letter, words), in the order they are drawn."""
FREE, BUFFER = "·", "b"
_LETTERS = {group: letter for group, letter, _ in GROUPS}


@dataclass(frozen=True, slots=True)
class _Cell:
    sign: str
    role: str


def context_lines(page: ContextPage, width_cells: int) -> Sequence[Line]:
    lines = _head(page, width_cells)
    lines += [BLANK_LINE, *_grid_and_legend(page, width_cells)]
    lines += _results(page, width_cells)
    lines += _drawn(page, width_cells)
    lines += _cache(page.cache, width_cells)
    lines += _bill(page, width_cells)
    lines += _layers(page, width_cells)
    lines += _items(page, width_cells)
    lines += _gates(page, width_cells)
    for remark in page.remarks:
        lines += hanging((Span("  "),), remark.strip(), width_cells)
    if not page.is_full:
        words = "/context all names more items; /context json gives the figures."
        lines += [BLANK_LINE, *hanging((), words, width_cells)]
    return lines


def _head(page: ContextPage, width_cells: int) -> list[Line]:
    mark = "~" if page.is_estimate else ""
    role = {"ok": "success", "warning": "warning", "error": "error"}.get(page.state, "error")
    left = "to compact" if page.is_auto_compact_on else "of the effective window left"
    numbers = f"{mark}{page.used_tokens:,} of {page.window_tokens:,} tokens"
    share = page.used_tokens / max(1, page.window_tokens)
    model = (Span(inert_row(page.model), "bold"), Span(" · ", "faint"))
    first = wrap_spans((*model, Span(numbers, "bold"), Span(f" ({share:.1%})")), width_cells)
    return [
        *first,
        *wrap_spans((Span(f"{page.percent_left}% {left} · ", "muted"), Span(page.state, role)), width_cells),
    ]


# ── the grid ──


def grid_cells(page: ContextPage) -> list[_Cell]:
    """All cells of the window in order: what is used, what is free, what lies behind the trigger."""
    per_cell = page.window_tokens / GRID_CELLS
    tokens = dict.fromkeys((group for group, _, _ in GROUPS), 0)
    for part in page.parts:
        tokens[part.group] = tokens.get(part.group, 0) + part.tokens
    cells: list[_Cell] = []
    done = 0
    for group, count in tokens.items():
        done += count
        upto = max(round(done / per_cell), len(cells) + 1) if count else len(cells)
        cells += [_Cell(_LETTERS.get(group, "N"), f"kind.{group}")] * (min(upto, GRID_CELLS) - len(cells))
    buffer_at = round(page.trigger_tokens / per_cell) if page.is_auto_compact_on else GRID_CELLS
    while len(cells) < GRID_CELLS:
        cells.append(_Cell(FREE, "faint") if len(cells) < buffer_at else _Cell(BUFFER, "muted"))
    return cells


def _grid_and_legend(page: ContextPage, width_cells: int) -> list[Line]:
    is_beside = width_cells >= LEGEND_BESIDE_FROM_CELLS
    columns = SPACED_COLUMNS if is_beside else min(TIGHT_COLUMNS, max(10, width_cells))
    cells = grid_cells(page)
    rows = [cells[start : start + columns] for start in range(0, GRID_CELLS, columns)]
    grid = [_grid_row(row, " " if is_beside else "") for row in rows]
    legend = _legend(page, is_exact=width_cells >= EXACT_FROM_CELLS or not is_beside)
    if not is_beside:
        return [*(Line(row) for row in grid), BLANK_LINE, *(Line(row) for row in legend)]
    lines = []
    blank = (Span(" " * (2 * columns)),)
    for at in range(max(len(grid), len(legend))):
        left = grid[at] if at < len(grid) else blank
        right = legend[at] if at < len(legend) else ()
        lines.append(Line((*left, Span(" "), *right)))
    return lines


def _grid_row(row: Sequence[_Cell], gap: str) -> tuple[Span, ...]:
    return tuple(
        Span("".join(cell.sign + gap for cell in run), role) for role, run in groupby(row, key=lambda cell: cell.role)
    )


def _legend(page: ContextPage, *, is_exact: bool) -> list[tuple[Span, ...]]:
    tokens: dict[str, int] = {}
    for part in page.parts:
        tokens[part.group] = tokens.get(part.group, 0) + part.tokens
    rows = [
        _legend_row(letter, f"kind.{group}", words, tokens[group], page.window_tokens, is_exact=is_exact)
        for group, letter, words in GROUPS
        if tokens.get(group)
    ]
    limit = page.trigger_tokens if page.is_auto_compact_on else page.window_tokens
    rows.append(
        _legend_row(FREE, "faint", "free", max(0, limit - page.used_tokens), page.window_tokens, is_exact=is_exact)
    )
    if page.is_auto_compact_on:
        buffer = page.window_tokens - page.trigger_tokens
        rows.append(_legend_row(BUFFER, "muted", "compaction buffer", buffer, page.window_tokens, is_exact=is_exact))
    return rows


def _legend_row(
    sign: str, role: str, words: str, tokens: int, window_tokens: int, *, is_exact: bool
) -> tuple[Span, ...]:
    share = tokens / max(1, window_tokens)
    figure = f"{tokens:>10,}" if is_exact else f"{short_tokens(tokens):>6}"
    return (Span(f"{sign} ", role), Span(cell(words, 18)), Span(f"{figure} {share:>6.1%}", "muted"))


# ── the figures ──


def _results(page: ContextPage, width_cells: int) -> list[Line]:
    """Results by tool, where there is more than one."""
    results = [part for part in page.parts if part.group == "results"]
    if len(results) < 2:
        return []
    words = ", ".join(f"{part.name.removesuffix(' results')} {part.tokens:,}" for part in results)
    return [BLANK_LINE, *hanging((Span("  R by tool  ", "muted"),), words, width_cells, "text")]


def _drawn(page: ContextPage, width_cells: int) -> list[Line]:
    lines = heading("How the lines are drawn")
    words_cells = max(8, min(50, width_cells - 16))
    for step in page.arithmetic:
        sign = "−" if step.tokens < 0 else " "
        lines.append(Line((Span(f"  {cell(step.words, words_cells)}"), Span(f"{sign}{abs(step.tokens):>9,}", "bold"))))
    marks = " · ".join(
        f"{mark.words} {mark.tokens:,} ({mark.tokens / max(1, page.window_tokens):.1%})" for mark in page.marks
    )
    return [*lines, *hanging((Span("  "),), marks, width_cells)]


def _cache(cache: CacheState, width_cells: int) -> list[Line]:
    if cache.expires_in_s is None:
        state, role = "cold: the next request pays for the whole context", "warning"
    else:
        minutes, seconds = divmod(int(cache.expires_in_s), 60)
        state, role = (
            f"warm for another {minutes} min {seconds:02} s" if minutes else f"warm for another {seconds} s",
            "success",
        )
    facts = [f"lifetime {cache.ttl_s // 60} min" if cache.ttl_s else "not asked for"]
    if cache.read_share is not None:
        facts.append(f"{cache.read_share:.0%} of the last request was read from it")
    lines = [*heading("Prompt cache"), Line((Span("  "), Span(state, role)))]
    return [*lines, *hanging((Span("  "),), " · ".join(facts) + cache.remark, width_cells)]


def _bill(page: ContextPage, width_cells: int) -> list[Line]:
    bill = page.bill
    if bill is None:
        return []
    words = (
        f"{dollars(bill.usd_at_trigger)} for ten calls when compacting at {page.trigger_tokens:,}; "
        f"{dollars(bill.usd_at_best)} at {bill.best_trigger_tokens:,}, the cheapest point"
    )
    words += ", which the policy economy uses." if bill.is_economy_on else " (/config compaction.policy=economy)."
    return [*heading("Projected bill"), *hanging((Span("  "),), words, width_cells, "text")]


def _layers(page: ContextPage, width_cells: int) -> list[Line]:
    lines = heading("What each layer has done")
    if not page.layers:
        return [*lines, Line((Span("  nothing yet", "muted"),))]
    for layer in page.layers:
        freed = f"{short_tokens(layer.freed_tokens)} freed" if layer.freed_tokens else ""
        words = " · ".join(part for part in (freed, layer.detail) if part)
        count = f"{layer.count:,}× " if layer.count != 1 else ""
        lines += hanging((Span(f"  {count}{inert_row(layer.name)}  "),), words, width_cells)
    return lines


_ITEM_HEADINGS = {"memory": "Memory files", "tools": "Largest tool declarations"}


def _items(page: ContextPage, width_cells: int) -> list[Line]:
    lines: list[Line] = []
    for name in ("memory", "tools", ""):
        items = [item for item in page.items if (item.group if item.group in _ITEM_HEADINGS else "") == name]
        if items:
            lines += heading(_ITEM_HEADINGS.get(name, "Largest messages and results"))
            lines += [_item_line(item, width_cells) for item in items]
    return lines


def _item_line(item: ContextItem, width_cells: int) -> Line:
    letter = _LETTERS.get(item.group, "N")
    words = f"{item.name}: {item.detail}" if item.detail else item.name
    return Line(
        (
            Span(f"  {item.tokens:>8,}  ", "bold"),
            Span(f"{letter} ", f"kind.{item.group}"),
            Span(truncate(inert_row(words), max(8, width_cells - 15))),
        )
    )


def _gates(page: ContextPage, width_cells: int) -> list[Line]:
    lines = heading("Gates")
    name_cells = max(len(gate.name) for gate in page.gates) + 2 if page.gates else 0
    for gate in page.gates:
        state, role = ("on ", "success") if gate.is_on else ("off", "muted")
        head = (Span("  "), Span(cell(gate.name, min(name_cells, 32))), Span(f"{state}  ", role))
        lines += hanging(head, gate.why, width_cells)
    return lines
