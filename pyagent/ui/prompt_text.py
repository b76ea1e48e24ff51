"""What the prompt knows about text: chips for big pastes, history, bursts of keys. No screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from pyagent.ui.lines import inert

CHIP_CHARS = 800
CHIP_LINES = 10
"""Pastes beyond either of these become a chip: the prompt stays readable and quick."""

BURST_GAP_S = 0.005
"""Keys closer than this were not typed: the fastest key repeat is 15 ms."""
BURST_SETTLE_S = 0.03
"""How long an Enter in a burst waits to see whether the burst goes on."""

_CHIP = re.compile(r"\[Pasted text #(\d+)(?: \+\d+ lines)?\]")


_SEQUENCE = re.compile("␛(?:\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^␇␛\n]*(?:␇|␛\\\\))")
"""A colour, a title or the like, its control characters already made visible."""


def normal_newlines(text: str) -> str:
    """Pasted text with plain newlines, without colours, and no control characters that act."""
    return _SEQUENCE.sub("", inert(text.replace("\r\n", "\n").replace("\r", "\n")))


class Pastes:
    """Big pastes of one prompt, by number."""

    def __init__(self) -> None:
        self._text_by_number: dict[int, str] = {}
        self._next_number = 1

    def chip(self, text: str) -> str:
        """The text itself if it is small, else a chip that stands for it."""
        extra_lines = text.count("\n")
        if len(text) <= CHIP_CHARS and extra_lines < CHIP_LINES:
            return text
        number = self._next_number
        self._next_number += 1
        self._text_by_number[number] = text
        return f"[Pasted text #{number} +{extra_lines} lines]" if extra_lines else f"[Pasted text #{number}]"

    def expand(self, text: str) -> str:
        """The text with every known chip replaced by what it stands for."""
        return _CHIP.sub(lambda match: self._text_by_number.get(int(match.group(1)), match.group()), text)

    def chip_before(self, line: str, column: int) -> int | None:
        """Where the chip that ends at the column starts, if one does."""
        for match in _CHIP.finditer(line):
            if match.end() == column and int(match.group(1)) in self._text_by_number:
                return match.start()
        return None


class History(Protocol):
    """Earlier prompts to walk through."""

    def previous(self, draft: str) -> str | None:
        """The prompt before the present one. The first call keeps `draft` to come back to."""
        ...

    def next(self) -> str | None:
        """The prompt after the present one, at last the draft; None when already there."""
        ...

    def reset(self) -> None:
        """Stand at the draft again."""
        ...

    def add(self, text: str) -> None:
        """Remember a sent prompt."""
        ...


class ListHistory:
    """History of a list of prompts, oldest first; repeats in a row count once."""

    def __init__(self, entries: Sequence[str] = ()) -> None:
        self._entries = list(entries)
        self._at = len(self._entries)
        self._draft = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """All prompts, oldest first."""
        return tuple(self._entries)

    def previous(self, draft: str) -> str | None:
        if not self._at:
            return None
        if self._at == len(self._entries):
            self._draft = draft
        self._at -= 1
        return self._entries[self._at]

    def next(self) -> str | None:
        if self._at >= len(self._entries):
            return None
        self._at += 1
        return self._draft if self._at == len(self._entries) else self._entries[self._at]

    def reset(self) -> None:
        self._at = len(self._entries)

    def add(self, text: str) -> None:
        if text and (not self._entries or self._entries[-1] != text):
            self._entries.append(text)
        self.reset()


class Burst:
    """Tells keys of a paste without brackets from typing, by the time between them."""

    def __init__(self) -> None:
        self._last_key_s = float("-inf")
        self._has_newline = False
        self.is_burst = False

    def key(self, at_s: float) -> None:
        """A key came at this moment (monotonic seconds)."""
        self.is_burst = at_s - self._last_key_s < BURST_GAP_S
        if not self.is_burst:
            self._has_newline = False
        self._last_key_s = at_s

    def newline(self) -> None:
        """A newline was part of this burst."""
        self._has_newline = True

    @property
    def is_multiline(self) -> bool:
        """The burst has had a newline: it is pasted text, and its next Enter is text too."""
        return self.is_burst and self._has_newline
