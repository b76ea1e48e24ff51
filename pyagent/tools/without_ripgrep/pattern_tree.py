"""What a regular expression consists of, and how `re` writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from pyagent.tools.without_ripgrep import characters
from pyagent.tools.without_ripgrep.characters import Ranges


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a class."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Look:
    """A place between characters."""

    kind: str
    """`^ $ A z b B < > bs be` (the last two are `\\b{start-half}` and `\\b{end-half}`)."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; empty matches the empty text."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first that matches."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `least` to `most` times; None for no limit."""

    item: Node
    least: int
    most: int | None
    is_greedy: bool


Node: TypeAlias = Chars | Look | Sequence | Choice | Repeat


def size(node: Node) -> int:
    """Steps with all repetitions written out."""
    match node:
        case Repeat(item, least, most, _):
            return (most or least or 1) * size(item)
        case Sequence(items) | Choice(items):
            return 1 + sum(size(item) for item in items)
        case _:
            return 1


def touches_newline(node: Node) -> bool:
    """Whether a newline may be matched, or a place be told by one."""
    match node:
        case Chars(ranges):
            return characters.contains(ranges, 10)
        case Look(kind):
            return kind in "^$Az"
        case Repeat(item, _, _, _):
            return touches_newline(item)
        case Sequence(items) | Choice(items):
            return any(touches_newline(item) for item in items)


_LOOKS = {"^": r"(?m:^)", "$": r"(?m:$)", "A": r"\A", "z": r"\Z"}
"""Python's `\\Z` is the very end, as `\\z` is in Rust."""


def written(node: Node, *, is_ascii: bool) -> str:
    """The expression for `re`; `is_ascii`: for text that is all ASCII, with small classes."""
    match node:
        case Chars(ranges):
            return _class_text(characters.intersection(ranges, ((0, 127),)) if is_ascii else ranges)
        case Look(kind):
            return _LOOKS.get(kind) or _word_edge(kind, is_ascii)
        case Sequence(items):
            return "".join(written(item, is_ascii=is_ascii) for item in items)
        case Choice(items):
            return f"(?:{'|'.join(written(item, is_ascii=is_ascii) for item in items)})"
        case Repeat(item, least, most, is_greedy):
            text = written(item, is_ascii=is_ascii)
            text = text if isinstance(item, Chars) else f"(?:{text})"
            return f"{text}{{{least},{'' if most is None else most}}}{'' if is_greedy else '?'}"


_UNDECODED = "[\\udc80-\\udcff]"
"""What `surrogateescape` makes of a byte that is not UTF-8."""


def _word_edge(kind: str, is_ascii: bool) -> str:
    word = r"\w" if is_ascii else _class_text(characters.word())
    if is_ascii and kind in "bB":
        # Python before 3.14 finds no \B in an empty text.
        return r"\b" if kind == "b" else r"(?!\b)"
    before, not_before, after, not_after = f"(?<={word})", f"(?<!{word})", f"(?={word})", f"(?!{word})"
    # Beside a byte that is not UTF-8 nothing is known to be outside a word.
    valid_before, valid_after = f"(?<!{_UNDECODED})", f"(?!{_UNDECODED})"
    return {
        "b": f"(?:{before}{not_after}|{not_before}{after})",
        "B": f"(?:{before}{after}|{not_before}{not_after}{valid_before}{valid_after})",
        "<": not_before + after,
        ">": before + not_after,
        "bs": not_before + valid_before,
        "be": not_after + valid_after,
    }[kind]


def _class_text(ranges: Ranges) -> str:
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return re.escape(chr(ranges[0][0]))
    return "[" + "".join(_code(a) if a == b else f"{_code(a)}-{_code(b)}" for a, b in ranges) + "]"


def _code(code: int) -> str:
    return f"\\U{code:08x}"
