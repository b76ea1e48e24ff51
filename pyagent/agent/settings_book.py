"""The settings of a running program: where each value comes from, and how a person's change is written.

Only pyagent's own files are written; what another program's files say is read and left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pyagent.agent.config import LoadedSettings, load_settings
from pyagent.agent.own_files import replace_file
from pyagent.agent.trust import trust
from pyagent.errors import PyagentError
from pyagent.launch import LaunchOptions
from pyagent.settings import Settings

Scope: TypeAlias = Literal["user", "project", "local"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


class SettingsBook:
    """Holds what was loaded. Reading and writing wait for the disk: files of a few kilobytes."""

    def __init__(self, options: LaunchOptions, *, is_trusted: bool) -> None:
        """Raises UsageError where `--settings` cannot be used."""
        self._options = options
        self.is_trusted = is_trusted
        self.loaded = load_settings(options, is_trusted=is_trusted)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def reload(self) -> LoadedSettings:
        """Read everything again."""
        self.loaded = load_settings(self._options, is_trusted=self.is_trusted)
        return self.loaded

    def trust_folder(self) -> None:
        """Have what the working folder's own files allow count, now and whenever pyagent is started there.

        Raises:
            PyagentError: it could not be saved; it counts until the program ends.
        """
        self.is_trusted = True
        self.reload()
        trust(self._options.cwd, self._options.home)

    def file(self, scope: Scope) -> Path:
        """pyagent's own file for a scope."""
        match scope:
            case "user":
                return self._options.home / "settings.json"
            case "project":
                return self._options.cwd / ".pyagent" / "settings.json"
            case "local":
                return self._options.cwd / ".pyagent" / "settings.local.json"

    def scope_of(self, origin: str) -> Scope | None:
        """The scope whose own file this is, if it is one."""
        return next((scope for scope in SCOPES if str(self.file(scope)) == origin), None)

    def write(self, scope: Scope, key: str, value: Any) -> Path:
        """Set a key in a scope's own file; None takes it out. Returns the file.

        Raises:
            PyagentError: the file is damaged or cannot be written.
        """

        def change(section: dict[str, Any], name: str) -> None:
            if value is None:
                section.pop(name, None)
            else:
                section[name] = value

        return self._change(scope, key, change)

    def add_item(self, scope: Scope, key: str, item: str) -> Path:
        """Add to a list in a scope's own file. Raises PyagentError as `write` does."""

        def change(section: dict[str, Any], name: str) -> None:
            items = section.get(name)
            kept = items if isinstance(items, list) else []
            section[name] = [*kept, *([] if item in kept else [item])]

        return self._change(scope, key, change)

    def remove_item(self, scope: Scope, key: str, item: str) -> Path:
        """Take out of a list in a scope's own file. Raises PyagentError as `write` does."""

        def change(section: dict[str, Any], name: str) -> None:
            items = section.get(name)
            section[name] = [kept for kept in items if kept != item] if isinstance(items, list) else []

        return self._change(scope, key, change)

    def _change(self, scope: Scope, key: str, change: Callable[[dict[str, Any], str], None]) -> Path:
        path = self.file(scope)
        content = _content(path)
        section_name, _, name = key.rpartition(".")
        section = content
        if section_name:
            section = content.setdefault(section_name, {})
            if not isinstance(section, dict):
                raise PyagentError(f"{section_name} in {path} is no object.", hint="Put it right by hand first.")
        change(section, name)
        try:
            _write(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise PyagentError(f"{path} cannot be written: {error.strerror or error}.") from error
        return path


def _content(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise PyagentError(f"{path} cannot be read, so it is not written.") from error
    try:
        content = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise PyagentError(f"{path} holds no valid JSON, so it is not written.", hint=f"It says: {error}.") from error
    if not isinstance(content, dict):
        raise PyagentError(f"{path} holds no JSON object, so it is not written.")
    return content


def _write(path: Path, text: str) -> None:
    """In one step, so that a kill leaves the old file or the new one; a link's target is written, not the link."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    replace_file(target, text, mode)
