"""Sees to it that the memory files stand in the conversation: before the first prompt, and anew when they change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from pyagent.agent.journal import Journal
from pyagent.agent.memory_files import LoadedMemory, MemoryFile
from pyagent.agent.restore_sources import memory_text, reminder
from pyagent.events import EventSink, Notice
from pyagent.log import SettingChanged, UserEntry
from pyagent.messages import TextBlock

DIGEST_SETTING = "memory_digest"
"""Name of the session setting that says which memory the model was last told."""


class MemoryKeeper:
    def __init__(self, load: Callable[[], LoadedMemory], *, journal: Journal, emit: EventSink) -> None:
        self._load = load
        self._journal = journal
        self._emit = emit
        self._told_problems: set[str] = set()
        self._loaded: tuple[MemoryFile, ...] = ()

    async def before_prompt(self) -> None:
        """Tell the model of memory files it was not told of, or that have changed since."""
        loaded = await asyncio.to_thread(self._load)
        for problem in loaded.problems:
            if problem not in self._told_problems:
                self._told_problems.add(problem)
                self._emit(Notice(problem, "warning"))
        self._loaded = loaded.files
        known = self._journal.state.settings.get(DIGEST_SETTING, "")
        digest = digest_of(loaded.files)
        if digest == known or (not loaded.files and not known):
            return
        told = self._told()
        for file in loaded.files:
            text = memory_text(file)
            if text in told.get(file.path, ""):
                continue
            if file.path in told:
                text = "A memory file has changed; this is how it reads now.\n" + text
            self._journal.commit(
                UserEntry((TextBlock(reminder(text)),), origin="attachment", label=f"memory:{file.path}")
            )
        self._journal.commit(SettingChanged(DIGEST_SETTING, digest))

    def _told(self) -> dict[str, str]:
        """Path → how the model was last told that the file reads, as far as that stands in its view."""
        entries = [item.entry for item in self._journal.state.view if isinstance(item.entry, UserEntry)]
        labelled = [entry for entry in entries if entry.label.startswith("memory:")]
        return {entry.label.removeprefix("memory:"): entry.text for entry in labelled}

    def look(self) -> LoadedMemory:
        """The files as they are on the disk now, for a person. Waits for the disk."""
        return self._load()

    def load_for_restore(self) -> tuple[MemoryFile, ...]:
        """The files as they are on the disk now, for what stands behind a boundary."""
        self._loaded = self._load().files
        return self._loaded

    def after_boundary(self) -> None:
        """The restored memory is what the model knows now."""
        digest = digest_of(self._loaded)
        if self._loaded and digest != self._journal.state.settings.get(DIGEST_SETTING, ""):
            self._journal.commit(SettingChanged(DIGEST_SETTING, digest))

    def is_memory(self, path: str) -> bool:
        return any(file.path == path for file in self._loaded)


def digest_of(files: tuple[MemoryFile, ...]) -> str:
    hasher = hashlib.sha256()
    for file in files:
        hasher.update(f"{file.path}\0{file.text}\0".encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()
