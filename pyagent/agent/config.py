"""The settings of a run: files from broad to narrow, then `--settings`, the environment and the command line."""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pyagent.agent.wire.catalogue import EFFORTS
from pyagent.errors import UsageError
from pyagent.launch import LaunchOptions
from pyagent.settings import (
    API_CLEARINGS,
    COMPACTION_POLICIES,
    COMPACTION_STRATEGIES,
    MIN_WINDOW_TOKENS,
    NOTIFICATION_CHANNELS,
    PERMISSION_MODES,
    Gates,
    Settings,
    environment_values,
    with_value,
)

MAX_SETTINGS_BYTES = 1_000_000
"""Nobody writes that much by hand: a larger file is something else under that name."""

MAX_GAP_MINUTES = 100_000
"""About ten weeks: longer than any cache lives and any session pauses."""

MAX_NOTIFY_AFTER_S = 86_400
"""A day: longer than anyone waits for a reply."""

Source: TypeAlias = Literal["user", "project", "local", "flag"]


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    settings: Settings
    problems: tuple[str, ...] = ()
    """One sentence for each value or file that was ignored. Values are not quoted: they may be secrets."""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Setting → the file, variable or flag its value comes from; a default is not named."""
    item_origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """Setting that is a list → its items, each with where it stood first."""


def load_settings(options: LaunchOptions, *, is_trusted: bool) -> LoadedSettings:
    """Everything a user set, the narrower over the broader; lists are joined.

    What widens the agent's reach (allow rules, further folders, environment, mode) counts in a project's files only
    if the folder is trusted. Deny and ask rules always count.

    Raises:
        UsageError: the file or text given with `--settings` can't be used: running on without what it forbids
            would be worse than not running.
    """
    merge = _Merge(options, is_trusted)
    for source, path in settings_files(options):
        merge.add_file(source, path)
    if options.settings_json.strip():
        merge.add("--settings", _from_flag(options), "flag")
    merge.add_environment()
    merge.add_flags()
    return LoadedSettings(merge.settings, tuple(merge.problems), merge.origins, merge.item_origins)


def settings_files(options: LaunchOptions) -> tuple[tuple[Source, Path], ...]:
    """The settings files that count in this run, broad to narrow, whether they exist or not."""
    claude = Path(options.environ.get("CLAUDE_CONFIG_DIR") or _user_home(options) / ".claude")
    files: list[tuple[Source, Path]] = [
        ("user", claude / "settings.json"),
        ("user", options.home / "settings.json"),
        ("project", options.cwd / ".claude" / "settings.json"),
        ("project", options.cwd / ".pyagent" / "settings.json"),
        ("local", options.cwd / ".claude" / "settings.local.json"),
        ("local", options.cwd / ".pyagent" / "settings.local.json"),
    ]
    chosen: dict[str, tuple[Source, Path]] = {}
    for source, path in files:
        if source in options.setting_sources:
            # In the home folder a user's file is the project's as well; it counts once, as the user's own.
            chosen.setdefault(os.path.realpath(path), (source, path))
    return tuple(chosen.values())


def _user_home(options: LaunchOptions) -> Path:
    return Path(options.environ.get("HOME") or os.path.expanduser("~"))


def _absolute(options: LaunchOptions, path: str) -> Path:
    """A path as a user writes it, `~/` and all."""
    expanded = _user_home(options) / path[2:] if path == "~" or path.startswith("~/") else path
    return Path(os.path.normpath(options.cwd / expanded))


def _from_flag(options: LaunchOptions) -> dict[str, Any]:
    given = options.settings_json.strip()
    path = None if given.startswith("{") else _absolute(options, given)
    try:
        return _parse(given if path is None else _read(path))
    except _UnusableError as error:
        raise UsageError(
            f"--settings can't be used: {error}{'' if path is None else f' ({path})'}.",
            hint="Give a JSON object, or a file that holds one.",
        ) from error


class _UnusableError(Exception):
    """A file that is no settings file; the text says why, as the end of a sentence."""


def _read(path: Path) -> str:
    try:
        # Looked at first: opening a pipe would wait for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _UnusableError("it is not a file")
        with open(path, "rb") as file:
            data = file.read(MAX_SETTINGS_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _UnusableError((error.strerror if isinstance(error, OSError) else None) or str(error)) from error
    if len(data) > MAX_SETTINGS_BYTES:
        raise _UnusableError(f"it is larger than {MAX_SETTINGS_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _UnusableError("it is not UTF-8 text") from None


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise _UnusableError(f"invalid JSON in line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise _UnusableError(f"invalid JSON: {type(error).__name__}") from None
    if not isinstance(value, dict):
        raise _UnusableError("it does not hold a JSON object")
    return value


Check: TypeAlias = Callable[[Any], Any]
"""Turns a JSON value into the setting's. Raises ValueError with what to use instead."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("use text in quotes")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("use true or false")
    return value


