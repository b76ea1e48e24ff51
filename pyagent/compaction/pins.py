"""Pins: a message, a line, a file or a rule of the user's that stands word for word after every compaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyagent.compaction.ports import RestoreText

PinKind: TypeAlias = Literal["message", "line", "file", "rule"]

_TITLES: dict[PinKind, str] = {
    "message": "A message the user pinned",
    "line": "A line the user pinned",
    "file": "A file the user pinned",
    "rule": "A rule of the user's",
}


@dataclass(frozen=True, slots=True)
class Pin:
    pin_id: str
    kind: PinKind
    text: str
    source: str = ""
    """Path of a file, or where a message or a line was taken from."""


def rendered(pins: Iterable[Pin]) -> tuple[RestoreText, ...]:
    """The pins as the model sees them behind a boundary: rules first, then in the order they were set."""
    ordered = sorted(pins, key=lambda pin: pin.kind != "rule")
    return tuple(
        RestoreText(f"pin:{pin.pin_id}", f"{_TITLES[pin.kind]}{f' ({pin.source})' if pin.source else ''}:\n{pin.text}")
        for pin in ordered
        if pin.text.strip()
    )
