"""What a person sees as one character: where a cursor may stand, and what one Backspace removes.

An accent, a skin tone or a joined family takes several code points; a flag takes two letters. The rules are Unicode's
(UAX #29), as wcwidth has them.
"""

from __future__ import annotations

from typing import TypeGuard

_JOINER = "\u200d"
_STRETCH_CHARS = 64
"""Looked at are the stretch that holds a place and the one before it: further back would cost a long row of emoji its
square. An even number, so that a row of flags is paired alike from any of them."""


def next_boundary(text: str, at: int) -> int:
    """Where the character ends that begins at, or holds, this place; the text's length at its end."""
    at += 1
    while at < len(text) and not is_boundary(text, at):
        at += 1
    return min(at, len(text))


def previous_boundary(text: str, at: int) -> int:
    """Where the character begins that ends at, or holds, this place; 0 at the text's beginning."""
    at -= 1
    while at > 0 and not is_boundary(text, at):
        at -= 1
    return max(at, 0)


def boundary_at_or_before(text: str, at: int) -> int:
    """The place itself if a cursor may stand there, else the beginning of the character that holds it."""
    return at if is_boundary(text, at) else previous_boundary(text, at)


def is_boundary(text: str, at: int) -> bool:
    """Whether one character ends and another begins here."""
    if not 0 < at < len(text):
        return True
    if text[at] < "\u0300":
        return (text[at - 1], text[at]) != ("\r", "\n")
    from wcwidth import grapheme_boundary_before  # Not needed before the first paint.

    start = max(0, (at // _STRETCH_CHARS - 1) * _STRETCH_CHARS)
    stretch = text[start : at + 1]
    return start + grapheme_boundary_before(stretch, len(stretch)) == at


def graphemes(text: str) -> list[str]:
    """The text in characters as a person counts them."""
    parts, start = [], 0
    while start < len(text):
        end = next_boundary(text, start)
        parts.append(text[start:end])
        start = end
    return parts


def is_joiner(char: str | None) -> TypeGuard[str]:
    """Whether it has no looks of its own and changes those of its neighbours: joiners, and the tags of some flags."""
    return char is not None and (char in ("\u200c", _JOINER) or "\U000e0020" <= char <= "\U000e007f")


def word_classes(text: str) -> str:
    """A text of the same length in which an accent is as good a letter as the one it stands on, so that a word written
    with combining marks, as Hindi and Thai are, is one word."""
    if text.isascii():
        return text
    return "".join(
        ("x" if is_word_sign(sign) else sign[0]) * len(sign) if len(sign) > 1 else sign for sign in graphemes(text)
    )


def is_word_sign(sign: str) -> bool:
    """Whether a character, with all that belongs to it, is part of a word."""
    return sign[0].isalnum() or sign[0] == "_"


class OneCodeEach:
    """Writes a text with one code point for each character, and back, for rules that count code points.

    A character of several gets a number of its own for as long as this object lives.
    """

    WORD_CODES = range(0x100000, 0x108000)
    """What stands for characters that are part of words; private use, in the last plane, where no font has signs."""
    _OTHER_CODES = range(0x108000, 0x10FFFE)

    def __init__(self) -> None:
        self._code_by_sign: dict[str, str] = {}
        self._sign_by_code: dict[int, str] = {}
        self._words, self._others = iter(self.WORD_CODES), iter(self._OTHER_CODES)

    def encode(self, text: str) -> str:
        """One code point for each character."""
        return text if text.isascii() else "".join(map(self._code, graphemes(text)))

    def decode(self, text: str) -> str:
        """The text that was written so."""
        return text if text.isascii() else text.translate(self._sign_by_code)

    def _code(self, sign: str) -> str:
        if len(sign) == 1 and sign < "\U00100000":
            return sign
        if sign not in self._code_by_sign:
            code = next(self._words if is_word_sign(sign) else self._others, None)
            if code is None:
                return sign  # More signs than anyone has ever written into one line: they are taken apart again.
            self._code_by_sign[sign], self._sign_by_code[code] = chr(code), sign
        return self._code_by_sign[sign]
