"""What Edit, Write and NotebookEdit share: is the file the one the model knows, and how a new content gets on disk."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyagent.log import FileSeen
from pyagent.messages import JsonObject, TextBlock
from pyagent.state import KnownFile
from pyagent.tools.atomic import FileChangedError, write_atomically
from pyagent.tools.patch import patch_summary, structured_patch
from pyagent.tools.paths import printable_name, short_path
from pyagent.tools.shell import uninterrupted
from pyagent.tools.text_file import Encoding, detect_encoding, refusal_of_special_file, visible
from pyagent.tools.tool import RefusedError, ToolContext, ToolResult

EDITABLE_BYTES = 64 * 1024 * 1024
"""Larger files are left to Bash: an edit holds a file several times in memory."""
DIALOG_CHARS = 400_000
"""Up to this size the permission dialog gets the whole file before and after; above, only what is replaced."""


@dataclass(frozen=True, slots=True)
class Original:
    """An existing file as it is on disk now."""

    path: Path
    data: bytes
    encoding: Encoding
    text: str
    known: KnownFile
    is_changed: bool
    """Somebody else has changed it since the model last saw it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change worked out in full, not yet written."""

    path: Path
    old_data: bytes | None
    """None for a new file."""
    new_data: bytes
    old_text: str
    new_text: str
    how: Literal["edit", "write"]
    is_partial: bool
    """Whether parts of the new content are unknown to the model."""
    done: str
    """What to tell the model once it is written."""


def check_creatable(path: Path) -> None:
    """Raises RefusedError for a link in a circle: resolved as far as it goes, it is a link still."""
    if os.path.islink(path):
        raise RefusedError(f"{printable_name(path)} is a link that leads back to itself.")


def load_original(path: Path, context: ToolContext) -> Original:
    """The file with what the model knows of it.

    Raises:
        RefusedError: not a text file, too large, or never read.
    """
    name = printable_name(path)
    try:
        status = path.stat()
        if refusal := refusal_of_special_file(path, status):
            raise RefusedError(refusal)
        if status.st_size > EDITABLE_BYTES:
            raise RefusedError(
                f"{name} has {status.st_size:,} bytes; the limit is {EDITABLE_BYTES:,}. Use a program through Bash."
            )
        data = path.read_bytes()
    except OSError as error:
        raise RefusedError(f"{name} cannot be read: {error.strerror}.") from error
    encoding = detect_encoding(data)
    if encoding is None:
        raise RefusedError(f"{name} is a binary file.")
    known = context.files.known_file(str(path))
    if known is None:
        raise RefusedError(f"{name} has not been read yet. Read it first.")
    is_changed = hashlib.sha256(data).hexdigest() != known.seen.sha256
    return Original(path, data, encoding, encoding.decode(data), known, is_changed)


def check_writable(path: Path) -> None:
    """Raises RefusedError if the file is write-protected."""
    if not os.access(path, os.W_OK):
        raise RefusedError(f"{printable_name(path)} is write-protected.")


def encoded(text: str, encoding: Encoding, path: Path) -> bytes:
    """Raises RefusedError if the file's encoding lacks a character."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        char = error.object[error.start]
        raise RefusedError(
            f"{printable_name(path)} is {encoding.codec}, which has no {char!r} (U+{ord(char):04X}). "
            "Use only characters it has, or convert the file first."
        ) from error


def shown_to_user(change: Change, old: str, new: str) -> tuple[str | None, str]:
    """Before and after for the permission dialog."""
    if len(change.old_text) + len(change.new_text) > DIALOG_CHARS:
        return old, new
    return (None if change.old_data is None else visible(change.old_text)), visible(change.new_text)


async def carry_out_plan(plan: Callable[[], Change], context: ToolContext) -> ToolResult:
    """Plan a change and make it, in a thread and to the end even if the turn is cancelled meanwhile."""

    def run() -> ToolResult:
        try:
            change = plan()
        except RefusedError as refusal:
            return ToolResult.error(str(refusal))
        return carry_out(change, context)

    return await uninterrupted(asyncio.to_thread(run))


def carry_out(change: Change, context: ToolContext) -> ToolResult:
    """Write it, and report the difference. Blocks."""
    name = printable_name(change.path)
    try:
        change.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(change.path, change.new_data, expected=change.old_data)
    except FileChangedError:
        return ToolResult.error(
            f"{name} was changed by somebody else in this very moment. Nothing was written; read it again."
        )
    except (FileExistsError, NotADirectoryError):
        return ToolResult.error(f"{name} cannot be made: a part of its path is a file.")
    except OSError as error:
        untouched = "" if change.old_data is None else " Its old content is untouched."
        return ToolResult.error(f"{name} could not be written: {error.strerror}." + untouched)
    hunks = structured_patch(visible(change.old_text), visible(change.new_text))
    seen = FileSeen(
        str(change.path),
        hashlib.sha256(change.new_data).hexdigest(),
        context.tool_use_id,
        change.how,
        is_partial=change.is_partial,
    )
    display: JsonObject = {
        "summary": patch_summary(hunks),
        "patch": hunks,
        "path": short_path(change.path, context.cwd),
        "is_new": change.old_data is None,
    }
    return ToolResult((TextBlock(change.done),), display=display, files_seen=(seen,))
