"""Waits for the rest of what a slow link cut in two, and takes a paste without brackets for one.

A sequence that has begun beyond doubt is waited for as long as a lost packet takes to come again: given up earlier, its
second half would be typed. A lone Escape is a key, and waits only as long as it must.
"""

from __future__ import annotations

import re

from pyagent.ui.alt_keys import with_alt_keys
from pyagent.ui.mouse_input import MouseFilter

ESCAPE_S = 0.1
"""How long an escape character, alone or with one more, may be the beginning of something."""
CUT_S = 2.0
"""How long a sequence of three characters and more is waited for: a packet lost twice is there by then."""
HELD_LIMIT_CHARS = 4_096
"""No answer of a terminal is that long."""

_BEGUN = re.compile(
    r"\x1b(?:[\[\]OP_]|\[[0-?]+[ -/]*|\[[ -/]+|\][0-9][^\x07\x1b]*\x1b?|P[0-9>!$+=|][^\x1b]*\x1b?|_G[^\x1b]*\x1b?)?\Z"
)
_ANSWER = re.compile(
    r"\x1b(?:\[[?>=][0-9;]*[cnu]|\][0-9][^\x07\x1b]*(?:\x07|\x1b\\)|P[0-9>!$+=|][^\x1b]*\x1b\\|_G[^\x1b]*\x1b\\)"
)
"""What a terminal sends when it is asked, by us or by a program before us. Nobody waits for these any more."""


class CutSequences:
    """Gives on whole sequences, one read or several, with broken mouse reports taken out and Alt made plain."""

    def __init__(self) -> None:
        self.mouse = MouseFilter()
        self._held = ""
        self._last_s = float("-inf")

    @property
    def is_waiting(self) -> bool:
        """Whether `settle` has to be called when nothing comes."""
        return self.mouse.is_waiting or bool(self._held)

    def feed(self, text: str, at_s: float) -> list[str]:
        """What can be read now, of what came at this moment (monotonic seconds). Between two of these time passed."""
        self._last_s = at_s
        text = with_alt_keys(self.mouse.feed(text))
        if self._held == "\x1b" and text and text[0] < " " and text[0] != "\x1b":
            # The parser behind would take the Escape for Alt, which a control key cannot have.
            self._held = ""
            return ["\x1b", *self._whole(text)]
        text, self._held = self._held + text, ""
        return self._whole(text)

    def _whole(self, text: str) -> list[str]:
        if "\x1b" in text:
            text = _ANSWER.sub("", text)
            begun = _BEGUN.search(text)
            if begun is not None and len(begun.group()) <= HELD_LIMIT_CHARS:
                text, self._held = text[: begun.start()], begun.group()
        return [text] if text else []

    def settle(self, now_s: float) -> str:
        """Nothing has come for a while: what has waited long enough for a key; a sequence that was cut is dropped."""
        quiet_s = now_s - self._last_s
        is_cut = self.mouse.is_holding or len(self._held) > 2  # More than an escape character and a bracket.
        if quiet_s < (CUT_S if is_cut else ESCAPE_S):
            return ""
        self.mouse.give_up()
        key, self._held = "" if is_cut else self._held, ""
        return key


class RawPaste:
    """A terminal without bracketed paste sends what is pasted as keys. Key by key a long text would take minutes, since
    each one lays out the whole line anew."""

    RUN_CHARS = 256
    """As much in one read was not typed, however long the program was not reading."""
    SETTLE_S = 0.1
    """A pause as long as this ends the paste; pieces of one that come later are another."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @property
    def is_open(self) -> bool:
        return bool(self._pieces)

    def feed(self, text: str) -> tuple[str, str]:
        """What was pasted, if that has ended, and what was typed after it."""
        if not self.is_open and len(text) < self.RUN_CHARS:
            return "", text
        length = next((at for at, char in enumerate(text) if char < " " and char not in "\r\n\t"), len(text))
        if not self.is_open and length < self.RUN_CHARS:
            return "", text
        self._pieces.append(text[:length])
        if length == len(text):
            return "", ""
        pasted, enter = self.end()
        return pasted, enter + text[length:]

    def end(self) -> tuple[str, str]:
        """What was pasted, and the Enter behind it, if it was one line: that was meant as the key."""
        pasted = "".join(self._pieces)
        self._pieces = []
        is_line = pasted.endswith("\r") and "\r" not in pasted[:-1] and "\n" not in pasted
        return (pasted[:-1], "\r") if is_line else (pasted, "")
