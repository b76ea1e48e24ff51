"""What a compaction can put back: files as they are on the disk now, memory files, the task list."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

from pyagent.agent.memory_files import MemoryFile
from pyagent.compaction.pins import Pin as PinnedText
from pyagent.compaction.pins import PinKind, rendered
from pyagent.compaction.ports import FileText, RestorableState, RestoreText
from pyagent.log import Pin, ToolRan
from pyagent.messages import JsonObject
from pyagent.state import ConversationState

MAX_RESTORED_FILE_BYTES = 2_000_000
"""A larger file is named by its path only; reading it would take longer than it is worth."""


class DiskSources:
    """The restore port of the real program."""

    def __init__(
        self,
        state: ConversationState,
        *,
        load_memory: Callable[[], tuple[MemoryFile, ...]],
        is_memory: Callable[[str], bool],
    ) -> None:
        self._state = state
        self._load_memory = load_memory
        self._is_memory = is_memory

    async def read_file(self, path: str) -> FileText | None:
        if self._is_memory(path):
            return None
        return await asyncio.to_thread(_read_text, Path(path))

    async def _pin(self, pin: Pin) -> PinnedText:
        """The pin with what it shows now."""
        if not pin.is_file:
            kind: PinKind = "rule" if not pin.source else "line" if pin.source.startswith("/") else "message"
            return PinnedText(pin.pin_id, kind, pin.text, pin.source)
        found = await asyncio.to_thread(_read_text, Path(pin.text))
        return PinnedText(pin.pin_id, "file", found.text if found else "(the file is not there now)", pin.text)

    async def state(self) -> RestorableState:
        memory = await asyncio.to_thread(self._load_memory)
        tasks = current_tasks(self._state)
        return RestorableState(
            pins=rendered([await self._pin(pin) for pin in self._state.pins]),
            memory=tuple(RestoreText(f"memory:{file.path}", reminder(memory_text(file))) for file in memory),
            tasks=RestoreText("tasks", reminder(tasks_text(tasks))) if tasks else None,
        )


def _read_text(path: Path) -> FileText | None:
    """The file as text, None if it is not to be had as text."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_RESTORED_FILE_BYTES:
            return None
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    if "\0" in text:
        return None
    return FileText(text, hashlib.sha256(data).hexdigest(), text.count("\n") + 1)


def memory_text(file: MemoryFile) -> str:
    """A memory file as the model sees it."""
    return f"Instructions from {file.path} (follow them unless the user says otherwise):\n\n{file.text.strip()}"


def reminder(text: str) -> str:
    """Text of pyagent's own in the conversation, told apart from the user's."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


def current_tasks(state: ConversationState) -> list[JsonObject]:
    """The task list as the model last wrote it on this branch."""
    for record in reversed(state.branch):
        if isinstance(record.payload, ToolRan) and isinstance(record.payload.display.get("tasks"), list):
            return [task for task in record.payload.display["tasks"] if isinstance(task, dict)]
    return []


def tasks_text(tasks: list[JsonObject]) -> str:
    marks = {"completed": "x", "in_progress": "~"}
    lines = [f"- [{marks.get(str(task.get('status')), ' ')}] {task.get('content', '')}" for task in tasks]
    return "The task list as it stands (x done, ~ in progress):\n" + "\n".join(lines)
