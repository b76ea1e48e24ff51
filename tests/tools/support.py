"""A project folder with the real tools on it, and what the model was shown of its files."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyagent.events import PermissionQuestion
from pyagent.settings import Settings
from pyagent.state import KnownFile
from pyagent.tools.registry import default_tools
from pyagent.tools.shell import ShellSession
from pyagent.tools.tool import AnyTool, RefusedError, ToolContext, ToolResult


@dataclass
class ShownFiles:
    """The part of the conversation's state that tools ask for."""

    known: dict[str, KnownFile] = field(default_factory=dict)

    def known_file(self, path: str) -> KnownFile | None:
        return self.known.get(path)

    def take(self, result: ToolResult) -> None:
        for seen in result.files_seen:
            self.known[seen.path] = KnownFile(seen, is_visible=True)

    def clear_results(self) -> None:
        self.known = {path: KnownFile(known.seen, is_visible=False) for path, known in self.known.items()}


class Workbench:
    """Calls tools by name, as the loop does: validate, run, remember what was shown."""

    def __init__(self, root: Path, settings: Settings | None = None, *, environ: dict[str, str] | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        self.results_dir = self.root.parent / f"{root.name}-results"
        self.settings = settings or Settings()
        self.tools: dict[str, AnyTool] = default_tools(self.settings)
        self.files = ShownFiles()
        self.shell = ShellSession(self.settings, environ=environ, use_login=False)
        self.reported: list[str] = []
        self.cwd = self.root
        self._count = 0

    def path(self, name: str, content: str | bytes | None = None) -> Path:
        path = self.root / name
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def context(self, tool_use_id: str = "") -> ToolContext:
        self._count += 1
        return ToolContext(
            tool_use_id=tool_use_id or f"toolu_{self._count}",
            cwd=self.cwd,
            allowed_dirs=(self.root,),
            files=self.files,
            results_dir=self.results_dir,
            count_tokens=lambda text: len(text) // 4,
            report=self.reported.append,
            shell=self.shell,
        )

    async def call(self, tool_name: str, **fields: Any) -> ToolResult:
        tool = self.tools[tool_name]
        result = await tool.run(tool.input_model.model_validate(fields), self.context())
        self.files.take(result)
        if result.cwd is not None:
            self.cwd = result.cwd
        return result

    def ask(self, tool_name: str, **fields: Any) -> PermissionQuestion | None:
        tool = self.tools[tool_name]
        return tool.permission(tool.input_model.model_validate(fields), self.context())

    def can_succeed(self, tool_name: str, **fields: Any) -> bool:
        """Whether there is anything to ask about: a hopeless call is refused before anybody is asked."""
        try:
            self.ask(tool_name, **fields)
        except RefusedError:
            return False
        return True


async def until(is_so: Callable[[], object]) -> None:
    """Wait for a condition that something outside this loop brings about; the limit is for a broken test alone."""
    async with asyncio.timeout(60):
        await asyncio.create_task(_poll(is_so))


async def _poll(is_so: Callable[[], object]) -> None:
    interval = asyncio.Event()
    while not is_so():
        asyncio.get_running_loop().call_later(0.01, interval.set)
        await interval.wait()
        interval.clear()


def content_of(path: Path) -> str:
    return path.read_text()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def reset_memory_peak() -> int:
    """Forget the peak of this process's resident memory; returns what is resident now, in bytes."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("measures memory through /proc")
    Path("/proc/self/clear_refs").write_text("5")
    return _status_bytes("VmRSS")


def memory_peak() -> int:
    """The most that was resident since `reset_memory_peak`, in bytes."""
    return _status_bytes("VmHWM")


def _status_bytes(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
