"""One file searched, and what was found written as ripgrep writes it with `--null --no-heading`."""

from __future__ import annotations

import codecs
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyagent.tools.without_ripgrep.patterns import Pattern, PatternError
from pyagent.tools.without_ripgrep.query import SearchQuery

_BUFFER_BYTES = 65_536
"""How much ripgrep reads at a time: a NUL in the first of it makes a file binary before anything is searched."""


@dataclass(frozen=True)
class _Text:
    """A file's text and where its lines begin."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return starts[:-1] if starts[-1] == len(self.text) else starts

    def line_of(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1

    def is_in_a_line(self, position: int) -> bool:
        """False for the place behind the last newline."""
        return position < len(self.text) or not self.text.endswith("\n")

    def has_nul(self, number: int) -> bool:
        return "\0" in self.text[slice(*self.bounds(number))]

    def bounds(self, number: int) -> tuple[int, int]:
        """Of a line with its newline."""
        following = number + 1
        return self.starts[number], self.starts[following] if following < len(self.starts) else len(self.text)


def matches(regex: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """As ripgrep goes through them: no empty match right behind another match."""
    last_end = -1
    position = start
    while position <= end and (match := regex.search(text, position, len(text))) and match.start() <= end:
        begin, stop = match.span()
        if begin == stop:
            position = stop + 1
            if stop == last_end:
                continue
        else:
            position = stop
        last_end = stop
        yield begin, stop


def search_data(name: bytes, data: bytes, pattern: Pattern, query: SearchQuery) -> bytes:
    """`name` is the path as written in the output; empty if nothing is found."""
    data, nul = _decoded(data)
    is_whole = pattern.may_match_newline
    was_cut = False
    if nul >= 0 and not query.only:
        end = (0 if nul < _BUFFER_BYTES else len(data)) if is_whole else _searched_bytes(data, nul)
        was_cut = end < len(data)
        data = data[:end]
    text = _Text(data.decode("utf-8", "surrogateescape"))
    if not text.text:
        return b""
    found = (_whole_matches if is_whole else _line_matches)(text, pattern, query, is_binary=nul >= 0)
    if not found.lines:
        return b""
    if query.mode == "content":
        return _content(name, text, found, query, nul, is_whole)
    if nul >= 0 and not query.only and is_whole:
        # Having read the whole file, ripgrep looks for a NUL in the lines that match only.
        looked_at = _block(found.lines, 0) if query.mode == "files_with_matches" else found.lines
        was_cut = any(text.has_nul(number) for number in looked_at)
        if was_cut:
            return b""
    if query.mode == "files_with_matches":
        return name + b"\0"
    return b"" if was_cut else b"%s\0%d\n" % (name, found.count)


@dataclass(frozen=True, slots=True)
class _Found:
    lines: tuple[int, ...]
    count: int
    spans: dict[int, list[tuple[int, int]]]
    """For each matching line the parts of it that match, when only these are asked for."""


def _decoded(data: bytes) -> tuple[bytes, int]:
    """UTF-8 (or whatever it is) without a byte order mark; and where the first NUL is, or -1."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    data = data.removeprefix(codecs.BOM_UTF8)
    return data, data.find(b"\0")


def _searched_bytes(data: bytes, nul: int) -> int:
    """How far ripgrep gets before it reads the NUL: whole buffers, each up to its last newline."""
    position, capacity = 0, _BUFFER_BYTES
    while nul >= position + capacity:
        newline = data.rfind(b"\n", position, position + capacity)
        if newline < 0:
            capacity *= 2
        else:
            position = newline + 1
    return position


def _line_matches(text: _Text, pattern: Pattern, query: SearchQuery, *, is_binary: bool) -> _Found:
    regex, whole = pattern.regex_for(text.text), text.text
    lines: list[int] = []
    spans: dict[int, list[tuple[int, int]]] = {}
    position = 0
    while position < len(whole) and (match := regex.search(whole, position)) and text.is_in_a_line(match.start()):
        number = text.line_of(match.start())
        start, end = text.bounds(number)
        lines.append(number)
        if query.is_only_matching:
            stop = end - (whole[end - 1] == "\n")
            parts = [(start + a, start + b) for a, b in matches(regex, whole[start:stop], 0, stop - start)]
            if stop == end:
                # ripgrep misses an empty match at the very end, and shows the line where it finds no part of it.
                parts = [part for part in parts if part != (end, end)] or [(start, end)]
            spans[number] = parts
        if query.mode == "files_with_matches" and not is_binary:
            break
        position = end
    return _Found(tuple(lines), len(lines), spans)


