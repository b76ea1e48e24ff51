"""`/compactions`, `/diff`, `/tasks`, `/memory` and `/btw` in full, one thing under the other."""

from __future__ import annotations

from collections.abc import Sequence

from pyagent.pages import AnswerPage, CompactionRow, CompactionsPage, DiffFile, DiffPage, MemoryPage, TaskRow, TasksPage
from pyagent.ui.diff import diff_counts
from pyagent.ui.diff_view import diff_view
from pyagent.ui.gauge import short_tokens
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert_row, wrap_spans, wrap_text
from pyagent.ui.markdown import markdown_lines
from pyagent.ui.pages.parts import dollars, hanging, heading, share_bar
from pyagent.ui.unified import unified_lines

SIGNS = {"create": "A", "change": "M", "delete": "D"}
"""What became of a file, as git's letters have it."""


def compactions_lines(page: CompactionsPage, width_cells: int) -> Sequence[Line]:
    lines: list[Line] = []
    for row in reversed(page.rows):
        lines += [BLANK_LINE] if lines else []
        lines += receipt_rows(row, width_cells)
    return [*lines, BLANK_LINE, *hanging((), "/compact undo takes the newest back.", width_cells)]


def receipt_rows(row: CompactionRow, width_cells: int) -> list[Line]:
    """What one compaction did."""
    freed = 1 - row.after_tokens / row.before_tokens if row.before_tokens else 0.0
    name = (Span(f"{row.number}. ", "bold"), Span(row.headline, "bold"))
    first = wrap_spans((*name, Span(f"  {row.at:%Y-%m-%d %H:%M} UTC", "muted")), width_cells)
    bar_cells = max(4, min(40, width_cells - 34))
    after_share = row.after_tokens / row.before_tokens if row.before_tokens else 0.0
    lines = [
        *first,
        Line((Span("  before "), Span(share_bar(1.0, bar_cells), "warning"), Span(f" {row.before_tokens:>9,}"))),
        Line(
            (
                Span("  after  "),
                Span(share_bar(after_share, bar_cells), "success"),
                Span(f" {row.after_tokens:>9,}"),
                Span(f" (−{freed:.0%})", "muted"),
            )
        ),
    ]
    for words in row.lines:
        lines += hanging((Span("  "),), words, width_cells)
    return lines


def compaction_detail(row: CompactionRow, width_cells: int) -> Sequence[Line]:
    """The receipt and the summary that stands in the conversation now."""
    lines = receipt_rows(row, width_cells)
    if row.summary:
        lines += [*heading("Summary"), *markdown_lines(row.summary, width_cells)]
    return lines


def diff_lines_of(file: DiffFile, width_cells: int) -> Sequence[Line]:
    """One file's difference."""
    lines = unified_lines(file.diff)
    if not lines:
        words = "Only its permissions change, or it is no text." if file.kind == "change" else "No text to show."
        return [Line((Span(words, "muted"),))]
    return diff_view(lines, width_cells)


def file_words(file: DiffFile) -> tuple[str, str]:
    """(path with its letter, how many lines)."""
    added, removed = diff_counts(unified_lines(file.diff))
    return f"{SIGNS[file.kind]} {file.path}", f"+{added} −{removed}" if file.diff else ""


def diff_page_lines(page: DiffPage, width_cells: int) -> Sequence[Line]:
    chosen = next((scope for scope in page.scopes if scope.id == page.chosen), None)
    lines = [Line((Span(chosen.detail, "heading"), Span(f"  {inert_row(chosen.label)}", "muted")))] if chosen else []
    for file in page.files:
        name, counts = file_words(file)
        lines += [BLANK_LINE, Line((Span(inert_row(name), "bold"), Span(f"  {counts}", "muted")))]
        lines += diff_lines_of(file, width_cells)
    if page.remark:
        lines += [BLANK_LINE, *hanging((), page.remark, width_cells)]
    others = ", ".join(f"/diff {scope.id}" for scope in page.scopes if scope.id != page.chosen)
    return [*lines, BLANK_LINE, *hanging((), f"Also: {others}", width_cells)] if others else lines


def tasks_lines(page: TasksPage, width_cells: int) -> Sequence[Line]:
    lines: list[Line] = hanging((), page.remark, width_cells, "text") if page.remark else []
    if not page.rows:
        return [*lines, Line((Span("There is no background task.", "muted"),))]
    for row in page.rows:
        lines += hanging(
            (Span(f"{inert_row(row.id)}  ", "bold"), Span(f"{inert_row(row.state)}  ", task_role(row))),
            row.command,
            width_cells,
            "text",
        )
    words = "/tasks ID shows the output, /tasks kill ID ends it."
    return [*lines, BLANK_LINE, *hanging((), words, width_cells)]


def task_role(row: TaskRow) -> str:
    return {"running": "accent", "done": "success", "killed": "warning"}.get(row.state, "error")


def task_detail(row: TaskRow, width_cells: int) -> Sequence[Line]:
    head = hanging((Span(f"{inert_row(row.state)}  ", task_role(row)),), row.command, width_cells, "bold")
    output = row.output or "(no output yet)"
    return [*head, BLANK_LINE, *wrap_text(output, width_cells, "tool.output")]


def memory_lines(page: MemoryPage, width_cells: int) -> Sequence[Line]:
    lines: list[Line] = []
    for number, row in enumerate(page.rows, start=1):
        size = f"{short_tokens(row.tokens)} tokens" if row.is_loaded else "not there yet"
        head = (Span(f"{number:>3}. ", "muted"), Span(f"{row.scope:<8}", "accent"), Span(f"{size:>16}  ", "muted"))
        lines += hanging(head, row.path, width_cells, "text" if row.is_loaded else "muted")
    for problem in page.problems:
        lines += hanging((), problem, width_cells, "warning")
    return lines


def answer_lines(page: AnswerPage, width_cells: int) -> Sequence[Line]:
    lines = hanging((Span("▌ ", "accent"),), page.question, width_cells, "bold")
    lines += [BLANK_LINE, *markdown_lines(page.answer, width_cells)]
    words = (
        f"{dollars(page.usd)} · {page.cache_read_share:.0%} of the prompt from the cache · not part of the conversation"
    )
    return [*lines, BLANK_LINE, *hanging((), words, width_cells)]
