"""Where an old text stands in a file, and what the file is with a new one in its place. Pure text, no files."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cached_property
from math import gcd

SHOWN_LINE_NUMBERS = 10
NEAREST_LINES = 12
SIMILAR_CHARACTERS = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2212": "-",
        "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2026": "...",
    }
)  # fmt: skip
"""Typographic characters that models type as ASCII. They are named in the error, never matched: a match would flatten
those in the replaced span."""


class MatchError(Exception):
    """The old text was not found, or more than once; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """The new text, with how it came about."""

    text: str
    count: int
    is_exact: bool
    """False if only whitespace differed between what was asked for and what the file has."""
    first_line: int
    """From 1."""


@dataclass(frozen=True)
class LineEndText:
    """A text with every CRLF read as LF, that still knows where each CR was."""

    raw: str

    @cached_property
    def plain(self) -> str:
        return self.raw.replace("\r\n", "\n")

    @cached_property
    def _returns(self) -> list[int]:
        """Positions in `plain` of the newlines that have a CR before them."""
        if "\r\n" not in self.raw:
            return []
        return [match.start() - count for count, match in enumerate(re.finditer("\r\n", self.raw))]

    def to_raw(self, position: int) -> int:
        """Where a position of `plain` lies in `raw`; before the CR for a newline that has one."""
        return position + bisect.bisect_left(self._returns, position)

    def newline_near(self, start: int, end: int) -> str:
        """The line end used in a part of `plain`, else that of the lines around it, else the most common one."""
        region = self.plain[start:end]
        total, returns = (
            region.count("\n"),
            bisect.bisect_left(self._returns, end) - bisect.bisect_left(self._returns, start),
        )
        if not total:
            following, before = self.plain.find("\n", end), self.plain.rfind("\n", 0, start)
            position = following if following >= 0 else before
            if position < 0:
                return "\n"
            index = bisect.bisect_left(self._returns, position)
            return "\r\n" if self._returns[index : index + 1] == [position] else "\n"
        return "\r\n" if returns * 2 > total else "\n"


def replace_text(file_text: str, old: str, new: str, *, replace_all: bool, allow_tolerant: bool = True) -> Replacement:
    """The file with `old` replaced by `new`: exactly once, or everywhere with `replace_all`.

    Line ends are the file's own. If nothing matches exactly, whole lines that differ in whitespace alone are
    replaced, if there is one such place; the new text then takes the file's indentation.

    Raises:
        MatchError: no match, or several without `replace_all`.
    """
    text = LineEndText(file_text)
    plain_old = old.replace("\r\n", "\n")
    starts = _overlapping(text.plain, plain_old)
    if not starts:
        if allow_tolerant and (tolerant := _tolerant_match(text.plain, plain_old, new.replace("\r\n", "\n"))):
            start, end, adapted = tolerant
            return Replacement(
                _spliced(text, [(start, end)], text.plain[start:end], adapted), 1, False, _line_of(text.plain, start)
            )
        raise MatchError(_not_found(text.plain, plain_old))
    if len(starts) > 1 and not replace_all:
        raise MatchError(_ambiguous(text.plain, starts))
    spans = [(match.start(), match.end()) for match in re.finditer(re.escape(plain_old), text.plain)]
    return Replacement(_spliced(text, spans, plain_old, new), len(spans), True, _line_of(text.plain, spans[0][0]))


def _spliced(text: LineEndText, spans: list[tuple[int, int]], old: str, new: str) -> str:
    """Replace the spans. What `old` and `new` begin and end with in common is left alone, line ends included."""
    plain_new = new.replace("\r\n", "\n")
    head = _common_prefix(old, plain_new)
    tail = _common_prefix(old[head:][::-1], plain_new[head:][::-1])
    middle = plain_new[head : len(plain_new) - tail]
    is_crlf_wanted = "\r\n" in new
    parts, position = [], 0
    for start, end in spans:
        newline = text.newline_near(start, end)
        raw_start, raw_end = text.to_raw(start + head), text.to_raw(end - tail)
        piece = middle.replace("\n", newline)
        if newline == "\n" and is_crlf_wanted:
            # The file has LF here, and CR was asked for in so many words.
            piece = new if not head and not tail else middle.replace("\n", "\r\n")
        parts += [text.raw[position:raw_start], piece]
        position = raw_end
    return "".join([*parts, text.raw[position:]])


def _common_prefix(a: str, b: str) -> int:
    length = min(len(a), len(b))
    return next((i for i in range(length) if a[i] != b[i]), length)


def _overlapping(text: str, part: str) -> list[int]:
    """All starts of `part`, overlapping ones too: `aa` stands twice in `aaa`, so replacing 'the one' is a guess."""
    starts, position = [], text.find(part)
    while position >= 0:
        starts.append(position)
        position = text.find(part, position + 1)
    return starts


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _ambiguous(text: str, starts: list[int]) -> str:
    lines = [_line_of(text, start) for start in starts[:SHOWN_LINE_NUMBERS]]
    more = ", …" if len(starts) > SHOWN_LINE_NUMBERS else ""
    return (
        f"old_string stands {len(starts)} times in the file, at lines {', '.join(map(str, lines))}{more}. "
        "Give more of the text around the one you mean, or set replace_all."
    )


# ── whitespace-tolerant matching ─────────────────────────────────────────────────────────────────────────────────


