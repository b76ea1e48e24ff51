"""What each setting is for, and how its value stands in a settings file: the rows of `/config`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from typing import Any

from pyagent.agent.config import LoadedSettings
from pyagent.agent.setting_schema import list_paths, scalar_paths
from pyagent.choices import EFFORT_LEVELS, PERMISSION_MODES
from pyagent.pages import SettingKind, SettingRow
from pyagent.settings import (
    API_CLEARINGS,
    COMPACTION_POLICIES,
    COMPACTION_STRATEGIES,
    NOTIFICATION_CHANNELS,
    Gates,
    Settings,
)

THEME_NAMES = ("auto", "dark", "light", "dark-daltonized", "light-daltonized", "ansi")
"""What the setting `theme` takes; the front ends know what each looks like."""

NEXT_SESSION = "from the next session on"
NOW_BY_COMMAND = "new sessions start with it; /{} changes this one"

_HELP: Mapping[str, str] = {
    "model": "the model new sessions start with",
    "fallbackModel": "models that answer while that one is overloaded",
    "effortLevel": "how much the model thinks",
    "theme": "the colours",
    "tui": "which front end starts: the full screen, or line by line",
    "axScreenReader": "line by line, worded for screen readers",
    "axTellCost": "have the screen reader mode tell what each turn cost",
    "editorMode": "edit the input line as usual, or as vim does",
    "vimInsertModeRemaps": "sequences of vim's insert mode and what they stand for",
    "statusLine": "your own program for the bottom rows",
    "fileCheckpointingEnabled": "save the files before each prompt, so that /rewind can bring them back",
    "cleanupPeriodDays": "days after which unused sessions are deleted; 0 keeps them",
    "preferredNotifChannel": "how you are told that a turn is over or a question waits while you look elsewhere",
    "notifyAfterSeconds": "for how long a turn must have run to be told of",
    "terminalTitle": "say in the window's title what goes on",
    "prefersReducedMotion": "no spinner and no blinking",
    "respondToBashCommands": "have the model answer to what your own ! commands print",
    "webSearch": "offer the server's web search, which costs extra",
    "autoCompactEnabled": "compact by itself before the window is full",
    "autoCompactWindow": "the context window to assume, in tokens, or auto",
    "permissions.defaultMode": "the mode new sessions start in",
    "compaction.isDisabled": "no compaction of any kind, not even by hand",
    "compaction.triggerPercent": "compact at this percentage of the effective window; can only lower it",
    "compaction.blockingTokens": "with automatic compaction off, refuse prompts from here on",
    "compaction.warningBufferTokens": "how far before the trigger the gauge warns",
    "compaction.errorBufferTokens": "how far before the trigger the gauge turns red",
    "compaction.gapMinutes": "minutes of pause after which old tool results are cleared",
    "compaction.keepRecent": "tool results that are never cleared",
    "compaction.apiTriggerTokens": "where the server begins to clear by itself",
    "compaction.apiTargetTokens": "down to where the server clears",
    "compaction.apiClearing": "what the server clears: old results, or old uses as well",
    "compaction.notesFirstPercent": "where the session's notes are first brought up to date, in percent of the trigger",
    "compaction.notesSecondPercent": "and where for the second time",
    "compaction.notesMinToolCalls": "tool calls after which notes are worth writing",
    "compaction.policy": "compact when the window is nearly full, or where the bill is least",
    "compaction.strategy": "who writes the summary: the model on our instruction, or the server",
    "gates.cachedMicrocompact": "have a server that can drop old results from its cache",
    "gates.historySnip": "leave out results that a later, equal one replaces",
    "gates.contextCollapse": "fold finished stretches of work to one line each",
    "gates.reactiveCompact": "compact when the server says the request is too long",
    "gates.reactiveOnly": "compact only then",
    "gates.promptCacheBreakDetection": "say when the prompt cache was lost unexpectedly, and why",
    "gates.sessionMemory": "keep notes of the session, from which a summary needs no call",
    "gates.apiContextManagement": "let the server clear old results by itself",
    "gates.compactCachePrefix": "ask for summaries behind the cached conversation",
    "gates.compactStreamingRetry": "ask again when a summary's stream breaks",
    "gates.commitAttribution": "forget file contents kept for attribution after a compaction",
    "gates.timeBasedMicrocompact": "clear old tool results after a long pause",
    "permissions.deny": "rules that forbid; see /permissions",
    "permissions.ask": "rules that ask; see /permissions",
    "permissions.allow": "rules that allow; see /permissions",
    "permissions.additionalDirectories": "further folders to work in; see /add-dir",
    "bashAllowedSecrets": "variables that commands may see although they look like secrets",
    "cacheEditServers": "addresses of servers that can drop results from their cache",
}

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "effortLevel": EFFORT_LEVELS,
    "theme": THEME_NAMES,
    "editorMode": ("normal", "vim"),
    "preferredNotifChannel": NOTIFICATION_CHANNELS,
    "permissions.defaultMode": PERMISSION_MODES,
    "compaction.apiClearing": API_CLEARINGS,
    "compaction.policy": COMPACTION_POLICIES,
    "compaction.strategy": COMPACTION_STRATEGIES,
}

_WHEN: Mapping[str, str] = {
    "model": NOW_BY_COMMAND.format("model"),
    "effortLevel": NOW_BY_COMMAND.format("effort"),
    "permissions.defaultMode": NOW_BY_COMMAND.format("mode"),
    "fallbackModel": NEXT_SESSION,
    "fileCheckpointingEnabled": NEXT_SESSION,
    "cleanupPeriodDays": "at the next start",
    "tui": "at the next start; /tui changes this session's",
    "axScreenReader": "at the next start",
    "axTellCost": "at the next start",
    "editorMode": "new sessions start with it; /vim changes this one",
    "vimInsertModeRemaps": NEXT_SESSION,
    "webSearch": NEXT_SESSION,
    "preferredNotifChannel": NEXT_SESSION,
    "notifyAfterSeconds": NEXT_SESSION,
    "terminalTitle": NEXT_SESSION,
    "prefersReducedMotion": NEXT_SESSION,
    "gates.promptCacheBreakDetection": NEXT_SESSION,
    "bashAllowedSecrets": NEXT_SESSION,
    "cacheEditServers": NEXT_SESSION,
}

_SAME_AS_ANOTHER = ("compaction.isAutoDisabled", "compaction.windowTokens")
"""Second names of `autoCompactEnabled` and `autoCompactWindow`."""


def setting_rows(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Every setting with its value and where that comes from."""
    rows = []
    for key, path in scalar_paths().items():
        if key in _SAME_AS_ANOTHER:
            continue
        value = json_value(key, loaded.settings)
        rows.append(
            SettingRow(
                key=key,
                kind=_kind(key, value, path),
                value="" if value in (None, "", [], {}) else json.dumps(value, ensure_ascii=False),
                origin=loaded.origins.get(path, "default"),
                choices=_CHOICES.get(key, ()),
                help=_HELP.get(key, ""),
                when=_WHEN.get(key, ""),
            )
        )
    for key, path in list_paths().items():
        items = list(getattr(loaded.settings, path))
        origins = dict.fromkeys(loaded.item_origins.get(path, {}).values())
        value = json.dumps(items, ensure_ascii=False) if items else ""
        rows.append(
            SettingRow(
                key,
                "list",
                value,
                ", ".join(origins) or "default",
                help=_HELP.get(key, ""),
                when=_WHEN.get(key, ""),
            )
        )
    return tuple(rows)


def json_value(key: str, settings: Settings) -> Any:
    """A scalar setting as it would stand in a file; None where it is not set."""
    value = _at(settings, scalar_paths()[key])
    match key:
        case "autoCompactEnabled":
            return not value
        case "autoCompactWindow":
            return "auto" if value is None else value
        case "statusLine":
            return {"type": "command", "command": value} if value else None
        case "editorMode":
            return "vim" if value else "normal"
        case "vimInsertModeRemaps":
            return dict(value)
        case "fallbackModel":
            return list(value)
        case _:
            return value


def _at(settings: Settings, path: str) -> Any:
    return reduce(getattr, path.split("."), settings)


def _kind(key: str, value: Any, path: str) -> SettingKind:
    if key in _CHOICES:
        return "choice"
    if isinstance(value, bool):
        return "flag"
    is_number = isinstance(value, int | float) or path.endswith(("_tokens", "_percent", "_minutes"))
    return "number" if is_number and key != "autoCompactWindow" else "text"


def gate_origin(name: str, loaded: LoadedSettings) -> str:
    """Where a gate's state comes from."""
    assert name in {gate.name for gate in fields(Gates)}
    return loaded.origins.get(f"compaction.gates.{name}", "default")
