"""Diff lines as screen lines: sign, number, text, with marks; readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from pyagent.ui.blocks import DiffKind, DiffLine
from pyagent.ui.lines import Line, Span, inert_row, wrap_spans

_SIGNS = {DiffKind.ADDED: "+", DiffKind.REMOVED: "-", DiffKind.CONTEXT: " "}


def diff_view(lines: Sequence[DiffLine], width_cells: int) -> list[Line]:
    """Screen lines of a diff. Numbers and signs are gutter: a copy takes the code alone."""
    numbers = [line.new_number or line.old_number or 0 for line in lines]
    digits = max(3, len(str(max(numbers, default=0))))
    result: list[Line] = []
    for line in lines:
        if line.kind in (DiffKind.HUNK, DiffKind.MORE):
            text = line.text if line.kind is DiffKind.HUNK else f"… {line.text}"
            gutter = " " * (digits + 1)
            result.append(Line((Span(gutter), Span(text, "muted")), gutter_chars=len(gutter) + len(text)))
        else:
            result += _code_rows(line, digits, width_cells)
    return result


def _code_rows(line: DiffLine, digits: int, width_cells: int) -> list[Line]:
    kind = line.kind.value
    number = line.old_number if line.kind is DiffKind.REMOVED else line.new_number
    sign_role = f"diff.sign.{kind}" if line.kind is not DiffKind.CONTEXT else ""
    fill = f"fill.{kind}" if line.kind is not DiffKind.CONTEXT else ""
    rows = wrap_spans(_marked_spans(line), width_cells - digits - 3)
    result: list[Line] = []
    for index, row in enumerate(rows):
        label = f"{number or '':>{digits}}" if index == 0 else " " * digits
        sign = _SIGNS[line.kind] if index == 0 else " "
        gutter = (Span(f"{label} ", "diff.number"), Span(f"{sign} ", sign_role))
        result.append(Line((*gutter, *row.spans), digits + 3, row.joint, fill))
    return result


def _marked_spans(line: DiffLine) -> list[Span]:
    """The text cut at its marks; tabs are widened here, so that the marks can count source characters."""
    role = f"diff.{line.kind.value}"
    spans: list[Span] = []
    done = 0
    for start, end in line.marks:
        spans += [Span(line.text[done:start], role), Span(line.text[start:end], f"diff.mark.{line.kind.value}")]
        done = end
    spans.append(Span(line.text[done:], role))
    return [span._replace(text=inert_row(span.text.replace("\t", "    "))) for span in spans if span.text]