def _tolerant_match(text: str, old: str, new: str) -> tuple[int, int, str] | None:
    """The one place whose lines equal those of `old` but for whitespace at their ends: (start, end, adapted new)."""
    ends_line = old.endswith("\n")
    old_lines = old.removesuffix("\n").split("\n")
    stripped = [line.strip() for line in old_lines]
    if not any(stripped):
        return None
    lines = text.split("\n")
    bare = [line.strip() for line in lines]
    count = len(stripped)
    found = [i for i in range(len(bare) - count + 1) if bare[i] == stripped[0] and bare[i : i + count] == stripped]
    if len(found) != 1:
        return None
    first = found[0]
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + sum(len(line) + 1 for line in lines[first : first + count]) - 1
    adapted = _reindented(old_lines, lines[first : first + count], new.removesuffix("\n") if ends_line else new)
    if ends_line and not new.endswith("\n") and end < len(text):
        end += 1
    return start, end, adapted


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(old_lines: list[str], file_lines: list[str], new: str) -> str:
    """`new` with each indentation it shares with `old` replaced by what the file has there."""
    known: dict[str, str] = {}
    for old_line, file_line in zip(old_lines, file_lines, strict=True):
        if old_line.strip():
            known.setdefault(_indent(old_line), _indent(file_line))
    same = {old_line.strip(): file_line for old_line, file_line in zip(old_lines, file_lines, strict=True)}
    unit = gcd(*(len(indent.expandtabs(4)) for indent in known)) or 4
    result = []
    for line in new.split("\n"):
        body = line.strip()
        if not body:
            result.append(line if line not in old_lines else same.get("", line))
        elif line in old_lines:
            result.append(same[body])
        else:
            result.append(_adapted_indent(_indent(line), known, unit) + line.lstrip())
    return "\n".join(result)


def _adapted_indent(indent: str, known: dict[str, str], unit: int) -> str:
    if indent in known:
        return known[indent]
    uses_tabs = any("\t" in file_indent for file_indent in known.values())
    shorter = [old for old in known if indent.startswith(old)]
    if shorter:
        base = max(shorter, key=len)
        return known[base] + _in_file_style(indent[len(base) :], unit, uses_tabs=uses_tabs)
    longer = [old for old in known if old.startswith(indent)]
    if longer:
        base = min(longer, key=len)
        surplus = _in_file_style(base[len(indent) :], unit, uses_tabs=uses_tabs)
        if known[base].endswith(surplus):
            return known[base][: len(known[base]) - len(surplus)]
    return indent


def _in_file_style(indent: str, unit: int, *, uses_tabs: bool) -> str:
    if uses_tabs and "\t" not in indent and len(indent) % unit == 0:
        return "\t" * (len(indent) // unit)
    if not uses_tabs and "\t" in indent:
        return indent.replace("\t", " " * unit)
    return indent


# ── what to say on a miss ────────────────────────────────────────────────────────────────────────────────────────


def _not_found(text: str, old: str) -> str:
    message = "old_string was not found in the file."
    old_lines = old.removesuffix("\n").split("\n")
    if all(re.match(r"\s*\d+\t", line) for line in old_lines):
        return message + " Leave out the line numbers and the tab that Read puts before each line."
    flat_old = old.translate(SIMILAR_CHARACTERS)
    start = text.translate(SIMILAR_CHARACTERS).find(flat_old) if "…" not in text else -1
    if start >= 0 and flat_old:
        span = text[start : start + len(old)]
        different = sorted({a for a, b in zip(span, old, strict=False) if a != b})
        names = ", ".join(f"{char!r} (U+{ord(char):04X})" for char in different[:5])
        return f"{message} Line {_line_of(text, start)} differs only in typographic characters: the file has {names}."
    stripped = [line.strip() for line in old_lines]
    bare = [line.strip() for line in text.split("\n")]
    places = [i for i in range(len(bare)) if bare[i : i + len(stripped)] == stripped] if any(stripped) else []
    if len(places) > 1:
        numbers = ", ".join(str(i + 1) for i in places[:SHOWN_LINE_NUMBERS])
        return f"{message} Ignoring whitespace it stands {len(places)} times, at lines {numbers}; give the exact text."
    nearest = _nearest_place(bare, stripped)
    if nearest is None:
        return message
    lines = text.split("\n")[nearest : nearest + min(len(stripped) + 2, NEAREST_LINES)]
    shown = "\n".join(f"{nearest + 1 + i:6}\t{line[:200]}" for i, line in enumerate(lines))
    return f"{message} The nearest place is:\n{shown}"


def _nearest_place(bare: list[str], stripped: list[str]) -> int | None:
    """The line where most lines of the old text stand in place; of single lines, the most similar one."""
    wanted: dict[str, list[int]] = {}
    for offset, line in enumerate(stripped):
        if len(line) > 3:
            wanted.setdefault(line, []).append(offset)
    votes: dict[int, int] = {}
    for position, line in enumerate(bare):
        for offset in wanted.get(line, ()):
            votes[position - offset] = votes.get(position - offset, 0) + 1
    if votes:
        return max(0, max(votes, key=lambda start: (votes[start], -start)))
    words = set(re.findall(r"\w+", max(stripped, key=len, default="")))
    best, best_score = None, 0.0
    for position, line in enumerate(bare):
        own = set(re.findall(r"\w+", line[:2_000]))
        score = len(own & words) / len(own | words) if own and words else 0.0
        if score > best_score:
            best, best_score = position, score
    return best if best_score >= 0.34 else None