def _is_on(value: Any) -> bool:
    return not _flag(value)


def _whole(minimum: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(f"use a whole number from {minimum:,} up")
        return value

    return check


def _number(minimum: float, maximum: float) -> Check:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            raise ValueError(f"use a number from {minimum:,g} to {maximum:,g}")
        return float(value)

    return check


def _window(value: Any) -> int | None:
    return None if value == "auto" else int(_whole(MIN_WINDOW_TOKENS)(value))


def _one_of(choices: tuple[str, ...]) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"use {' or '.join(choices)}")
        return str(value)

    return check


def _mode(value: Any) -> str:
    mode = "default" if value == "manual" else value
    if mode not in PERMISSION_MODES:
        raise ValueError(f"use one of {', '.join(PERMISSION_MODES)}")
    return str(mode)


def _effort(value: Any) -> str:
    if value not in ("", "off", *EFFORTS):
        raise ValueError(f"use off, {', '.join(EFFORTS)}")
    return str(value)


_CHANNEL_NAMES_ELSEWHERE = {
    "terminal_bell": "bell",
    "iterm2": "osc9",
    "iterm2_with_bell": "osc9_with_bell",
    "kitty": "osc99",
    "ghostty": "osc777",
    "notifications_disabled": "none",
}
"""What Claude Code's settings call them."""


def _channel(value: Any) -> str:
    return str(_one_of(NOTIFICATION_CHANNELS)(_CHANNEL_NAMES_ELSEWHERE.get(_text(value), value)))


def _front_end(value: Any) -> str:
    return "" if value == "default" else str(_one_of(("fullscreen", "plain"))(value))


def _editor_mode(value: Any) -> bool:
    if value not in ("normal", "vim"):
        raise ValueError("use normal or vim")
    return bool(value == "vim")


def _insert_remaps(value: Any) -> dict[str, str]:
    remaps = _object(value)
    if not all(len(keys) > 1 and target == "<Esc>" for keys, target in remaps.items()):
        raise ValueError('use two characters or more for "<Esc>"')
    return dict(remaps)


