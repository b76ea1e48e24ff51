"""Diffs as flat lines, from two texts or from a structured patch; changed words are marked inside changed lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from pyagent.ui.blocks import DiffKind, DiffLine

CONTEXT_LINES = 3
"""Unchanged lines kept around a change, as every diff tool does."""
MAX_COMPARED_LINES = 20_000
"""Above this, comparing line by line takes seconds; the whole file is then shown as replaced."""
_MAX_MARKED_CHARS = 500
"""Longer lines are not compared word by word: the marks would cost more than they tell."""
_MIN_ALIKE = 0.4
"""Lines less alike than this were rewritten: marking nearly every word of them is noise."""

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a structured patch: first line numbers from 1, lines with their ` `, `+` or `-` sign."""

    old_start: int
    new_start: int
    lines: tuple[str, ...]


def diff_lines(old: str, new: str, *, max_lines: int | None = None) -> tuple[DiffLine, ...]:
    """The difference of two texts, capped at `max_lines` lines and a count of the rest."""
    return cap(patch_lines(hunks(old, new)), max_lines)


def hunks(old: str, new: str) -> list[Hunk]:
    """The differing regions of two texts with their context."""
    old_lines, new_lines = _split(old), _split(new)
    if max(len(old_lines), len(new_lines)) > MAX_COMPARED_LINES:
        signed = [f"-{text}" for text in old_lines] + [f"+{text}" for text in new_lines]
        return [Hunk(1, 1, tuple(signed))]
    result: list[Hunk] = []
    for group in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        lines: list[str] = []
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [f" {text}" for text in old_lines[old_from:old_to]]
            else:
                lines += [f"-{text}" for text in old_lines[old_from:old_to]]
                lines += [f"+{text}" for text in new_lines[new_from:new_to]]
        result.append(Hunk(group[0][1] + 1, group[0][3] + 1, tuple(lines)))
    return result


def patch_lines(patch: Iterable[Hunk]) -> tuple[DiffLine, ...]:
    """Numbered lines of a structured patch with marks on what changed within lines."""
    result: list[DiffLine] = []
    for hunk in patch:
        if result:
            result.append(DiffLine(DiffKind.HUNK, "⋯"))
        old_number, new_number = hunk.old_start, hunk.new_start
        numbered: list[DiffLine] = []
        for signed in hunk.lines:
            sign, text = signed[:1], signed[1:]
            if sign == "-":
                numbered.append(DiffLine(DiffKind.REMOVED, text, old_number=old_number))
                old_number += 1
            elif sign == "+":
                numbered.append(DiffLine(DiffKind.ADDED, text, new_number=new_number))
                new_number += 1
            elif sign != "\\":
                numbered.append(DiffLine(DiffKind.CONTEXT, text, old_number, new_number))
                old_number, new_number = old_number + 1, new_number + 1
        result += _marked(numbered)
    return tuple(result)


def cap(lines: Sequence[DiffLine], max_lines: int | None) -> tuple[DiffLine, ...]:
    """At most `max_lines` lines; what was left out is counted in a last line of kind MORE."""
    if max_lines is None or len(lines) <= max_lines:
        return tuple(lines)
    return (*lines[:max_lines], DiffLine(DiffKind.MORE, f"{len(lines) - max_lines} more lines"))


def diff_counts(lines: Iterable[DiffLine]) -> tuple[int, int]:
    """How many lines were added and removed."""
    kinds = [line.kind for line in lines]
    return kinds.count(DiffKind.ADDED), kinds.count(DiffKind.REMOVED)


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _marked(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Pair each run of removed lines with the added run behind it and mark the pairs."""
    result = list(lines)
    index = 0
    while index < len(result):
        removed_end = _run_end(result, index, DiffKind.REMOVED)
        added_end = _run_end(result, removed_end, DiffKind.ADDED)
        if removed_end > index and removed_end - index == added_end - removed_end:
            for offset in range(removed_end - index):
                old, new = result[index + offset], result[removed_end + offset]
                old_marks, new_marks = intraline_marks(old.text, new.text)
                result[index + offset] = replace(old, marks=old_marks)
                result[removed_end + offset] = replace(new, marks=new_marks)
        index = max(added_end, index + 1)
    return result


def _run_end(lines: Sequence[DiffLine], start: int, kind: DiffKind) -> int:
    while start < len(lines) and lines[start].kind is kind:
        start += 1
    return start


Marks = tuple[tuple[int, int], ...]


def intraline_marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Changed character ranges of two versions of a line; none where the two have little in common."""
    if max(len(old), len(new)) > _MAX_MARKED_CHARS:
        return (), ()
    old_tokens, new_tokens = _TOKEN.findall(old), _TOKEN.findall(new)
    matcher = SequenceMatcher(None, old_tokens, new_tokens, autojunk=False)
    if matcher.ratio() < _MIN_ALIKE:
        return (), ()
    old_marks: list[tuple[int, int]] = []
    new_marks: list[tuple[int, int]] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            _add_mark(old_marks, old_tokens, old_from, old_to)
            _add_mark(new_marks, new_tokens, new_from, new_to)
    return tuple(old_marks), tuple(new_marks)


def _add_mark(marks: list[tuple[int, int]], tokens: Sequence[str], start: int, end: int) -> None:
    if end > start:
        first = sum(len(token) for token in tokens[:start])
        marks.append((first, first + sum(len(token) for token in tokens[start:end])))
