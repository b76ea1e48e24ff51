"""Glob: files by name, newest first."""

from __future__ import annotations

import asyncio
import heapq
import os
import re
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.tools.glob_pattern import GlobPattern, PatternError
from pyagent.tools.paths import (
    exists,
    is_folder,
    missing_file_text,
    printable_name,
    read_question,
    resolve_path,
    short_path,
)
from pyagent.tools.ripgrep import ripgrep_command, ripgrep_path, run_search
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, counted, description_beside
from pyagent.tools.without_ripgrep.listing import walk_files

MAX_FILES = 100
TIMEOUT_S = 20.0
IGNORED_TIMEOUT_S = 3.0
"""For the second look, into ignored files, when there was nothing: worth a moment, not more."""
MAX_LISTING_BYTES = 512 * 1024 * 1024
"""Of the list of all names: over a million files with long paths."""


class GlobInput(ToolInput):
    pattern: str
    path: str | None = Field(None, description="Folder; default: the working directory")


class GlobTool:
    name = "Glob"
    input_model = GlobInput
    is_read_only = True
    is_compactable = True
    result_cap_chars = 40_000

    def __init__(self, find_ripgrep: Callable[[], str | None] = ripgrep_path) -> None:
        self._find_ripgrep = find_ripgrep

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: GlobInput) -> str:
        return f"Glob {tool_input.pattern}" + (f" in {tool_input.path}" if tool_input.path else "")

    def permission(self, tool_input: GlobInput, context: ToolContext) -> PermissionQuestion | None:
        root, _ = _root_and_pattern(tool_input, context)
        return read_question(self.name, root, context)

    async def run(self, tool_input: GlobInput, context: ToolContext) -> ToolResult:
        root, text = _root_and_pattern(tool_input, context)
        if not exists(root):
            return ToolResult.error(missing_file_text(root, context))
        if not is_folder(root):
            return ToolResult.error(f"{printable_name(root)} is a file; `path` must be a folder.")
        try:
            pattern = GlobPattern(text)
            pattern.matches("")
            base = resolve_path(pattern.fixed_folder or ".", root)
        except (PatternError, re.error) as error:
            return ToolResult.error(f"The pattern cannot be used: {error}")
        if not is_folder(base):
            return ToolResult.of(
                f"No files found: {short_path(base, context.cwd)} does not exist.", display={"summary": "0 files"}
            )
        if not base.is_relative_to(root):
            return ToolResult.of(
                "No files found: a link leads out of the folder searched.", display={"summary": "0 files"}
            )
        try:
            found, is_cut = await self._matching(pattern, base, TIMEOUT_S, is_ignored_shown=False)
            ignored: list[str] = []
            if not found and not is_cut:
                ignored, _ = await self._matching(pattern, base, IGNORED_TIMEOUT_S, is_ignored_shown=True)
        except OSError as error:
            return ToolResult.error(f"The search could not be run: {error.strerror or error}.")
        return await self._result(found, is_cut, ignored, base, context)

    async def _result(
        self, found: list[str], is_cut: bool, ignored: list[str], base: Path, context: ToolContext
    ) -> ToolResult:
        newest = await asyncio.to_thread(newest_first, base, found, MAX_FILES)
        lines = [short_path(base / name, context.cwd) for name in newest]
        notes = []
        if len(found) > MAX_FILES:
            notes.append(f"The newest {MAX_FILES} of {len(found):,} files. Narrow the pattern to see others.")
        if is_cut:
            notes.append(f"Stopped after {TIMEOUT_S:g} s: there may be more. Name a folder to search less.")
        if not found and not is_cut:
            notes.append("No files found. Links to folders are not followed.")
        if ignored:
            example = short_path(base / ignored[0], context.cwd)
            notes.append(
                f"{len(ignored):,} files in ignored folders match, such as {example}; "
                "name their folder in the pattern to see them."
            )
        text = "\n".join([*lines, *(f"[{note}]" for note in notes)])
        return ToolResult.of(text, display={"summary": counted(len(found), "file"), "lines": len(lines)})

    async def _matching(
        self, pattern: GlobPattern, base: Path, timeout_s: float, *, is_ignored_shown: bool
    ) -> tuple[list[str], bool]:
        """Names below `base` that match, and whether the search was cut short."""
        prefix = pattern.fixed_folder + "/" if pattern.fixed_folder else ""
        is_hidden_shown = pattern.names_hidden
        program = self._find_ripgrep()
        if program is None:
            names, is_cut = await walk_files(base, is_hidden_shown, is_ignored_shown, timeout_s)
            return await asyncio.to_thread(_matches, pattern, prefix, names), is_cut
        arguments = ["--files", "--null", "--no-require-git", "--glob=!.git"]
        arguments += ["--hidden"] if is_hidden_shown else []
        arguments += ["--no-ignore"] if is_ignored_shown else []
        if pattern.depth is not None:
            arguments.append(f"--max-depth={pattern.depth - prefix.count('/')}")
        run = await run_search(
            ripgrep_command(program, arguments),
            cwd=base,
            timeout_s=timeout_s,
            max_bytes=MAX_LISTING_BYTES,
            separator=b"\0",
        )
        if run.error:
            raise OSError(run.error)
        # In a thread: a million names take a second or two.
        return await asyncio.to_thread(_matches, pattern, prefix, run.output), run.is_cut


def _matches(pattern: GlobPattern, prefix: str, names: bytes | list[str]) -> list[str]:
    if isinstance(names, bytes):
        names = [os.fsdecode(name) for name in names.split(b"\0") if name]
    return [name for name in names if pattern.matches(prefix + name)]


def _root_and_pattern(tool_input: GlobInput, context: ToolContext) -> tuple[Path, str]:
    """An absolute pattern brings its own root."""
    pattern = os.path.expanduser(tool_input.pattern)
    if os.path.isabs(pattern):
        fixed = GlobPattern(pattern.lstrip("/")).fixed_folder
        return resolve_path("/" + fixed, context.cwd), pattern.lstrip("/")[len(fixed) :].lstrip("/")
    root = resolve_path(tool_input.path or ".", context.cwd)
    while pattern.startswith("../"):
        root, pattern = root.parent, pattern[3:]
    return root, pattern


def newest_first(base: Path, names: list[str], count: int | None = None) -> list[str]:
    """The newest `count` files (all if None), those of one moment by name."""

    def age(name: str) -> tuple[int, str]:
        try:
            return -os.stat(base / name).st_mtime_ns, name
        except OSError:
            return 0, name

    return sorted(names, key=age) if count is None else heapq.nsmallest(count, names, key=age)
