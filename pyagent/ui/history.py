"""Earlier prompts, one file per project, shared by the screen and plain mode."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from pyagent.ui.prompt_text import ListHistory

MAX_ENTRIES = 1_000
"""Prompts kept for recall. At a few hundred bytes each, reading them all takes about a millisecond."""

MAX_ENTRY_CHARS = 20_000
"""A longer prompt is a pasted file: recalling it would not help and would swell every start."""


def history_path(home: Path, cwd: Path) -> Path:
    """The history file of a project folder."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
    if len(slug) > 200:
        slug = f"{slug[:200]}-{sha256(str(cwd).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
    return home / "history" / f"{slug}.jsonl"


class PromptHistory:
    """The prompts typed in one project, oldest first. A file that cannot be read or written is no error: recall is a
    convenience, so the history then lives as long as the program."""

    def __init__(self, path: Path | None) -> None:
        """None keeps nothing on disk."""
        self._path = path
        self._entries = _load(path) if path is not None else []

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def add(self, text: str) -> None:
        """Remember a prompt; the same one twice in a row counts once."""
        text = text.strip()
        if not text or len(text) > MAX_ENTRY_CHARS or (self._entries and self._entries[-1] == text):
            return
        self._entries.append(text)
        if self._path is None:
            return
        line = json.dumps({"prompt": text}, ensure_ascii=True) + "\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if len(self._entries) > 2 * MAX_ENTRIES:
                self._rewrite()
                return
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="ascii") as file:
                file.write(line)
        except OSError:
            self._path = None

    def _rewrite(self) -> None:
        """Shorten the file to the newest entries, by rename, so that a crash never leaves half a file."""
        assert self._path is not None
        self._entries = self._entries[-MAX_ENTRIES:]
        fresh = self._path.with_suffix(f".{os.getpid()}.tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(json.dumps({"prompt": entry}, ensure_ascii=True) + "\n" for entry in self._entries)
        fresh.replace(self._path)


def _load(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    entries: list[str] = []
    for line in lines[-MAX_ENTRIES:]:
        try:
            prompt = json.loads(line)["prompt"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(prompt, str) and prompt:
            entries.append(prompt)
    return entries


class Recall(ListHistory):
    """Walking through earlier prompts in the input line. On an empty line, a queued prompt comes back first."""

    def __init__(self, history: PromptHistory, take_back_queued: Callable[[], bool]) -> None:
        """`take_back_queued` asks for the newest queued prompt and tells whether there is one."""
        super().__init__(history.entries)
        self._history = history
        self._take_back_queued = take_back_queued

    def previous(self, draft: str) -> str | None:
        if not draft and self._take_back_queued():
            return None
        return super().previous(draft)

    def add(self, text: str) -> None:
        super().add(text)
        self._history.add(text)
