"""Settings that the front end is chosen by, and the words flags may name: asked before anything is painted, so this
module loads in no time. The rest of the settings is `pyagent.settings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

PermissionMode: TypeAlias = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
PERMISSION_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


def permission_mode_named(word: str) -> PermissionMode | None:
    """The mode a word names, `manual` being another word for `default`; None if it names none."""
    word = "default" if word == "manual" else word
    return next((mode for mode in PERMISSION_MODES if mode == word), None)


MIN_WINDOW_TOKENS = 8_000
"""Smallest window a user may set: below it the system prompt and tools alone would fill the effective window."""

EFFORT_LEVELS = ("low", "medium", "high", "xhigh", "max", "off")
"""How much a model may think; each model takes the nearest it has."""


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """What a person may set about the terminal around the conversation."""

    notification_channel: str = "auto"
    notify_after_s: float = 30.0
    """A reply that took longer is notified of also where the terminal does not tell whether it is looked at."""
    has_title: bool = True
    """Whether the window's title shows the session and its state."""
    is_motion_reduced: bool = False
    """Nothing moves or blinks."""
    front_end: Literal["", "fullscreen", "plain"] = ""
    """What opens on a terminal; empty for the full screen wherever it can be."""
    has_screen_reader: bool = False
    """Plain mode, worded for a screen reader."""
    tells_cost: bool = False
    """Whether plain mode says after each answer what it cost."""
