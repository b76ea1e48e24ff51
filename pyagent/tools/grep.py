"""Grep: ripgrep over the project, with pages, totals, and a word about what was not searched."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.tools.glob import newest_first
from pyagent.tools.paths import exists, is_folder, missing_file_text, read_question, resolve_path, short_path
from pyagent.tools.ripgrep import RipgrepRun, ripgrep_command, ripgrep_path, run_search
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, counted, description_beside
from pyagent.tools.without_ripgrep.query import SearchQuery
from pyagent.tools.without_ripgrep.worker import worker_command

HEAD_LIMIT = 250
TIMEOUT_S = 20.0
IGNORED_TIMEOUT_S = 3.0
"""For the second look, into ignored files: worth a moment, not more."""
FEW_MATCHES = 3
"""With fewer, what was looked for may well be in an ignored file."""
MAX_OUTPUT_BYTES = 20 * 1024 * 1024
LINE_COLUMNS = 500
"""Longer lines are cut by ripgrep, which says so."""

OutputMode: TypeAlias = Literal["content", "files_with_matches", "count"]


class GrepInput(ToolInput):
    pattern: str
    path: str | None = Field(None, description="File or folder; default: the working directory")
    glob: str | None = None
    type: str | None = None
    output_mode: OutputMode = "files_with_matches"
    after: int | None = Field(None, alias="-A", ge=0)
    before: int | None = Field(None, alias="-B", ge=0)
    context: int | None = Field(None, alias="-C", ge=0)
    has_line_numbers: bool = Field(True, alias="-n")
    is_case_ignored: bool = Field(False, alias="-i")
    is_only_matching: bool = Field(False, alias="-o", description="With content: only the parts that match")
    multiline: bool = False
    head_limit: int | None = Field(None, ge=0)
    offset: int | None = Field(None, ge=0)


class GrepTool:
    name = "Grep"
    input_model = GrepInput
    is_read_only = True
    is_compactable = True
    result_cap_chars = 40_000

    def __init__(self, find_ripgrep: Callable[[], str | None] = ripgrep_path) -> None:
        self._find_ripgrep = find_ripgrep

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: GrepInput) -> str:
        where = f" in {tool_input.path}" if tool_input.path else ""
        return f"Grep {tool_input.pattern}{where}" + (f" ({tool_input.glob})" if tool_input.glob else "")

    def permission(self, tool_input: GrepInput, context: ToolContext) -> PermissionQuestion | None:
        return read_question(self.name, resolve_path(tool_input.path or ".", context.cwd), context)

    async def run(self, tool_input: GrepInput, context: ToolContext) -> ToolResult:
        target = resolve_path(tool_input.path or ".", context.cwd)
        if not exists(target):
            return ToolResult.error(missing_file_text(target, context))
        base, only = (target, None) if is_folder(target) else (target.parent, target.name)
        if only is not None and not target.is_file():
            return ToolResult.error(f"{target} is neither a file nor a folder.")
        try:
            found = await self._search(tool_input, base, only, tool_input.output_mode, TIMEOUT_S)
        except OSError as error:
            return ToolResult.error(f"The search could not be run: {error.strerror or error}.")
        if found.error:
            return ToolResult.error(found.error)
        match tool_input.output_mode:
            case "files_with_matches":
                names = [os.fsdecode(name) for name in found.output.split(b"\0") if name]
                names = await asyncio.to_thread(newest_first, base, names)
                lines, total = [short_path(base / name, context.cwd) for name in names], len(names)
                unit = "file"
            case "count":
                counts = _counts(found.output)
                lines = [f"{short_path(base / name, context.cwd)}:{count}" for name, count in sorted(counts.items())]
                total, unit = len(counts), "file"
            case _:
                lines, total = _content_lines(found.output, base, context.cwd, tool_input)
                unit = "line"
        return await self._result(tool_input, found, lines, total, unit, base, only, context)

    async def _result(
        self,
        tool_input: GrepInput,
        found: RipgrepRun,
        lines: list[str],
        total: int,
        unit: str,
        base: Path,
        only: str | None,
        context: ToolContext,
    ) -> ToolResult:
        offset = tool_input.offset or 0
        limit = HEAD_LIMIT if tool_input.head_limit is None else tool_input.head_limit or len(lines)
        shown = lines[offset : offset + limit]
        notes = []
        if tool_input.output_mode == "content" and b": binary file matches (" in found.output:
            notes.append("The file is binary, and matches there are not shown.")
        elif not lines:
            notes.append("No matches" + (" in the part searched." if found.is_cut else "."))
        elif not shown:
            notes.append(f"No entries at offset {offset}: there are {len(lines):,}.")
        elif len(shown) < len(lines):
            more = f" Go on with offset={offset + len(shown)}." if offset + len(shown) < len(lines) else ""
            notes.append(f"{offset + 1}-{offset + len(shown)} of {len(lines):,}.{more}")
        if tool_input.output_mode == "count" and lines:
            matches = sum(_counts(found.output).values())
            notes.append(f"{matches:,} matches in {total:,} files.")
        if found.is_cut:
            notes.append("Stopped by the time or size limit: there is more. Narrow the search by path, glob or type.")
        if found.has_unreadable:
            notes.append("Some files could not be read.")
        if total < FEW_MATCHES and not found.is_cut and only is None:
            notes += await self._ignored_note(tool_input, _names(found.output), base, context)
        text = "\n".join([*shown, *(f"[{note}]" for note in notes)])
        return ToolResult.of(text, display={"summary": counted(total, unit), "lines": len(shown)})

    async def _ignored_note(self, tool_input: GrepInput, seen: set[str], base: Path, context: ToolContext) -> list[str]:
        all_found = await self._search(tool_input, base, None, "count", IGNORED_TIMEOUT_S, is_ignored_shown=True)
        hidden = {name: count for name, count in _counts(all_found.output).items() if name not in seen}
        if not hidden:
            return []
        example = short_path(base / min(hidden), context.cwd)
        more = " or more" if all_found.is_cut else ""
        return [
            f"{sum(hidden.values()):,}{more} matches in ignored files not shown, such as in {example}; "
            "give that path to search it."
        ]

    async def _search(
        self,
        tool_input: GrepInput,
        base: Path,
        only: str | None,
        mode: OutputMode,
        timeout_s: float,
        *,
        is_ignored_shown: bool = False,
    ) -> RipgrepRun:
        program = self._find_ripgrep()
        separator = b"\0" if mode == "files_with_matches" else b"\n"
        run = partial(run_search, cwd=base, timeout_s=timeout_s, max_bytes=MAX_OUTPUT_BYTES, separator=separator)
        if program is None:
            return await run(worker_command(_query(tool_input, only, mode, is_ignored_shown)))
        arguments = ["--null", "--with-filename", "--no-heading", "--hidden", "--no-require-git"]
        match mode:
            case "files_with_matches":
                arguments.append("--files-with-matches")
            case "count":
                arguments.append("--count")
            case "content":
                before, after = _context_lines(tool_input)
                arguments += ["--line-number", f"--before-context={before}", f"--after-context={after}"]
                arguments += [f"--max-columns={LINE_COLUMNS}", "--max-columns-preview"]
                arguments += ["--only-matching"] if tool_input.is_only_matching else []
        arguments += ["--ignore-case"] if tool_input.is_case_ignored else []
        arguments += ["--multiline", "--multiline-dotall"] if tool_input.multiline else []
        arguments += ["--no-ignore"] if is_ignored_shown else []
        arguments += [f"--type={tool_input.type}"] if tool_input.type else []
        arguments += [f"--glob={glob}" for glob in _globs(tool_input)]
        arguments += ["--glob=!.git", f"--regexp={tool_input.pattern}", "--", f"./{only}" if only else "."]
        return await run(ripgrep_command(program, arguments))


def _query(tool_input: GrepInput, only: str | None, mode: OutputMode, is_ignored_shown: bool) -> SearchQuery:
    before, after = _context_lines(tool_input)
    return SearchQuery(
        tool_input.pattern,
        mode,
        is_case_ignored=tool_input.is_case_ignored,
        is_multiline=tool_input.multiline,
        is_only_matching=tool_input.is_only_matching,
        before=before,
        after=after,
        globs=tuple(_globs(tool_input)),
        type_name=tool_input.type or "",
        is_ignored_shown=is_ignored_shown,
        only=only or "",
        max_columns_bytes=LINE_COLUMNS,
    )


def _context_lines(tool_input: GrepInput) -> tuple[int, int]:
    around = tool_input.context or 0
    before = around if tool_input.before is None else tool_input.before
    after = around if tool_input.after is None else tool_input.after
    return before, after


def _globs(tool_input: GrepInput) -> list[str]:
    """Several patterns may be given, separated by blanks, or by commas outside braces."""
    text = tool_input.glob or ""
    return [part for part in re.split(r"\s+|,(?![^{]*\})", text) if part]


_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")
_NUMBERED = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)


def _names(output: bytes) -> set[str]:
    """The files an output of few matches is about, in any mode."""
    return {
        os.fsdecode(chunk[chunk.rfind(b"\n./") + 1 :]).removeprefix("./") for chunk in output.split(b"\0")[:-1] if chunk
    }


def _counts(output: bytes) -> dict[str, int]:
    return {os.fsdecode(name).removeprefix("./"): int(count) for name, count in _COUNT.findall(output)}


def _content_lines(output: bytes, base: Path, cwd: Path, tool_input: GrepInput) -> tuple[list[str], int]:
    """Lines for the model, files in order of their path; and how many of them are matches.

    A path ends at its NUL and begins with the last `./` that begins a line, so it may hold newlines itself.
    """
    blocks: dict[bytes, list[str]] = {}
    total, position = 0, 0
    previous = b""
    while (nul := output.find(b"\0", position)) >= 0:
        start = max(position, output.rfind(b"\n./", position, nul) + 1)
        end = output.find(b"\n", nul)
        end = len(output) if end < 0 else end
        name, is_after_gap = output[start:nul], output[position:start] == b"--\n"
        position = end + 1
        match = _NUMBERED.fullmatch(output, nul + 1, end)
        if match is None:
            continue
        number, sign, content = match.groups()
        lines = blocks.setdefault(name, [])
        if is_after_gap and name == previous:
            lines.append("--")
        previous = name
        total += sign == b":"
        mark = sign.decode()
        place = short_path(base / os.fsdecode(name), cwd) + mark
        place += number.decode() + mark if tool_input.has_line_numbers else ""
        lines.append(place + content.decode("utf-8", "backslashreplace").removesuffix("\r"))
    return [line for name in sorted(blocks) for line in blocks[name]], total