def _models(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else _texts(value)
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("use a list of texts")
    return tuple(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("use an object in braces")
    return value


def _status_line(value: Any) -> str:
    command = _object(value).get("command")
    if value.get("type", "command") != "command" or not isinstance(command, str) or not command.strip():
        raise ValueError('use {"type": "command", "command": "…"}')
    return command


_SCALARS: Mapping[str, tuple[str, Check]] = {
    "model": ("model", _text),
    "fallbackModel": ("fallback_models", _models),
    "effortLevel": ("effort", _effort),
    "theme": ("theme", _text),
    "editorMode": ("is_vim", _editor_mode),
    "vimInsertModeRemaps": ("insert_remaps", _insert_remaps),
    "statusLine": ("status_line_command", _status_line),
    "fileCheckpointingEnabled": ("has_file_checkpoints", _flag),
    "cleanupPeriodDays": ("cleanup_period_days", _whole(0)),
    "preferredNotifChannel": ("terminal.notification_channel", _channel),
    "notifyAfterSeconds": ("terminal.notify_after_s", _number(0, MAX_NOTIFY_AFTER_S)),
    "terminalTitle": ("terminal.has_title", _flag),
    "tui": ("terminal.front_end", _front_end),
    "axScreenReader": ("terminal.has_screen_reader", _flag),
    "axTellCost": ("terminal.tells_cost", _flag),
    "prefersReducedMotion": ("terminal.is_motion_reduced", _flag),
    "webSearch": ("is_web_search_on", _flag),
    "respondToBashCommands": ("answers_own_commands", _flag),
    "autoCompactEnabled": ("compaction.is_auto_disabled", _is_on),
    "autoCompactWindow": ("compaction.window_tokens", _window),
    "permissions.defaultMode": ("permission_mode", _mode),
    "compaction.isDisabled": ("compaction.is_disabled", _flag),
    "compaction.isAutoDisabled": ("compaction.is_auto_disabled", _flag),
    "compaction.windowTokens": ("compaction.window_tokens", _whole(MIN_WINDOW_TOKENS)),
    "compaction.triggerPercent": ("compaction.trigger_percent", _number(1, 100)),
    "compaction.blockingTokens": ("compaction.blocking_tokens", _whole(1)),
    "compaction.warningBufferTokens": ("compaction.warning_buffer_tokens", _whole(0)),
    "compaction.errorBufferTokens": ("compaction.error_buffer_tokens", _whole(0)),
    "compaction.gapMinutes": ("compaction.gap_minutes", _number(1, MAX_GAP_MINUTES)),
    "compaction.keepRecent": ("compaction.keep_recent", _whole(1)),
    "compaction.apiTriggerTokens": ("compaction.api_trigger_tokens", _whole(1)),
    "compaction.apiTargetTokens": ("compaction.api_target_tokens", _whole(1)),
    "compaction.apiClearing": ("compaction.api_clearing", _one_of(API_CLEARINGS)),
    "compaction.notesFirstPercent": ("compaction.notes_first_percent", _number(1, 100)),
    "compaction.notesSecondPercent": ("compaction.notes_second_percent", _number(1, 100)),
    "compaction.notesMinToolCalls": ("compaction.notes_min_tool_calls", _whole(0)),
    "compaction.policy": ("compaction.policy", _one_of(COMPACTION_POLICIES)),
    "compaction.strategy": ("compaction.strategy", _one_of(COMPACTION_STRATEGIES)),
}
"""JSON key → (setting, check). The narrowest file wins."""


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_GATES: Mapping[str, tuple[str, Check]] = {
    f"gates.{_camel(gate.name)}": (f"compaction.gates.{gate.name}", _flag) for gate in fields(Gates)
}

_LISTS: Mapping[str, str] = {
    "permissions.deny": "deny_rules",
    "permissions.ask": "ask_rules",
    "permissions.allow": "allow_rules",
    "permissions.additionalDirectories": "additional_dirs",
    "bashAllowedSecrets": "bash_allowed_secrets",
    "cacheEditServers": "cache_edit_servers",
}
"""JSON key → setting. All files' items count."""

_NEEDS_TRUST = frozenset(
    {
        "permissions.allow",
        "permissions.additionalDirectories",
        "permissions.defaultMode",
        "bashAllowedSecrets",
        "env",
        "statusLine",
        "webSearch",
    }
)
"""What a repository must not be able to give itself, or make the user pay for."""

_SECTIONS = ("permissions", "compaction", "gates")
_OWN_SECTIONS = ("compaction", "gates")
"""Only pyagent reads these, so a key in them that it doesn't know is a mistake."""


class _Merge:
    """Settings being put together, and what was wrong on the way."""

    def __init__(self, options: LaunchOptions, is_trusted: bool) -> None:
        self.settings = Settings()
        self.problems: list[str] = []
        self.origins: dict[str, str] = {}
        self.item_origins: dict[str, dict[str, str]] = {}
        self._options = options
        self._is_trusted = is_trusted
        self._env: dict[str, str] = {}

    def add_file(self, source: Source, path: Path) -> None:
        if not os.path.lexists(path):
            return
        try:
            content = _parse(_read(path))
        except _UnusableError as error:
            self.problems.append(f"{path} is ignored: {error}.")
            return
        self.add(str(path), content, source)

    def add(self, name: str, content: Mapping[str, Any], source: Source) -> None:
        may_widen = self._is_trusted or source in ("user", "flag")
        untrusted: list[str] = []
        for key, value in self._flattened(name, content):
            if key in _NEEDS_TRUST and not may_widen:
                untrusted.append(key)
                continue
            try:
                self._set(name, key, value)
            except ValueError as error:
                self.problems.append(f"{name}: {key} is ignored: {error}.")
        if untrusted:
            self.problems.append(f"{name}: {', '.join(untrusted)} will count once this folder is trusted.")

    def add_environment(self) -> None:
        """First what the files set for it, then the real one: it was set for this run. The one flag that a variable
        beats comes before both."""
        if self._options.window_tokens is not None:
            self._put("compaction.window_tokens", self._options.window_tokens, "--autocompact")
        if not self._options.has_settings_env:
            self._env.clear()
        self.settings = with_value(self.settings, "env", self._env)
        for environ in (self._env, self._options.environ):
            values, problems = environment_values(environ)
            for path, (variable, value) in values.items():
                self._put(path, value, variable)
            self.problems += problems

    def add_flags(self) -> None:
        options = self._options
        for path, value, flag in (
            ("model", options.model, "--model"),
            ("fallback_models", options.fallback_models, "--fallback-model"),
            ("effort", options.effort, "--effort"),
            ("permission_mode", options.permission_mode, "--permission-mode"),
        ):
            if value:
                self._put(path, value, flag)
        self._extend("allow_rules", options.allowed_tools, "--allowedTools")
        self._extend("deny_rules", options.disallowed_tools, "--disallowedTools")
        folders = tuple(str(_absolute(options, str(folder))) for folder in options.add_dirs)
        self._extend("additional_dirs", folders, "--add-dir")

    def _put(self, path: str, value: Any, origin: str) -> None:
        self.settings = with_value(self.settings, path, value)
        self.origins[path] = origin

    def _flattened(self, name: str, content: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The keys with their section in front: `permissions.allow`."""
        flat: list[tuple[str, Any]] = []
        for key, value in content.items():
            if key not in _SECTIONS:
                flat.append((key, value))
            elif isinstance(value, dict):
                flat += [(f"{key}.{inner}", inner_value) for inner, inner_value in value.items()]
            else:
                self.problems.append(f"{name}: {key} is ignored: use an object in braces.")
        return flat

    def _set(self, name: str, key: str, value: Any) -> None:
        if key in _LISTS:
            items = _texts(value)
            if key == "permissions.additionalDirectories":
                items = tuple(str(_absolute(self._options, item)) for item in items)
            self._extend(_LISTS[key], items, name)
        elif key == "env":
            self._add_env(name, _object(value))
        elif known := _SCALARS.get(key) or _GATES.get(key):
            path, check = known
            self._put(path, check(value), name)
        elif key.partition(".")[0] in _OWN_SECTIONS:
            near = difflib.get_close_matches(key, (*_SCALARS, *_GATES), n=1)
            raise ValueError("there is no such setting" + (f"; the nearest is {near[0]}" if near else ""))

    def _add_env(self, name: str, values: Mapping[str, Any]) -> None:
        for variable, value in values.items():
            if not variable or "=" in variable or "\0" in variable:
                self.problems.append(f"{name}: env holds a name that no variable can have.")
            elif isinstance(value, bool):
                self._env[variable] = "1" if value else "0"
            elif isinstance(value, str | int | float) and "\0" not in str(value):
                self._env[variable] = str(value)
            else:
                self.problems.append(f"{name}: env.{variable} is ignored: use text in quotes.")

    def _extend(self, path: str, items: tuple[str, ...], origin: str) -> None:
        known = self.item_origins.setdefault(path, {})
        for item in items:
            known.setdefault(item, origin)
        joined = tuple(dict.fromkeys((*getattr(self.settings, path), *items)))
        self.settings = with_value(self.settings, path, joined)


@dataclass(frozen=True, slots=True)
class ParsedSetting:
    """A scalar setting as a person typed it, found and checked."""

    key: str
    path: str
    json_value: Any
    value: Any


def parsed_setting(key: str, text: str) -> ParsedSetting:
    """What `key=text` says, as on a command line: `compaction.gapMinutes`, or short `gapMinutes`.

    Raises:
        UsageError: there is no such setting, or it does not take that value.
    """
    full = full_key(key)
    try:
        json_value = json.loads(text)
    except ValueError:
        json_value = text
    path, check = _SCALARS.get(full) or _GATES[full]
    try:
        return ParsedSetting(full, path, json_value, check(json_value))
    except ValueError as error:
        raise UsageError(f"{key} does not take {text!r}: {error}.") from None


def full_key(key: str) -> str:
    """The key with its section.

    Raises:
        UsageError: there is no such setting.
    """
    for full in (key, f"compaction.{key}", f"gates.{key}", f"permissions.{key}"):
        if full in _SCALARS or full in _GATES:
            return full
    near = difflib.get_close_matches(key, (*_SCALARS, *_GATES), n=1, cutoff=0.4)
    hint = f"The nearest is {near[0]}." if near else "Write it as key=value."
    raise UsageError(f"There is no setting {key!r}.", hint=hint)


def scalar_paths() -> dict[str, str]:
    """JSON key → setting, of all that hold one value."""
    return {key: path for key, (path, _) in (*_SCALARS.items(), *_GATES.items())}


def list_paths() -> dict[str, str]:
    """JSON key → setting, of all that hold a list to which every file adds."""
    return dict(_LISTS)


def with_settings_text(settings: Settings, change: str) -> Settings:
    """The settings with one scalar changed as on a command line: `compaction.gapMinutes=30`, `gates.historySnip=true`.

    Raises:
        UsageError: there is no such setting, or it does not take that value.
    """
    key, separator, text = change.partition("=")
    if not separator:
        raise UsageError(f"There is no setting {key!r}.", hint="Write it as key=value.")
    parsed = parsed_setting(key, text)
    return with_value(settings, parsed.path, parsed.value)
