"""`/config`, `/autocompact`, `/statusline` and `/theme`: settings shown, changed in our own files, applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyagent.agent.conversation import CommandHandler
from pyagent.agent.setting_catalogue import THEME_NAMES, setting_rows
from pyagent.agent.setting_schema import parsed_setting
from pyagent.agent.settings_book import SCOPES, Scope, SettingsBook
from pyagent.errors import UsageError
from pyagent.events import EventSink, Notice, Report, SettingMoved
from pyagent.pages import SettingRow, SettingsPage
from pyagent.settings import Settings

_USAGE = "Write /config key=value, /config project key=value, or /config reset key."


class SettingCommands:
    """Handlers that read and write settings files: small ones, so at once."""

    def __init__(self, book: SettingsBook, *, emit: EventSink, apply: Callable[[Settings], None]) -> None:
        """`apply` has the running session follow the settings as far as it can."""
        self._book = book
        self._emit = emit
        self._apply = apply

    def handlers(self) -> dict[str, CommandHandler]:
        return {
            "config": self.config,
            "autocompact": self.autocompact,
            "statusline": self.status_line,
            "theme": self.theme,
        }

    def config(self, argument: str) -> None:
        """`/config`, `/config key`, `/config [user|project|local] key=value`, `/config [scope] reset key`."""
        words = argument.strip()
        if not words:
            self._show("")
            return
        scope, words = _scope_of(words)
        if words.startswith("reset "):
            self._show(self._reset(scope, words.removeprefix("reset ").strip()))
            return
        key, separator, text = words.partition("=")
        if not separator:
            row = self._row(key.strip())
            self._emit(Notice(f"{row.key} is {row.value or 'not set'} ({row.origin}): {row.help}."))
            return
        self._show(self._set(scope, key.strip(), text.strip()))

    def _set(self, scope: Scope, key: str, text: str) -> str:
        row = self._row(key)
        if row.kind == "list":
            raise UsageError(f"{row.key} is a list.", hint="Use /permissions or /add-dir, or edit the file.")
        parsed = parsed_setting(row.key, text)
        if row.choices and str(parsed.json_value) not in row.choices:
            raise UsageError(f"{row.key} does not take {text!r}.", hint=f"Use {', '.join(row.choices)}.")
        path = self._book.write(scope, row.key, parsed.json_value)
        return self._changed(row.key, str(path), f"{row.key} = {text}")

    def _reset(self, scope: Scope, key: str) -> str:
        row = self._row(key)
        path = self._book.write(scope, row.key, None)
        return self._changed(row.key, str(path), f"{row.key} is taken out of {path}", is_reset=True)

    def _changed(self, key: str, path: str, words: str, *, is_reset: bool = False) -> str:
        """Have the change count, and say what became of it."""
        self._reload()
        row = self._row(key)
        if is_reset:
            return f"{words}; it is {row.value or 'not set'} now ({row.origin})."
        saved = f"{words}, saved in {path}"
        if row.origin == path:
            return saved + (f"; {row.when}." if row.when else ".")
        if any(path in problem and key in problem for problem in self._book.loaded.problems):
            return f"{saved}; it counts once this folder is trusted (/permissions trust)."
        return f"{saved}; but {row.origin} goes before it."

    def _row(self, key: str) -> SettingRow:
        rows = {row.key: row for row in setting_rows(self._book.loaded)}
        for full in (key, f"compaction.{key}", f"gates.{key}", f"permissions.{key}"):
            if full in rows:
                return rows[full]
        parsed_setting(key, "")
        raise UsageError(f"There is no setting {key!r}.", hint=_USAGE)

    def _reload(self) -> None:
        before = self._book.settings
        loaded = self._book.reload()
        self._apply(loaded.settings)
        if loaded.settings.theme != before.theme:
            self._emit(SettingMoved("theme", loaded.settings.theme))

    def _show(self, remark: str) -> None:
        loaded = self._book.loaded
        rows = setting_rows(loaded)
        files = tuple((scope, str(self._book.file(scope))) for scope in SCOPES)
        data: dict[str, Any] = {
            row.key: {"value": json.loads(row.value) if row.value else None, "origin": row.origin} for row in rows
        }
        self._emit(Report("Settings", data=data, page=SettingsPage(rows, files, loaded.problems, remark)))

    def autocompact(self, argument: str) -> None:
        """`/autocompact auto|TOKENS`: the context window to assume."""
        words = argument.strip().lower().replace(",", "").replace("_", "")
        if words.endswith("k") and words[:-1].isdecimal():
            words = words[:-1] + "000"
        if not words:
            row = self._row("autoCompactWindow")
            raise UsageError(
                f"The window to assume is {row.value} ({row.origin}).",
                hint="Set it: /autocompact auto, or /autocompact 200000.",
            )
        self._emit(Notice(self._set("user", "autoCompactWindow", words)))

    def status_line(self, argument: str) -> None:
        """`/statusline COMMAND|off`: the program whose output stands in the bottom rows."""
        words = argument.strip()
        if not words:
            row = self._row("statusLine")
            now = f"is {row.value} ({row.origin})" if row.value else "is pyagent's own"
            raise UsageError(
                f"The status line {now}.", hint="Set a command: /statusline ~/bin/line.sh; /statusline off."
            )
        if words == "off":
            self._emit(Notice(self._reset("user", "statusLine")))
        else:
            path = self._book.write("user", "statusLine", {"type": "command", "command": words})
            self._emit(Notice(self._changed("statusLine", str(path), "The status line is your command's")))

    def theme(self, argument: str) -> None:
        """`/theme NAME`: the colours, from now on and in every session."""
        name = argument.strip().lower()
        if name not in THEME_NAMES:
            raise UsageError(f"There is no theme {argument!r}.", hint=f"The themes are {', '.join(THEME_NAMES)}.")
        self._emit(Notice(self._set("user", "theme", name)))


def _scope_of(words: str) -> tuple[Scope, str]:
    """The file to write to, and the rest."""
    first, _, rest = words.partition(" ")
    for scope in SCOPES:
        if first == scope and rest:
            return scope, rest.strip()
    return "user", words
