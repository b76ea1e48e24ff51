"""Which settings there are: the key of each in a settings file, what it may hold, and how one is given as text."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from pyagent.agent.wire.catalogue import EFFORTS
from pyagent.choices import MIN_WINDOW_TOKENS, PERMISSION_MODES, permission_mode_named
from pyagent.errors import UsageError
from pyagent.settings import (
    API_CLEARINGS,
    COMPACTION_POLICIES,
    COMPACTION_STRATEGIES,
    NOTIFICATION_CHANNELS,
    Gates,
    Settings,
    with_value,
)

MAX_GAP_MINUTES = 100_000
"""About ten weeks: longer than any cache lives and any session pauses."""

MAX_NOTIFY_AFTER_S = 86_400
"""A day: longer than anyone waits for a reply."""

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
    mode = permission_mode_named(value) if isinstance(value, str) else None
    if mode is None:
        raise ValueError(f"use one of {', '.join(PERMISSION_MODES)}")
    return mode


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
    remaps = json_object(value)
    if not all(len(keys) > 1 and target == "<Esc>" for keys, target in remaps.items()):
        raise ValueError('use two characters or more for "<Esc>"')
    return dict(remaps)


def _models(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else text_list(value)
    return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))


def text_list(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("use a list of texts")
    return tuple(value)


def json_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("use an object in braces")
    return value


def _status_line(value: Any) -> str:
    command = json_object(value).get("command")
    if value.get("type", "command") != "command" or not isinstance(command, str) or not command.strip():
        raise ValueError('use {"type": "command", "command": "…"}')
    return command


SCALARS: Mapping[str, tuple[str, Check]] = {
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


GATES: Mapping[str, tuple[str, Check]] = {
    f"gates.{_camel(gate.name)}": (f"compaction.gates.{gate.name}", _flag) for gate in fields(Gates)
}

LISTS: Mapping[str, str] = {
    "permissions.deny": "deny_rules",
    "permissions.ask": "ask_rules",
    "permissions.allow": "allow_rules",
    "permissions.additionalDirectories": "additional_dirs",
    "bashAllowedSecrets": "bash_allowed_secrets",
    "cacheEditServers": "cache_edit_servers",
}
"""JSON key → setting. All files' items count."""

NEEDS_TRUST = frozenset(
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

SECTIONS = ("permissions", "compaction", "gates")
OWN_SECTIONS = ("compaction", "gates")
"""Only pyagent reads these, so a key in them that it doesn't know is a mistake."""


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
    path, check = SCALARS.get(full) or GATES[full]
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
        if full in SCALARS or full in GATES:
            return full
    near = difflib.get_close_matches(key, (*SCALARS, *GATES), n=1, cutoff=0.4)
    hint = f"The nearest is {near[0]}." if near else "Write it as key=value."
    raise UsageError(f"There is no setting {key!r}.", hint=hint)


def scalar_paths() -> dict[str, str]:
    """JSON key → setting, of all that hold one value."""
    return {key: path for key, (path, _) in (*SCALARS.items(), *GATES.items())}


def list_paths() -> dict[str, str]:
    """JSON key → setting, of all that hold a list to which every file adds."""
    return dict(LISTS)


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
