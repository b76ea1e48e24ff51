"""Fuzzy matching for menus and pickers: letters in order, better at word starts and in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_ADJACENT = 8
_WORD_START = 6
_TEXT_START = 4
_IN_NAME = 3
_EXACT_PREFIX = 30
_GAP_COST = 1
_SEPARATORS = frozenset("/_-. :")


class FuzzyMatch(NamedTuple):
    """How well a text matches (higher is better) and the indexes of the matched characters."""

    score: int
    positions: tuple[int, ...]


def fuzzy_match(query: str, text: str) -> FuzzyMatch | None:
    """The match of a query in a text, case aside, or None. Letters in the last path part count more."""
    if not query:
        return FuzzyMatch(0, ())
    needle, haystack = query.lower(), text.lower()
    name_start = text.rstrip("/").rfind("/") + 1
    whole = haystack.rfind(needle)
    if whole >= 0 and len(haystack) == len(text):
        positions = tuple(range(whole, whole + len(needle)))
    else:
        found = _leftmost(needle, haystack)
        if found is None:
            return None
        positions = found
    score = _EXACT_PREFIX if needle == haystack else 0
    score += _EXACT_PREFIX if haystack.startswith(needle) or haystack.startswith(needle, name_start) else 0
    previous = -2
    for position in positions:
        if position == previous + 1:
            score += _ADJACENT
        elif previous >= 0:
            score -= _GAP_COST * min(10, position - previous - 1)
        if position == 0:
            score += _TEXT_START
        elif text[min(position, len(text)) - 1] in _SEPARATORS:
            score += _WORD_START
        if position >= name_start:
            score += _IN_NAME
        previous = position
    return FuzzyMatch(score - len(text) // 10, positions)


def _leftmost(needle: str, haystack: str) -> tuple[int, ...] | None:
    """The tightest match that ends earliest: found forwards, then tightened backwards."""
    at = -1
    for char in needle:
        at = haystack.find(char, at + 1)
        if at < 0:
            return None
    positions: list[int] = []
    for char in reversed(needle):
        at = haystack.rfind(char, 0, at + 1)
        positions.append(at)
        at -= 1
    return tuple(reversed(positions))


def rank(query: str, items: Iterable[T], key: Callable[[T], str], *, limit: int) -> list[tuple[T, FuzzyMatch]]:
    """The best `limit` items with their matches, best first; equal ones keep their order."""
    matched = [(item, match) for item in items if (match := fuzzy_match(query, key(item))) is not None]
    if query:
        matched.sort(key=lambda pair: -pair[1].score)
    return matched[:limit]
