"""Where vim's motions lead and what its text objects cover, on a text and an offset into it. No state, no screen."""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.ui.graphemes import OneCodeEach

OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
CLOSING = {closing: opening for opening, closing in OPENING.items()}
BRACKET_NAMES = {"b": "(", "B": "{", **{char: char for char in OPENING}, **CLOSING}
"""What may follow `i` or `a` for a pair of brackets → the opening one."""
QUOTES = frozenset("\"'`")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a motion leads. Under an operator it covers what lies between, whole lines if it is linewise, and the
    character it leads to if it is inclusive."""

    target: int
    is_linewise: bool = False
    is_inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """What a text object covers: characters `start` up to `end`."""

    start: int
    end: int
    is_linewise: bool = False


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line's newline stands, or the text ends."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def last_column(text: str, at: int) -> int:
    """The last place of the line a cursor can stand on outside of insertion."""
    return max(line_start(text, at), line_end(text, at) - 1)


def first_nonblank(text: str, at: int) -> int:
    start, end = line_start(text, at), line_end(text, at)
    while start < end and text[start] in " \t":
        start += 1
    return start


def resting_place(text: str, at: int) -> int:
    """The nearest place where a cursor can stand outside of insertion."""
    at = min(max(at, 0), len(text))
    return min(at, last_column(text, at))


def moved_lines(text: str, at: int, lines: int, column: int) -> int | None:
    """The same column some lines further down (up if negative); None where there is no further line at all."""
    start = line_start(text, at)
    for _ in range(abs(lines)):
        if lines > 0:
            following = text.find("\n", start)
            if following < 0:
                break
            start = following + 1
        elif start == 0:
            break
        else:
            start = line_start(text, start - 1)
    if start == line_start(text, at):
        return None
    return min(start + column, last_column(text, start))


def _kind(char: str, *, is_big: bool) -> int:
    """0 for blanks, and one number for each sort of character that makes up words."""
    if char.isspace():
        return 0
    return 1 if is_big or char.isalnum() or char == "_" or ord(char) in OneCodeEach.WORD_CODES else 2


def word_forward(text: str, at: int, *, is_big: bool) -> int:
    """The beginning of the next word. An empty line is a word."""
    size = len(text)
    if at >= size:
        return size
    kind = _kind(text[at], is_big=is_big)
    while kind and at < size and _kind(text[at], is_big=is_big) == kind:
        at += 1
    while at < size and text[at].isspace():
        if text[at] == "\n" and at + 1 < size and text[at + 1] == "\n":
            return at + 1
        at += 1
    return at


def word_end(text: str, at: int, *, is_big: bool) -> int:
    """The last character of this word, or of the next one where the cursor stands on it already."""
    size, at = len(text), at + 1
    while at < size and text[at].isspace():
        at += 1
    if at >= size:
        return max(0, size - 1)
    kind = _kind(text[at], is_big=is_big)
    while at + 1 < size and _kind(text[at + 1], is_big=is_big) == kind:
        at += 1
    return at


def word_back(text: str, at: int, *, is_big: bool) -> int:
    """The beginning of this word, or of the one before where the cursor stands on it already."""
    at -= 1
    while at > 0 and text[at].isspace():
        if text[at] == "\n" and text[at - 1] == "\n":
            return at
        at -= 1
    if at <= 0:
        return 0
    kind = _kind(text[at], is_big=is_big)
    while kind and at > 0 and _kind(text[at - 1], is_big=is_big) == kind:
        at -= 1
    return at


def found_in_line(text: str, at: int, char: str, kind: str, count: int, *, is_repeat: bool = False) -> int | None:
    """Where `f`, `F`, `t` or `T` leads. A repeated `t` does not stop at the character it stands before."""
    start, end = line_start(text, at), line_end(text, at)
    place = at
    is_forward = kind in "ft"
    if is_repeat and kind in "tT" and count == 1:
        place += 1 if is_forward else -1
    for _ in range(count):
        found = text.find(char, place + 1, end) if is_forward else text.rfind(char, start, max(start, place))
        if found < 0:
            return None
        place = found
    return place - 1 if kind == "t" else place + 1 if kind == "T" else place


def matching_bracket(text: str, at: int) -> int | None:
    """The partner of the bracket at the cursor, or of the first one after it on the line."""
    end = line_end(text, at)
    while at < end and text[at] not in OPENING and text[at] not in CLOSING:
        at += 1
    if at >= end:
        return None
    bracket = text[at]
    step = 1 if bracket in OPENING else -1
    partner = OPENING[bracket] if step > 0 else CLOSING[bracket]
    depth, place = 0, at
    while 0 <= place < len(text):
        depth += (text[place] == bracket) - (text[place] == partner)
        if not depth:
            return place
        place += step
    return None


def paragraph(text: str, at: int, step: int) -> int:
    """The next empty line in that direction, else the text's end."""
    start = line_start(text, at)
    while True:
        if step > 0:
            following = text.find("\n", start)
            if following < 0:
                return max(0, len(text) - 1)
            start = following + 1
        elif start == 0:
            return 0
        else:
            start = line_start(text, start - 1)
        if line_end(text, start) == start:
            return start


