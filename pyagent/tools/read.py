"""Read: show a file to the model, whatever it holds."""

from __future__ import annotations

import asyncio
import codecs
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from pyagent.events import PermissionQuestion
from pyagent.log import FileSeen
from pyagent.settings import Settings
from pyagent.tools.image_file import image_result, is_image
from pyagent.tools.notebook import notebook_text
from pyagent.tools.paths import missing_file_text, printable_name, read_question, resolve_path, short_path
from pyagent.tools.pdf_file import is_pdf, pdf_result
from pyagent.tools.text_file import SAMPLE_BYTES, detect_encoding, refusal_of_special_file, visible
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult, counted, description_beside

DEFAULT_LINES = 2_000
LINE_CHARS = 2_000
"""Longer lines are cut: minified files would fill the context with one line."""
WHOLE_BYTES = 16 * 1024 * 1024
"""Up to this size a file is read whole and its encoding is certain; larger ones are streamed."""
HASHED_BYTES = 256 * 1024 * 1024
"""Larger files are read only as far as needed: they get no hash, so they cannot be edited, and no count of lines."""
NOTEBOOK_BYTES = 100 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
COUNTED_LINES = 50
"""Tokens are counted for so many lines at a time."""
_UNREADABLE_ROOTS = (Path("/proc"), Path("/dev"))


class ReadInput(ToolInput):
    file_path: str
    offset: int | None = Field(None, description="First line, from 1")
    limit: int | None = Field(None, description="Number of lines")
    pages: str | None = None


class ReadTool:
    name = "Read"
    input_model = ReadInput
    is_read_only = True
    is_compactable = True
    result_cap_chars = 400_000

    def __init__(self, settings: Settings) -> None:
        self._max_tokens = settings.read_max_tokens

    @property
    def description(self) -> str:
        return description_beside(__file__)

    def summary(self, tool_input: ReadInput) -> str:
        part = ""
        if tool_input.pages:
            part = f" (pages {tool_input.pages})"
        elif tool_input.offset or tool_input.limit:
            first = max(1, tool_input.offset or 1)
            part = f" (lines {first}-{first + tool_input.limit - 1})" if tool_input.limit else f" (from line {first})"
        return f"Read {tool_input.file_path}{part}"

    def permission(self, tool_input: ReadInput, context: ToolContext) -> PermissionQuestion | None:
        return read_question(self.name, resolve_path(tool_input.file_path, context.cwd), context)

    async def run(self, tool_input: ReadInput, context: ToolContext) -> ToolResult:
        path = resolve_path(tool_input.file_path, context.cwd)
        name = printable_name(path)
        try:
            status = path.stat()
            if refusal := refusal_of_special_file(path, status):
                return ToolResult.error(refusal)
            if any(path.is_relative_to(root) for root in _UNREADABLE_ROOTS):
                return ToolResult.error(f"{name} is made up by the kernel and may have no end. Use `head -c` in Bash.")
            start = await asyncio.to_thread(_first_bytes, path)
            if is_image(start):
                return await asyncio.to_thread(image_result, path, context)
            if is_pdf(start):
                return await asyncio.to_thread(pdf_result, path, tool_input.pages, context)
            if path.suffix == ".ipynb" and status.st_size > NOTEBOOK_BYTES:
                return ToolResult.error(f"{name} is larger than {NOTEBOOK_BYTES // 2**20} MB. Use jq in Bash.")
            first = max(1, tool_input.offset or 1)
            limit = max(1, tool_input.limit) if tool_input.limit is not None else DEFAULT_LINES
            selection = await asyncio.to_thread(_select, path, first, limit)
        except FileNotFoundError:
            return ToolResult.error(missing_file_text(path, context))
        except OSError as error:
            return ToolResult.error(f"{name} cannot be read: {error.strerror}.")
        if selection is None:
            return ToolResult.error(
                f"{name} is a binary file ({status.st_size:,} bytes). "
                "Look at it with `file`, `xxd` or `strings` in Bash."
            )
        return self._result(path, selection, tool_input, context)

    def _result(self, path: Path, selection: Selection, tool_input: ReadInput, context: ToolContext) -> ToolResult:
        display = {"path": short_path(path, context.cwd)}
        if selection.total_lines == 0:
            return ToolResult.of(
                "[The file is empty.]",
                display=display | {"summary": "empty", "lines": 0},
                files_seen=_seen(path, selection, (), context),
            )
        if not selection.lines:
            return ToolResult.of(
                f"[Line {selection.first} is past the end: the file has {selection.total_lines} lines.]",
                display=display | {"summary": "past the end", "lines": 0},
            )
        shown = self._within_budget(selection.numbered(), context)
        last = selection.first + len(shown) - 1
        is_whole = selection.first == 1 and last == selection.total_lines
        line_range = () if is_whole else (selection.first, last)
        if _is_known_already(path, selection, line_range, context):
            return ToolResult.of(
                f"[{printable_name(path)} is unchanged since it was read above: that content still holds.]",
                display=display | {"summary": "unchanged"},
            )
        notes = list(selection.notes)
        if not is_whole:
            total = f"of {selection.total_lines:,}" if selection.total_lines is not None else "of a very large file"
            next_line = f" Go on with offset={last + 1}." if last != selection.total_lines else ""
            asked_to_end = tool_input.limit is not None and len(shown) == len(selection.lines)
            mark = "" if asked_to_end else "PARTIAL view: "
            notes.append(f"{mark}lines {selection.first}-{last} {total}.{next_line}")
        for number, length in selection.cut_lines:
            if number <= last:
                notes.append(
                    f"Line {number} has {length:,} characters, cut at {LINE_CHARS:,}. "
                    f"For more: sed -n '{number}p' FILE | cut -c{LINE_CHARS + 1}-{2 * LINE_CHARS}"
                )
        text = "\n".join([*shown, *(f"[{note}]" for note in notes[:MAX_NOTES])])
        return ToolResult.of(
            text,
            display=display | {"summary": counted(len(shown), "line"), "lines": len(shown)},
            files_seen=_seen(path, selection, line_range, context),
        )

    def _within_budget(self, lines: list[str], context: ToolContext) -> list[str]:
        """As many lines as fit the token cap, at least one."""
        fitting, tokens, step = 0, 0, COUNTED_LINES
        while fitting < len(lines):
            block = context.count_tokens("\n".join(lines[fitting : fitting + step]))
            if tokens + block <= self._max_tokens:
                tokens, fitting = tokens + block, fitting + step
            elif step > 1:
                step = 1
            else:
                break
        return lines[: max(1, fitting)]


