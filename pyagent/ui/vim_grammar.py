"""The grammar of vim's commands: which keys make a whole one, which only its beginning. No text, no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

MAX_COUNT = 10_000
"""A larger count is a key held down by accident."""


@dataclass(frozen=True, slots=True)
class Command:
    count: int
    has_count: bool
    operator: str = ""
    name: str = ""
    """A motion, a simple command, or `line` for a doubled operator."""
    argument: str = ""
    """The character of `f`, `r` …, or the name of a text object."""


OPERATORS = frozenset("dcy<>")
MOTIONS = frozenset("hljkwbeWBE0^$G;,%{}")
FINDS = frozenset("fFtT")
SIMPLE = frozenset({*"xXDCYpPJu~.oOIAaivVsS", "ctrl+r"})
VISUAL_ACTIONS = frozenset("dxycsJ~pPo<>")
ALIASES = {
    "left": "h", "backspace": "h", "right": "l", "space": "l", " ": "l", "up": "k", "down": "j", "home": "0",
    "end": "$",
}  # fmt: skip


Read: TypeAlias = Command | Literal["incomplete", "invalid"]


def read_command(keys: tuple[str, ...], *, is_visual: bool) -> Read:
    """The command that these keys are."""
    count, place = counted(keys, 0)
    if place == len(keys):
        return "incomplete"
    has_count = count > 0
    first = keys[place]
    if not is_visual and first in OPERATORS:
        second, after = counted(keys, place + 1)
        if after == len(keys):
            return "incomplete"
        total = min(max(1, count) * max(1, second), MAX_COUNT)
        if keys[after] == first:
            return Command(total, has_count or second > 0, first, "line")
        if keys[after] in ("i", "a"):
            return _object_command(keys, after, total, first)
        return _motion_command(keys, after, total, has_count or second > 0, first)
    if is_visual and first in ("i", "a"):
        return _object_command(keys, place, max(1, count), "")
    if first == "r":
        return _with_character(keys, place, max(1, count), has_count, "")
    if first in (VISUAL_ACTIONS | {"v", "V"} if is_visual else SIMPLE):
        return Command(max(1, count), has_count, "", first)
    return _motion_command(keys, place, max(1, count), has_count, "")


def counted(keys: tuple[str, ...], place: int) -> tuple[int, int]:
    """The count that begins at this key, 0 for none, and where it ends."""
    digits = ""
    while place < len(keys) and keys[place].isdecimal() and keys[place].isascii() and (digits or keys[place] != "0"):
        digits += keys[place]
        place += 1
    return min(int(digits or 0), MAX_COUNT), place


def _object_command(keys: tuple[str, ...], place: int, count: int, operator: str) -> Read:
    if place + 1 == len(keys):
        return "incomplete"
    return Command(count, False, operator, keys[place] + "-object", keys[place + 1])


def _with_character(keys: tuple[str, ...], place: int, count: int, has_count: bool, operator: str) -> Read:
    if place + 1 == len(keys):
        return "incomplete"
    char = {"space": " "}.get(keys[place + 1], keys[place + 1])
    return Command(count, has_count, operator, keys[place], char) if len(char) == 1 else "invalid"


def _motion_command(keys: tuple[str, ...], place: int, count: int, has_count: bool, operator: str) -> Read:
    name = ALIASES.get(keys[place], keys[place])
    if name in FINDS:
        return _with_character(keys, place, count, has_count, operator)
    if name == "g":
        if place + 1 == len(keys):
            return "incomplete"
        return Command(count, has_count, operator, "gg") if keys[place + 1] == "g" else "invalid"
    return Command(count, has_count, operator, name) if name in MOTIONS else "invalid"