# ── text objects ──


def text_object(text: str, at: int, around: bool, name: str) -> Extent | None:
    """What `i` (or, around, `a`) and a name cover at the cursor; None where there is no such thing."""
    if name in ("w", "W"):
        return _word_object(text, at, around, is_big=name == "W")
    if name in QUOTES:
        return _quoted(text, at, around, name)
    if name in BRACKET_NAMES:
        return _bracketed(text, at, around, BRACKET_NAMES[name])
    return _paragraph_object(text, at, around) if name == "p" else None


def _word_object(text: str, at: int, around: bool, *, is_big: bool) -> Extent | None:
    first, end = line_start(text, at), line_end(text, at)
    if at >= end:
        return None
    kind = _kind(text[at], is_big=is_big)
    start = stop = at
    while start > first and _kind(text[start - 1], is_big=is_big) == kind:
        start -= 1
    while stop < end and _kind(text[stop], is_big=is_big) == kind:
        stop += 1
    if around:
        after = stop
        next_kind = _kind(text[stop], is_big=is_big) if stop < end else 0
        # From a blank, the word behind it belongs to it; from a word, the blanks behind it, else those before.
        while after < end and (_kind(text[after], is_big=is_big) == (0 if kind else next_kind)):
            after += 1
        if kind and after == stop:
            while start > first and text[start - 1].isspace():
                start -= 1
        stop = after
    return Extent(start, stop)


def _quoted(text: str, at: int, around: bool, quote: str) -> Extent | None:
    first, end = line_start(text, at), line_end(text, at)
    places = [place for place in range(first, end) if text[place] == quote and not _is_escaped(text, place, first)]
    for opening, closing in zip(places[::2], places[1::2], strict=False):
        if at <= closing:
            return Extent(opening, closing + 1) if around else Extent(opening + 1, closing)
    return None


def _is_escaped(text: str, place: int, first: int) -> bool:
    count = 0
    while place - count > first and text[place - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _bracketed(text: str, at: int, around: bool, opening: str) -> Extent | None:
    closing, depth, start = OPENING[opening], 0, at
    while start >= 0:
        if start < len(text):
            if text[start] == closing and start != at:
                depth += 1
            elif text[start] == opening:
                if not depth:
                    break
                depth -= 1
        start -= 1
    if start < 0:
        return None
    end = matching_bracket(text, start)
    if end is None:
        return None
    return Extent(start, end + 1) if around else Extent(start + 1, end)


def _paragraph_object(text: str, at: int, around: bool) -> Extent | None:
    if not text:
        return None
    is_blank = line_start(text, at) == line_end(text, at)

    def stretch(place: int, blank: bool) -> int:
        """The end of the run of lines of this sort that begins at a line's start."""
        while place < len(text) and (line_end(text, place) == place) == blank:
            place = line_end(text, place) + 1
        return min(place, len(text))

    start = line_start(text, at)
    while start > 0 and (line_start(text, start - 1) == start - 1) == is_blank:
        start = line_start(text, start - 1)
    end = stretch(start, is_blank)
    return Extent(start, stretch(end, not is_blank) if around else end, is_linewise=True)