def _whole_matches(text: _Text, pattern: Pattern, query: SearchQuery, *, is_binary: bool) -> _Found:
    regex, whole = pattern.regex_for(text.text), text.text
    lines: dict[int, None] = {}
    spans: dict[int, list[tuple[int, int]]] = {}
    count = 0
    for start, stop in matches(regex, whole, 0, len(whole)):
        if not text.is_in_a_line(start):
            break
        first, last = text.line_of(start), text.line_of(max(start, stop - 1))
        if start == stop and query.mode == "count" and not whole.isascii():
            # ripgrep counts the places between the bytes of a character too.
            raise PatternError("rg: counting empty matches in text beyond ASCII is not possible without ripgrep")
        count += 1
        for number in range(first, last + 1):
            lines[number] = None
            begin, end = text.bounds(number)
            end -= whole[end - 1] == "\n"
            spans.setdefault(number, []).append((max(begin, start), max(begin, min(end, stop))))
        if query.mode == "files_with_matches" and not is_binary:
            break
    return _Found(tuple(lines), count, spans)


def _block(lines: Sequence[int], position: int) -> range:
    """The matching lines without a gap from `position` on: across lines ripgrep takes them as one."""
    end = position
    while end + 1 < len(lines) and lines[end + 1] == lines[end] + 1:
        end += 1
    return range(lines[position], lines[end] + 1)


def _content(name: bytes, text: _Text, found: _Found, query: SearchQuery, nul: int, is_whole: bool) -> bytes:
    """The lines, up to where a file turns out binary; of one asked for by name that is said."""
    shown, is_ended = ([], True) if 0 <= nul < _BUFFER_BYTES else _shown_lines(text, found, query, is_whole)
    parts = list(_written(name, text, set(found.lines), shown, found.spans, query))
    if is_ended and query.only:
        parts.append(b'%s: binary file matches (found "\\0" byte around offset %d)\n' % (name, nul))
    return b"".join(parts)


def _shown_lines(text: _Text, found: _Found, query: SearchQuery, is_whole: bool) -> tuple[list[int], bool]:
    """The numbers of the lines to show, and whether a NUL ended them."""
    hits = set(found.lines)
    candidates = sorted(
        {
            number
            for hit in hits
            for number in range(max(0, hit - query.before), min(len(text.starts), hit + query.after + 1))
        }
    )
    shown: list[int] = []
    while len(shown) < len(candidates):
        number = candidates[len(shown)]
        block = range(number, number + 1)
        if number in hits and is_whole:
            block = _block(found.lines, bisect_right(found.lines, number) - 1)
        if any(text.has_nul(member) for member in block):
            return shown, True
        shown += block
    return shown, False


def _written(
    name: bytes,
    text: _Text,
    hits: set[int],
    shown: list[int],
    spans: dict[int, list[tuple[int, int]]],
    query: SearchQuery,
) -> Iterator[bytes]:
    for position, number in enumerate(shown):
        if (query.before or query.after) and position and shown[position - 1] != number - 1:
            yield b"--\n"
        head = b"%s\0%d%s" % (name, number + 1, b":" if number in hits else b"-")
        begin, end = text.bounds(number)
        if query.is_only_matching and number in hits:
            for start, stop in spans[number]:
                offset_bytes = len(text.text[begin:start].encode("utf-8", "surrogateescape"))
                yield head + _cut(text.text[start:stop], query.max_columns_bytes, 0, offset_bytes) + b"\n"
        else:
            has_newline = text.text[end - 1] == "\n"
            yield head + _cut(text.text[begin : end - has_newline], query.max_columns_bytes, has_newline) + b"\n"


def _cut(line: str, max_columns_bytes: int, newline_bytes: int, offset_bytes: int | None = None) -> bytes:
    """A long line as ripgrep cuts it; `offset_bytes` is where a part stands in its line."""
    data = line.encode("utf-8", "surrogateescape")
    if len(data) + newline_bytes <= max_columns_bytes:
        return data
    kept = "".join(_first_graphemes(line, max_columns_bytes)).encode("utf-8", "surrogateescape")
    if offset_bytes is None:
        return kept + b" [... omitted end of long line]"
    # What ripgrep counts as "more" is the part itself, where it begins behind as many bytes as are kept.
    return kept + (b" [... 1 more match]" if offset_bytes >= len(kept) else b" [... 0 more matches]")


def _first_graphemes(line: str, count: int) -> Iterator[str]:
    """Characters with the marks that join them, as many as ripgrep counts as columns."""
    is_joined = False
    for position, char in enumerate(line):
        is_mark = not char.isascii() and (
            unicodedata.category(char) in ("Mn", "Me", "Mc") or char == "\u200d" or "\U0001f3fb" <= char <= "\U0001f3ff"
        )
        if not (position and (is_mark or is_joined)):
            count -= 1
            if count < 0:
                return
        is_joined = char == "\u200d"
        yield char
