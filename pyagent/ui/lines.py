"""Screen lines without a screen: spans of text with style roles, wrapped to a width in cells.

A `Line` names *roles* ("strong", "code.keyword"), never colours, so a rendered line outlives a change of theme. It also
knows what a copy must leave out (its gutter) and how it joins the line above (its joint).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes

TAB_CELLS = 4
"""Cells a tab advances to; eight would waste a quarter of a narrow terminal on nested code."""

_C0_AND_C1 = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)}
_C0_AND_C1 |= dict.fromkeys(range(0x80, 0xA0), "\ufffd")
_BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
_INERT: dict[int, str] = {**_C0_AND_C1, **_BIDI, 0x7F: "\u2421", 0x0D: "", 0x2028: "\n", 0x2029: "\n", 0xFEFF: ""}
"""Control characters become their pictures and direction overrides a replacement mark, so that no text from outside can
move the cursor, ring, retitle the terminal or show code in another order than it runs."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[ \t]+|[^ \t]+")


def inert(text: str) -> str:
    """Text with every control character made visible and harmless; tabs and newlines stay, carriage returns go."""
    if text.isascii() and text.isprintable():
        return text
    return _SURROGATE.sub("\ufffd", text).translate(_INERT)


_ROW = {0x09: " ", 0x0A: "␊"}


def inert_row(text: str) -> str:
    """`inert` for what must stay on one row: a newline in a file's name or a command becomes its picture."""
    return inert(text).translate(_ROW)


