"""Which colours are shown: the setting, and where that says `auto`, what the terminal's background is like.

The terminal is asked after the first paint and may never answer: until then, and without an answer, the environment's
word counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyagent.ui.theme import DARK, LIGHT, THEMES

if TYPE_CHECKING:
    from textual.app import App

AUTO = "auto"
PREFIX = "pyagent-"
ASK_BACKGROUND = "\x1b]11;?\x1b\\"
"""What asks a terminal for its background colour."""

LIGHT_FROM = 0.5
"""Of the greatest brightness: a background above this wants dark text."""

MAX_SETTINGS_BYTES = 100_000
_REPLY_COLOUR = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_LIGHT_ANSI = ("7", "15")


def theme_names() -> tuple[str, ...]:
    """What the setting takes."""
    return (AUTO, *(theme.name.removeprefix(PREFIX) for theme in THEMES))


def theme_of(setting: str, environ: Mapping[str, str], *, is_light: bool | None = None) -> str:
    """The theme for a setting; `is_light` is what the terminal said of its background, None if it said nothing."""
    wanted = PREFIX + setting.strip().lower()
    if any(theme.name == wanted for theme in THEMES):
        return wanted
    if is_light is None:
        background = str(environ.get("COLORFGBG", "")).rpartition(";")[2]
        is_light = background in _LIGHT_ANSI
    return LIGHT if is_light else DARK


def is_auto(setting: str) -> bool:
    """Whether the terminal's background decides: so it is unless a theme of ours is named."""
    return not any(theme.name == PREFIX + setting.strip().lower() for theme in THEMES)


def first_theme_setting(home: Path) -> str:
    """The theme in the user's own settings, for the first paint; the whole of the settings is read after it."""
    try:
        with (home / "settings.json").open("rb") as file:
            content = json.loads(file.read(MAX_SETTINGS_BYTES))
    except (OSError, ValueError):
        return ""
    setting = content.get("theme") if isinstance(content, dict) else None
    return setting if isinstance(setting, str) else ""


def is_light_colour(reply: str) -> bool | None:
    """Whether a terminal's answer (`rgb:ffff/ffff/ffff`) names a light colour; None if it names none."""
    match = _REPLY_COLOUR.search(reply)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue >= LIGHT_FROM)


class Colours:
    """The colours of the running screen."""

    def __init__(self, app: App[int], setting: str, environ: Mapping[str, str]) -> None:
        self._app = app
        self._environ = environ
        self._is_light: bool | None = None
        self._was_asked = False
        self.setting = setting
        """What the settings say; empty for nothing."""
        self.show(setting)

    def use(self, setting: str) -> None:
        """Follow the setting from now on."""
        self.setting = setting
        self.show(setting)
        self.ask_terminal()

    def show(self, setting: str) -> None:
        """Show the colours of a setting, for now."""
        self._app.theme = theme_of(setting, self._environ, is_light=self._is_light)

    def ask_terminal(self) -> None:
        """Have the terminal tell its background, once, where that decides anything."""
        driver = self._app._driver
        if self._was_asked or driver is None or not is_auto(self.setting) or "NO_COLOR" in self._environ:
            return
        self._was_asked = True
        driver.write(ASK_BACKGROUND)

    def told(self, is_light: bool | None) -> None:
        """The terminal's answer."""
        self._is_light = is_light
        self.show(self.setting)


class ReplyFilter:
    """Takes a terminal's answer about its background out of the input. A lone Escape is never held back."""

    _START = "\x1b]11;"
    _ENDS = ("\x1b\\", "\x07")
    _MAX_CHARS = 64

    def __init__(self) -> None:
        self.reply: str | None = None
        """The answer, once it has come."""
        self._held = ""
        self._passed = ""
        """An Escape that was the last thing to go through."""

    def feed(self, data: str) -> str:
        """The input without the answer."""
        if self.reply is not None:
            return data
        passed, self._passed = self._passed, "\x1b" if data.endswith("\x1b") else ""
        if passed and data.startswith(self._START[1:]):
            data = passed + data  # The Escape went on as a key already; what it began is ours.
        data = self._held + data
        self._held = ""
        at = data.find(self._START)
        if at < 0:
            # Two characters at the least: an Escape alone is a key.
            cut = next((n for n in range(len(self._START) - 1, 1, -1) if data.endswith(self._START[:n])), 0)
            if cut:
                data, self._held = data[:-cut], data[-cut:]
            return data
        body = data[at + len(self._START) :]
        ends = [(body.find(end), end) for end in self._ENDS if end in body]
        if not ends:
            if len(body) <= self._MAX_CHARS:
                self._held = data[at:]
                return data[:at]
            self.reply = ""
            return data[:at]
        length, end = min(ends)
        self.reply = body[:length]
        return data[:at] + body[length + len(end) :]
