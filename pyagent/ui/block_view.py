"""Blocks as screen lines: what each kind of block looks like at a width. Pure; assistant text streams elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from rich.cells import cell_len

from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.diff import cap, diff_counts
from pyagent.ui.diff_view import diff_view
from pyagent.ui.lines import BLANK_LINE, Line, Span, inert, inert_row, truncate, wrap_text
from pyagent.ui.markdown import markdown_lines

MAX_DETAIL_ROWS = 20
"""Rows of output or diff in the transcript; the pager has the rest. Rendering 2,000 rows takes most of a second."""
MARGIN_CELLS = 2
"""The left margin of everything but the user's own words, so that prompts stand out when paging."""
_MAX_OUTPUT_LINE_CHARS = 2_000
"""An output line is cut here: minified files would otherwise fill the cap with one line."""

_SIGN = {
    BlockState.DONE: ("·", "muted"),
    BlockState.STREAMING: ("◌", "accent"),
    BlockState.QUEUED: ("◌", "muted"),
    BlockState.WAITING: ("?", "warning"),
    BlockState.RUNNING: ("◌", "accent"),
    BlockState.OK: ("✓", "success"),
    BlockState.FAILED: ("✗", "error"),
    BlockState.INTERRUPTED: ("⊘", "warning"),
}
_STATE_WORD = {
    BlockState.QUEUED: "queued",
    BlockState.WAITING: "waiting for you",
    BlockState.RUNNING: "running",
    BlockState.FAILED: "failed",
    BlockState.INTERRUPTED: "interrupted",
}


def block_lines(block: Block, width_cells: int, detail_rows: int = MAX_DETAIL_ROWS) -> list[Line]:
    """All lines of a block, at most `detail_rows` of an unfolded output or diff among them."""
    match block.kind:
        case BlockKind.USER:
            return _user(block, width_cells)
        case BlockKind.ASSISTANT:
            inner = markdown_lines(block.text, width_cells - MARGIN_CELLS - 1)
            return [with_margin(line) for line in inner] + assistant_end(block)
        case BlockKind.THINKING:
            return _thinking(block, width_cells)
        case BlockKind.TOOL:
            return _tool(block, width_cells, detail_rows)
        case BlockKind.DIFF:
            return _diff(block, width_cells, detail_rows)
        case BlockKind.NOTICE | BlockKind.CLEARED:
            return _notice(block, width_cells)
        case BlockKind.ERROR:
            return _error(block, width_cells)
        case BlockKind.BOUNDARY:
            return _boundary(block, width_cells)
        case BlockKind.BANNER:
            return _banner(block, width_cells)
        case BlockKind.IMAGE:
            label = f" {block.title or 'image'} {block.text}".rstrip()
            return [Line((Span("▌", "user.bar"), Span(truncate(inert_row(label), width_cells - 1), "muted")), 2)]
        case _:
            assert_never(block.kind)


def needs_gap(previous: Block | None, block: Block) -> bool:
    """Whether a blank row goes between two blocks. Tool calls stand together, so do a prompt and its images."""
    if previous is None:
        return False
    tight = (BlockKind.TOOL, BlockKind.CLEARED, BlockKind.NOTICE)
    if block.kind is BlockKind.IMAGE:
        return previous.kind not in (BlockKind.USER, BlockKind.IMAGE)
    return not (previous.kind in tight and block.kind in tight)


def with_margin(line: Line) -> Line:
    """The line behind the left margin. A filled line keeps its margin unfilled."""
    return line.indented((Span(" " * MARGIN_CELLS),))


def assistant_end(block: Block) -> list[Line]:
    """What follows an answer that did not end well."""
    if block.state in (BlockState.INTERRUPTED, BlockState.FAILED):
        sign, role = _SIGN[block.state]
        text = f"  {sign} {_STATE_WORD[block.state]}"
        return [Line((Span(text, role),), gutter_chars=len(text))]
    return []


def _user(block: Block, width_cells: int) -> list[Line]:
    role = "fill.user" if block.state is not BlockState.QUEUED else "fill.user muted"
    lines: list[Line] = []
    for row in wrap_text(block.text, width_cells - 3, role):
        lines.append(Line((Span("▌", "user.bar"), Span(" ", role), *row.spans), 2, row.joint, "fill.user"))
    if block.state is BlockState.QUEUED:
        text = truncate(" queued, sent after this turn", width_cells - 1)
        lines.append(Line((Span("▌", "user.bar"), Span(text, "fill.user muted")), 1 + len(text), None, "fill.user"))
    return lines