class Span(NamedTuple):
    """A piece of a line: literal text, space-separated style roles (later ones win) and an optional link target."""

    text: str
    role: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One screen row.

    `gutter_chars` leading characters are furniture that a copy leaves out. `joint` is None when the line starts a new
    source line, else the text (a space or nothing) that stood between it and the row above before wrapping.
    `fill` is the role that paints the row's background to the full width.
    """

    spans: tuple[Span, ...] = ()
    gutter_chars: int = 0
    joint: str | None = None
    fill: str = ""

    @property
    def text(self) -> str:
        """The characters of the row, gutter included."""
        return "".join(span.text for span in self.spans)

    @property
    def content(self) -> str:
        """The characters a copy takes."""
        return self.text[self.gutter_chars :]

    @property
    def is_soft_wrap(self) -> bool:
        """The row continues the source line of the row above."""
        return self.joint is not None

    def indented(self, gutter: Sequence[Span]) -> Line:
        """The line behind a further gutter."""
        added_chars = sum(len(span.text) for span in gutter)
        return replace(self, spans=(*gutter, *self.spans), gutter_chars=self.gutter_chars + added_chars)


BLANK_LINE = Line()


def plain_line(text: str, role: str = "", *, gutter: str = "", fill: str = "") -> Line:
    """A line of one role."""
    spans = (Span(gutter, role), Span(text, role)) if gutter else (Span(text, role),)
    return Line(spans, gutter_chars=len(gutter), fill=fill)


def expand_tabs(text: str) -> str:
    """Tabs as spaces up to the next multiple of `TAB_CELLS`, counted from the start of the text."""
    return text.expandtabs(TAB_CELLS) if "\t" in text else text


def truncate(text: str, width_cells: int) -> str:
    """At most `width_cells` of the text, ending in an ellipsis where something was cut."""
    if len(text) * 2 <= width_cells or cell_len(text) <= width_cells:
        return text
    if width_cells <= 0:
        return ""
    head, _ = _split_at(text, width_cells - 1)
    return head + "…"


def pad(text: str, width_cells: int, align: str = "left") -> str:
    """The text in exactly `width_cells` cells (or longer, if it already is)."""
    missing = max(0, width_cells - cell_len(text))
    if align == "right":
        return " " * missing + text
    if align == "center":
        return " " * (missing // 2) + text + " " * (missing - missing // 2)
    return text + " " * missing


def _split_at(text: str, width_cells: int) -> tuple[str, str]:
    """Cut before the first grapheme that would pass `width_cells`."""
    window = text[: width_cells * 8 + 16]
    used_cells = cut = 0
    for _, end, cells in split_graphemes(window)[0]:
        if used_cells + cells > width_cells:
            break
        used_cells, cut = used_cells + cells, end
    return text[:cut], text[cut:]


def _is_wide(text: str) -> bool:
    return not text.isascii() and any(0x2E80 <= ord(char) <= 0xFFDC or ord(char) >= 0x20000 for char in text)


class _Unit(NamedTuple):
    """White space and the unbreakable word after it; a row may break before the space."""

    space: list[Span]
    word: list[Span]


def _units(spans: Iterable[Span]) -> list[_Unit]:
    """The text as words with the space before each. Wide scripts break between any two characters."""
    units = [_Unit([], [])]
    for span in spans:
        for match in _WORD.finditer(span.text):
            piece = span._replace(text=match.group())
            if piece.text[0] in " \t":
                if units[-1].word:
                    units.append(_Unit([], []))
                units[-1].space.append(piece)
            elif _is_wide(piece.text):
                for start, end, _ in split_graphemes(piece.text)[0]:
                    if units[-1].word:
                        units.append(_Unit([], []))
                    units[-1].word.append(piece._replace(text=piece.text[start:end]))
            else:
                if units[-1].word and _is_wide(units[-1].word[-1].text):
                    units.append(_Unit([], []))
                units[-1].word.append(piece)
    return units


def _cells(spans: Sequence[Span]) -> int:
    if len(spans) == 1:
        return cell_len(spans[0].text)
    return cell_len("".join(span.text for span in spans))


def wrap_spans(spans: Sequence[Span], width_cells: int) -> list[Line]:
    """Lines of at most `width_cells`, broken at spaces where possible; at least one line.

    The space a break swallows is kept as the next line's joint, so that joining all lines gives the text back
    (but for white space at the very end).
    """
    width_cells = max(2, width_cells)
    total_chars = sum(len(span.text) for span in spans)
    if total_chars <= width_cells * 2 and _cells(spans) <= width_cells:
        return [Line(tuple(span for span in spans if span.text))]
    rows = _Rows(width_cells)
    for unit in _units(spans):
        unit_cells = _cells(unit.space) + _cells(unit.word)
        if rows.used_cells + unit_cells <= width_cells:
            rows.add(unit.space + unit.word, unit_cells)
        elif not unit.word:
            break
        elif rows.row:
            rows.flush("".join(span.text for span in unit.space))
            rows.add_breaking(unit.word)
        else:
            rows.add_breaking(unit.space + unit.word)
    rows.flush("")
    return rows.lines


class _Rows:
    """The rows made so far and the one being filled."""

    def __init__(self, width_cells: int) -> None:
        self.lines: list[Line] = []
        self.row: list[Span] = []
        self.used_cells = 0
        self._width_cells = width_cells
        self._joint: str | None = None

    def add(self, pieces: Sequence[Span], cells: int) -> None:
        """Put pieces that fit at the end of the row."""
        for piece in pieces:
            if self.row and self.row[-1][1:] == piece[1:]:
                self.row[-1] = piece._replace(text=self.row[-1].text + piece.text)
            else:
                self.row.append(piece)
        self.used_cells += cells

    def add_breaking(self, pieces: Sequence[Span]) -> None:
        """Put pieces that may need to be cut over several rows."""
        for piece in pieces:
            text, cells = piece.text, cell_len(piece.text)
            while self.used_cells + cells > self._width_cells:
                head, text = _split_at(text, self._width_cells - self.used_cells)
                if head:
                    self.add((piece._replace(text=head),), 0)
                self.flush("")
                cells = cell_len(text)
            if text:
                self.add((piece._replace(text=text),), cells)

    def flush(self, next_joint: str) -> None:
        """End the row; `next_joint` is what stood between it and the next one."""
        self.lines.append(Line(tuple(self.row), joint=self._joint))
        self.row, self.used_cells, self._joint = [], 0, next_joint


def wrap_text(text: str, width_cells: int, role: str = "") -> list[Line]:
    """Lines of a multi-line text in one role; source newlines start unjoined lines."""
    lines: list[Line] = []
    for source_line in expand_tabs(inert(text)).split("\n"):
        lines += wrap_spans((Span(source_line, role),), width_cells)
    return lines


def join_copied(lines: Iterable[tuple[Line, int, int | None]]) -> str:
    """The unwrapped text of (line, first character, end character or None) triples, gutters left out."""
    parts: list[str] = []
    for line, start, end in lines:
        piece = line.text[max(start, line.gutter_chars) : end]
        if parts:
            parts.append("\n" if line.joint is None else line.joint)
        parts.append(piece.rstrip() if line.fill else piece)
    return "".join(parts)
