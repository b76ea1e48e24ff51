"""The settings of a run: files from broad to narrow, then `--settings`, the environment and the command line."""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pyagent.agent.setting_schema import (
    GATES,
    LISTS,
    NEEDS_TRUST,
    OWN_SECTIONS,
    SCALARS,
    SECTIONS,
    json_object,
    text_list,
)
from pyagent.agent.trust import HOW_TO_TRUST
from pyagent.errors import UsageError
from pyagent.launch import LaunchOptions
from pyagent.settings import Settings, environment_values, with_value

MAX_SETTINGS_BYTES = 1_000_000
"""Nobody writes that much by hand: a larger file is something else under that name."""

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
            if key in NEEDS_TRUST and not may_widen:
                untrusted.append(key)
                continue
            try:
                self._set(name, key, value)
            except ValueError as error:
                self.problems.append(f"{name}: {key} is ignored: {error}.")
        if untrusted:
            waits = ", ".join(untrusted)
            self.problems.append(f"{name}: {waits} will count once this folder is trusted ({HOW_TO_TRUST}).")

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
            if key not in SECTIONS:
                flat.append((key, value))
            elif isinstance(value, dict):
                flat += [(f"{key}.{inner}", inner_value) for inner, inner_value in value.items()]
            else:
                self.problems.append(f"{name}: {key} is ignored: use an object in braces.")
        return flat

    def _set(self, name: str, key: str, value: Any) -> None:
        if key in LISTS:
            items = text_list(value)
            if key == "permissions.additionalDirectories":
                items = tuple(str(_absolute(self._options, item)) for item in items)
            self._extend(LISTS[key], items, name)
        elif key == "env":
            self._add_env(name, json_object(value))
        elif known := SCALARS.get(key) or GATES.get(key):
            path, check = known
            self._put(path, check(value), name)
        elif key.partition(".")[0] in OWN_SECTIONS:
            near = difflib.get_close_matches(key, (*SCALARS, *GATES), n=1)
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
