"""Sets of characters as Rust's regex engine knows them: ranges of code points, and what they are called."""

from __future__ import annotations

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint, inclusive."""

LAST = sys.maxunicode
_SURROGATES = (0xD800, 0xDFFF)
"""In no set: they are no characters, and stand for the bytes of a file that are not UTF-8."""


def ranges_of(pairs: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def negated(ranges: Ranges) -> Ranges:
    edges = [(-1, -1), *ranges_of([*ranges, _SURROGATES]), (LAST + 1, LAST + 1)]
    return tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(edges) if a[1] + 1 <= b[0] - 1)


def union(a: Ranges, b: Ranges) -> Ranges:
    return ranges_of([*a, *b])


def intersection(a: Ranges, b: Ranges) -> Ranges:
    return negated(union(negated(a), negated(b)))


def difference(a: Ranges, b: Ranges) -> Ranges:
    return intersection(a, negated(b))


def contains(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


ALL = negated(())
NEWLINE: Ranges = ((10, 10),)
SPACE = ranges_of(
    ((low, high or low) for low, high in (
        (0x09, 0x0D), (0x20, 0), (0x85, 0), (0xA0, 0), (0x1680, 0), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0),
        (0x205F, 0), (0x3000, 0),
    ))
)  # fmt: skip
"""Unicode's White_Space, which `\\s` is in Rust. Python's has U+001C to U+001F too."""

_CIRCLED_LETTERS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Symbols that count as alphabetic."""

ASCII_CLASSES: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}

_LONG_NAMES = {
    "letter": "L", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt", "casedletter": "LC",
    "modifierletter": "Lm", "otherletter": "Lo", "mark": "M", "nonspacingmark": "Mn", "spacingmark": "Mc",
    "enclosingmark": "Me", "number": "N", "decimalnumber": "Nd", "letternumber": "Nl", "othernumber": "No",
    "punctuation": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd", "openpunctuation": "Ps",
    "closepunctuation": "Pe", "initialpunctuation": "Pi", "finalpunctuation": "Pf", "otherpunctuation": "Po",
    "symbol": "S", "mathsymbol": "Sm", "currencysymbol": "Sc", "modifiersymbol": "Sk", "othersymbol": "So",
    "separator": "Z", "spaceseparator": "Zs", "lineseparator": "Zl", "paragraphseparator": "Zp", "other": "C",
    "control": "Cc", "format": "Cf", "privateuse": "Co", "unassigned": "Cn",
}  # fmt: skip


@cache
def _by_category() -> dict[str, Ranges]:
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    start, current = 0, unicodedata.category("\0")
    for code in range(1, LAST + 2):
        category = unicodedata.category(chr(code)) if code <= LAST else ""
        if category != current:
            pairs[current].append((start, code - 1))
            start, current = code, category
    return {category: tuple(found) for category, found in pairs.items()}


def _categories(*prefixes: str) -> Ranges:
    pairs = [pair for name, found in _by_category().items() if name.startswith(prefixes) for pair in found]
    return intersection(ranges_of(pairs), ALL)


@cache
def digits() -> Ranges:
    return _categories("Nd")


@cache
def word() -> Ranges:
    r"""What `\w` is in Rust: alphabetic characters, marks, decimal digits, connectors, joiners."""
    return union(_categories("L", "Nl", "M", "Nd", "Pc"), ranges_of([*_CIRCLED_LETTERS, (0x200C, 0x200D)]))


@cache
def property_ranges(name: str) -> Ranges | None:
    """The characters of a general category, by its short or long name; None for any other property."""
    plain = "".join(char for char in name.lower() if char not in " _-")
    if plain in ("any", "ascii"):
        return ALL if plain == "any" else ((0, 127),)
    short = _LONG_NAMES.get(plain, plain[:1].upper() + plain[1:] if len(plain) <= 2 else "")
    if short.lower() == "lc":
        return _categories("Lu", "Ll", "Lt")
    if short not in {key for full in _by_category() for key in (full, full[0])} or short == "Cs":
        return None
    return _categories(short)


@cache
def _folded() -> dict[int, tuple[int, ...]]:
    """For each character that has others of another case: itself and those, by simple folding as in Rust."""
    groups: dict[int, list[int]] = defaultdict(list)
    for code in range(LAST + 1):
        char = chr(code)
        fold = char.casefold()
        if len(fold) != 1:
            fold = char.lower()
        if len(fold) == 1 and ord(fold) != code:
            groups[ord(fold)].append(code)
    return {code: (base, *others) for base, others in groups.items() for code in (base, *others)}


_ASCII_FOLDED: dict[int, tuple[int, ...]] = {
    code: (code, code ^ 32, *{"k": [0x212A], "s": [0x17F]}.get(chr(code).lower(), []))
    for code in range(128)
    if chr(code).isalpha()
}
"""The Kelvin sign is a k, the long s an s: all that plain letters need, without the whole table."""


def any_case(ranges: Ranges) -> Ranges:
    is_plain = not ranges or ranges[-1][1] < 128
    table = _ASCII_FOLDED if is_plain else _folded()
    return ranges_of(
        [
            *ranges,
            *((other, other) for code, others in table.items() if contains(ranges, code) for other in others),
        ]
    )