MAX_NOTES = 8


@dataclass(slots=True)
class Selection:
    """Some lines of a text, each cut to `LINE_CHARS`."""

    first: int
    lines: list[str] = field(default_factory=list)
    cut_lines: list[tuple[int, int]] = field(default_factory=list)
    """Line number and full length of those that were cut."""
    total_lines: int | None = 0
    """None where the file was not read to its end."""
    sha256: str = ""
    notes: tuple[str, ...] = ()

    def numbered(self) -> list[str]:
        return [f"{number:6}\t{line}" for number, line in enumerate(self.lines, self.first)]


def _first_bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def _select(path: Path, first: int, limit: int) -> Selection | None:
    """The lines asked for; None for a binary file. Reads a second time if the file changed meanwhile."""
    for _ in range(2):
        before = path.stat()
        selection = _select_once(path, before.st_size, first, limit)
        after = path.stat()
        if (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino):
            return selection
    if selection is not None:
        selection.notes += ("The file is being written to: this is how it was a moment ago.",)
    return selection


def _select_once(path: Path, size: int, first: int, limit: int) -> Selection | None:
    with open(path, "rb") as file:
        if size <= WHOLE_BYTES:
            data = file.read(WHOLE_BYTES * 2)
            encoding = detect_encoding(data)
            if encoding is None:
                return None
            text = encoding.decode(data)
            if path.suffix == ".ipynb" and (rendered := notebook_text(text)) is not None:
                text = rendered
            selection = collect_lines(iter([text]), first, limit)
            selection.sha256 = hashlib.sha256(data).hexdigest()
            is_crlf = "\r\n" in text
        else:
            sample = file.read(SAMPLE_BYTES)
            encoding = detect_encoding(sample, is_sample=True)
            if encoding is None:
                return None
            file.seek(0)
            digest = hashlib.sha256()
            errors = "surrogateescape" if encoding.codec == "utf-8" else "replace"
            decoder = codecs.getincrementaldecoder(encoding.codec)(errors)
            file.read(len(encoding.bom))
            digest.update(encoding.bom)

            def chunks() -> Iterator[str]:
                while data := file.read(CHUNK_BYTES):
                    digest.update(data)
                    yield decoder.decode(data)
                yield decoder.decode(b"", True)

            selection = collect_lines(chunks(), first, limit, stop_early=size > HASHED_BYTES)
            selection.sha256 = digest.hexdigest() if size <= HASHED_BYTES else ""
            is_crlf = b"\r\n" in sample
    notes = [encoding.note[:1].upper() + encoding.note[1:] + "."] if encoding.note else []
    if is_crlf:
        notes.append("Line ends are CRLF; Edit keeps them.")
    selection.notes = tuple(notes)
    return selection


def collect_lines(chunks: Iterator[str], first: int, limit: int, *, stop_early: bool = False) -> Selection:
    """`limit` lines from line `first` on, out of a text that comes in pieces; memory does not grow with the text."""
    selection = Selection(first)
    number, start, length = 1, "", 0

    def end_line() -> None:
        if first <= number < first + limit:
            line = start[:-1] if length <= LINE_CHARS + 1 and start.endswith("\r") else start
            selection.lines.append(visible(line[:LINE_CHARS]))
            if length > LINE_CHARS + 1 or len(line) > LINE_CHARS:
                selection.cut_lines.append((number, length))

    for chunk in chunks:
        pieces = chunk.split("\n")
        for position, piece in enumerate(pieces):
            if position:
                end_line()
                number, start, length = number + 1, "", 0
            start += piece[: LINE_CHARS + 1 - len(start)]
            length += len(piece)
        if stop_early and number >= first + limit:
            selection.total_lines = None
            return selection
    if length:
        end_line()
        number += 1
    selection.total_lines = number - 1
    return selection


def _is_known_already(path: Path, selection: Selection, line_range: tuple[int, ...], context: ToolContext) -> bool:
    known = context.files.known_file(str(path))
    return (
        known is not None
        and known.is_visible
        and known.seen.how in ("read", "restore")
        and known.seen.sha256 == selection.sha256
        and known.seen.line_range == line_range
    )


def _seen(path: Path, selection: Selection, line_range: tuple[int, ...], context: ToolContext) -> tuple[FileSeen, ...]:
    if not selection.sha256:
        return ()
    known = context.files.known_file(str(path))
    is_same = known is not None and known.is_visible and known.seen.sha256 == selection.sha256
    if line_range and is_same and known is not None and not known.seen.is_partial:
        # The whole of it stands in the context already; this part adds nothing to what is known.
        return ()
    return (
        FileSeen(
            str(path),
            selection.sha256,
            context.tool_use_id,
            "read",
            is_partial=bool(line_range),
            line_range=line_range,
        ),
    )