def _fold_mark(block: Block) -> str:
    if not block.is_foldable:
        return ""
    return " ▸" if block.is_collapsed else " ▾"


def _headline(sign: str, sign_role: str, spans: list[Span], facts: str, mark: str, width_cells: int) -> Line:
    """One row: sign, text cut to fit, then the facts, which stay up to half of the row, and the mark."""
    room_cells = width_cells - MARGIN_CELLS - 3 - cell_len(mark)
    words_cells = sum(cell_len(span.text) for span in spans)
    facts = truncate(facts, max(room_cells - words_cells, room_cells // 2))
    room_cells -= cell_len(facts)
    fitted: list[Span] = []
    for span in spans:
        text = truncate(span.text, room_cells)
        if text:
            fitted.append(span._replace(text=text))
            room_cells -= cell_len(text)
        if text != span.text:
            break
    head = (Span("  "), Span(sign, sign_role), Span(" "))
    return Line((*head, *fitted, Span(facts + mark, "muted")), gutter_chars=4)


def _one_line(text: str) -> str:
    return " ".join(inert(text[:4_000]).split())


def _facts(block: Block) -> str:
    facts = [fact for fact in block.facts if fact]
    if block.state in _STATE_WORD:
        facts.append(_STATE_WORD[block.state])
    if block.elapsed_s is not None and block.elapsed_s >= 0.1:
        facts.append(seconds(block.elapsed_s))
    return "".join(f" · {_one_line(fact)}" for fact in facts)


def seconds(elapsed_s: float) -> str:
    """`0.3 s`, `12 s`, `2 min 5 s`."""
    if elapsed_s < 9.95:
        return f"{elapsed_s:.1f} s"
    whole_s = round(elapsed_s)
    return f"{whole_s} s" if whole_s < 60 else f"{whole_s // 60} min {whole_s % 60} s"


def _thinking(block: Block, width_cells: int) -> list[Line]:
    if block.state is BlockState.STREAMING:
        word = "Thinking…"
    else:
        word = "Thought" + (f" for {seconds(block.elapsed_s)}" if block.elapsed_s else "")
    head = Line((Span("  "), Span("∴ ", "second"), Span(word + _fold_mark(block), "thinking")), gutter_chars=4)
    if block.is_collapsed or not block.text:
        return [head]
    body = wrap_text(block.text.strip("\n"), width_cells - MARGIN_CELLS - 5, "thinking")
    return [head, *(line.indented((Span("    "),)) for line in body)]


def _tool(block: Block, width_cells: int, detail_rows: int) -> list[Line]:
    sign, role = _SIGN[block.state]
    spans = [Span(inert_row(block.title), "tool.name")]
    if block.text:
        spans.append(Span("  " + _one_line(block.text), "text"))
    facts = list(block.facts)
    if block.diff and not facts:
        added, removed = diff_counts(block.diff)
        facts.append(f"+{added} -{removed}")
    shown = replace(block, facts=tuple(facts))
    lines = [_headline(sign, role, spans, _facts(shown), _fold_mark(block), width_cells)]
    if block.is_collapsed:
        return lines
    if block.diff:
        lines += _indented_diff(block, width_cells, detail_rows)
    if block.detail:
        lines += _output(block, width_cells, detail_rows)
    return lines


def _output(block: Block, width_cells: int, detail_rows: int) -> list[Line]:
    """The end of the output matters while it runs and when it failed; its beginning otherwise."""
    source = block.detail.rstrip("\n").split("\n")
    wants_end = block.state in (BlockState.RUNNING, BlockState.FAILED, BlockState.INTERRUPTED)
    shown = source[-detail_rows:] if wants_end else source[:detail_rows]
    role = "error" if block.state is BlockState.FAILED and not block.title else "tool.output"
    rows: list[Line] = []
    for text in shown:
        visible = text.rpartition("\r")[2] if "\r" in text.rstrip("\r") else text
        rows += wrap_text(visible[:_MAX_OUTPUT_LINE_CHARS], width_cells - 7, role)
    hidden = len(source) - len(shown)
    if len(rows) > detail_rows:
        rows = rows[-detail_rows:] if wants_end else rows[:detail_rows]
    bar = (Span("    │ ", "rule"),)
    lines = [row.indented(bar) for row in rows]
    if hidden:
        text = f"    … {hidden} more lines"
        more = Line((Span(text, "muted"),), gutter_chars=len(text))
        lines = [more, *lines] if wants_end else [*lines, more]
    return lines


def _indented_diff(block: Block, width_cells: int, detail_rows: int) -> list[Line]:
    rows = diff_view(cap(block.diff, detail_rows), width_cells - MARGIN_CELLS - 1)
    return [with_margin(row) for row in rows]


def _diff(block: Block, width_cells: int, detail_rows: int) -> list[Line]:
    added, removed = diff_counts(block.diff)
    spans = [Span(inert_row(block.title or block.text), "tool.name")]
    head = _headline("±", "accent", spans, f" · +{added} -{removed}", _fold_mark(block), width_cells)
    return [head] if block.is_collapsed else [head, *_indented_diff(block, width_cells, detail_rows)]


def _notice(block: Block, width_cells: int) -> list[Line]:
    text = inert(block.text) + _facts(block) + _fold_mark(block)
    lines = _hanging("·", "muted", text, "muted", width_cells)
    if block.detail and not block.is_collapsed:
        lines += [row.indented((Span("    "),)) for row in wrap_text(block.detail, width_cells - 5, "muted")]
    return lines


def _error(block: Block, width_cells: int) -> list[Line]:
    lines = _hanging("✗", "error", inert(block.text), "error", width_cells)
    if block.detail and not block.is_collapsed:
        lines += [row.indented((Span("    "),)) for row in wrap_text(block.detail, width_cells - 5, "muted")]
    return lines


def _hanging(sign: str, sign_role: str, text: str, role: str, width_cells: int) -> list[Line]:
    rows = wrap_text(text, width_cells - MARGIN_CELLS - 3, role)
    first = (Span("  "), Span(f"{sign} ", sign_role))
    return [row.indented(first if index == 0 else (Span("    "),)) for index, row in enumerate(rows)]


def _boundary(block: Block, width_cells: int) -> list[Line]:
    facts = "".join(f" · {_one_line(fact)}" for fact in block.facts)
    text = truncate(f"{_one_line(block.text)}{facts}{_fold_mark(block)}", max(2, width_cells - 7))
    trail = "─" * max(2, width_cells - 5 - cell_len(text))
    spans = (Span("── ", "rule"), Span(text, "muted"), Span(f" {trail}", "rule"))
    lines = [Line(spans, gutter_chars=3)]
    if block.detail and not block.is_collapsed:
        lines.append(BLANK_LINE)
        lines += [with_margin(row) for row in markdown_lines(block.detail, width_cells - MARGIN_CELLS - 1)]
        lines += [BLANK_LINE, Line((Span("─" * (width_cells - 1), "rule"),), gutter_chars=width_cells - 1)]
    return lines


def _banner(block: Block, width_cells: int) -> list[Line]:
    lines: list[Line] = []
    if block.title:
        lines.append(Line((Span("  "), Span(truncate(inert_row(block.title), width_cells - 3), "accent bold")), 2))
    if block.text:
        lines += [with_margin(row) for row in wrap_text(block.text, width_cells - 3, "muted")]
    return lines


def estimated_rows(block: Block, width_cells: int, detail_rows: int = MAX_DETAIL_ROWS) -> int:
    """A guess at the number of lines, without rendering: off by some, but 1,000 times cheaper."""
    room_cells = max(8, width_cells - 3)
    match block.kind:
        case BlockKind.ASSISTANT | BlockKind.USER | BlockKind.NOTICE | BlockKind.ERROR | BlockKind.BANNER:
            return 1 + block.text.count("\n") + len(block.text) // room_cells
        case BlockKind.THINKING | BlockKind.BOUNDARY | BlockKind.CLEARED | BlockKind.IMAGE:
            return 1
        case BlockKind.TOOL | BlockKind.DIFF:
            if block.is_collapsed:
                return 1
            return 1 + min(detail_rows + 1, block.detail.count("\n") + bool(block.detail) + len(block.diff))
        case _:
            assert_never(block.kind)
