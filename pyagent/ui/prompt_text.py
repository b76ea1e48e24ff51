"""What the prompt knows about text: chips for big pastes, history, bursts of keys. No screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from pyagent.ui.images import FoundImage
from pyagent.ui.lines import inert

CHIP_CHARS = 800
CHIP_LINES = 10
"""Pastes beyond either of these become a chip: the prompt stays readable and quick."""

BURST_GAP_S = 0.005
"""Keys closer than this were not typed: the fastest key repeat is 15 ms."""
BURST_SETTLE_S = 0.03
"""How long an Enter in a burst waits to see whether the burst goes on."""

_CHIP = re.compile(r"\[Pasted text #(\d+)(?: \+\d+ lines)?\]")
_IMAGE_CHIP = re.compile(r"\[Image #(\d+)(?: \d+×\d+)?\]")


_SEQUENCE = re.compile("␛(?:\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^␇␛\n]*(?:␇|␛\\\\))")
"""A colour, a title or the like, its control characters already made visible."""


def normal_newlines(text: str) -> str:
    """Pasted text with plain newlines, without colours, and no control characters that act."""
    return _SEQUENCE.sub("", inert(text.replace("\r\n", "\n").replace("\r", "\n")))


class Pastes:
    """What the chips stand for: big pastes and images, by number. A number is never given twice while the program
    runs, so that a prompt that comes back finds what it stood for."""

    def __init__(self) -> None:
        self._text_by_number: dict[int, str] = {}
        self._image_by_number: dict[int, FoundImage] = {}

    def chip(self, text: str) -> str:
        """The text itself if it is small, else a chip that stands for it."""
        extra_lines = text.count("\n")
        if len(text) <= CHIP_CHARS and extra_lines < CHIP_LINES:
            return text
        number = max(self._text_by_number, default=0) + 1
        self._text_by_number[number] = text
        return f"[Pasted text #{number} +{extra_lines} lines]" if extra_lines else f"[Pasted text #{number}]"

    def image_chip(self, image: FoundImage) -> str:
        """A chip that stands for an image."""
        number = max(self._image_by_number, default=0) + 1
        self._image_by_number[number] = image
        size = f" {image.width_px}×{image.height_px}" if image.width_px and image.height_px else ""
        return f"[Image #{number}{size}]"

    def expand(self, text: str) -> str:
        """The text with every known chip of a paste replaced by what it stands for."""
        return _CHIP.sub(lambda match: self._text_by_number.get(int(match.group(1)), match.group()), text)

    def images_in(self, text: str) -> tuple[str, ...]:
        """The paths of the images whose chips stand in a text, each once."""
        found = (self._image_by_number.get(int(match.group(1))) for match in _IMAGE_CHIP.finditer(text))
        return tuple(dict.fromkeys(image.path for image in found if image is not None))

    def with_paths(self, text: str) -> str:
        """The text with the chips of images replaced by names of their files, as they mean something later too."""

        def named(match: re.Match[str]) -> str:
            image = self._image_by_number.get(int(match.group(1)))
            return match.group() if image is None else f'@"{image.path}"'

        return _IMAGE_CHIP.sub(named, text)

    def knows(self, text: str) -> bool:
        """Whether every chip in a text stands for something."""
        return all(int(match.group(1)) in self._text_by_number for match in _CHIP.finditer(text)) and all(
            int(match.group(1)) in self._image_by_number for match in _IMAGE_CHIP.finditer(text)
        )

    def used_in(self, text: str) -> tuple[dict[str, str], dict[str, FoundImage]]:
        """What the chips in a text stand for, by number: pastes and images."""
        texts = {match.group(1): self._text_by_number.get(int(match.group(1))) for match in _CHIP.finditer(text)}
        images = {m.group(1): self._image_by_number.get(int(m.group(1))) for m in _IMAGE_CHIP.finditer(text)}
        return (
            {number: stood for number, stood in texts.items() if stood is not None},
            {number: image for number, image in images.items() if image is not None},
        )

    def take_over(self, pastes: Mapping[str, str], images: Mapping[str, FoundImage]) -> None:
        """Know these from another run as well."""
        self._text_by_number |= {int(number): text for number, text in pastes.items() if number.isdecimal()}
        self._image_by_number |= {int(number): image for number, image in images.items() if number.isdecimal()}

    def chip_before(self, line: str, column: int) -> int | None:
        """Where the chip that ends at the column starts, if one does."""
        for chip, known in ((_CHIP, self._text_by_number), (_IMAGE_CHIP, self._image_by_number)):
            for match in chip.finditer(line):
                if match.end() == column and int(match.group(1)) in known:
                    return match.start()
        return None


class KillRing:
    """What was cut, newest last, to be inserted again."""

    SIZE = 30
    """As many as a person still remembers."""

    def __init__(self) -> None:
        self._cuts: list[str] = []
        self._at = 0

    def cut(self, text: str) -> None:
        """Remember a cut text."""
        if text:
            self._cuts = [*self._cuts[-self.SIZE + 1 :], text]

    @property
    def newest(self) -> str:
        """What was cut last; empty if nothing was."""
        self._at = len(self._cuts) - 1
        return self._cuts[-1] if self._cuts else ""

    def before(self) -> str:
        """What was cut before the one given last, around the end."""
        if not self._cuts:
            return ""
        self._at = (self._at - 1) % len(self._cuts)
        return self._cuts[self._at]


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
