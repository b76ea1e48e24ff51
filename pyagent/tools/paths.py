"""Paths as the model writes them: resolved, shown, compared with the allowed folders, and guarded."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pyagent.events import PermissionQuestion
from pyagent.tools.protected import protected_reason
from pyagent.tools.tool import ToolContext

_BYTE_ESCAPE = re.compile(r"\\x([89a-f][0-9a-f])")

NEAR_NAMES_SCANNED = 5_000
"""Entries of a folder looked at for near names: enough for any source folder, and no stall in a huge one."""


def resolve_path(text: str, cwd: Path) -> Path:
    """The absolute path meant by `text`: `~` expanded, `..` and links resolved; the last part need not exist.

    Grep and Glob show bytes of a name that are not UTF-8 as `\\xNN`; such a name is understood when it is given back.
    """
    plain = os.path.join(cwd, os.path.expanduser(text.replace("\0", "\\x00")))
    path = Path(os.path.realpath(plain))
    if _BYTE_ESCAPE.search(text) and not os.path.exists(path):
        raw = os.fsencode(plain)
        unescaped = re.sub(rb"\\x([89a-f][0-9a-f])", lambda match: bytes([int(match[1], 16)]), raw)
        if os.path.lexists(unescaped):
            return Path(os.path.realpath(os.fsdecode(unescaped)))
    return path


def printable_name(path: str | Path) -> str:
    """A path as text that can be sent and shown: bytes that are not UTF-8 and control characters are escaped."""
    text = os.fsencode(str(path)).decode("utf-8", "backslashreplace")
    return "".join(f"\\x{ord(char):02x}" if ord(char) < 32 or ord(char) == 127 else char for char in text)


def short_path(path: str | Path, cwd: Path) -> str:
    """The path relative to `cwd` if it lies below it, else absolute; printable."""
    try:
        relative = Path(path).relative_to(cwd)
    except ValueError:
        return printable_name(path)
    return printable_name(relative)


def exists(path: Path) -> bool:
    """Whether something is there. False also where that cannot be looked up; one system call."""
    return os.path.exists(path)


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)


def is_within(path: Path, folders: Iterable[Path]) -> bool:
    """Whether `path` (resolved) is one of the folders or lies below one."""
    return any(path.is_relative_to(os.path.realpath(folder)) for folder in folders)


def near_names(path: Path, count: int = 3) -> tuple[str, ...]:
    """Names that exist and that the model may have meant instead of a missing `path`; nearest first."""
    parent = path.parent
    while not os.path.isdir(parent) and parent != parent.parent:
        path, parent = parent, parent.parent
    names: list[str] = []
    try:
        with os.scandir(parent) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= NEAR_NAMES_SCANNED:
                    break
    except OSError:
        return ()
    by_lower = {name.lower(): name for name in sorted(names)}
    same_stem = [name for name in sorted(names) if Path(name).stem == path.stem]
    close = [by_lower[name] for name in difflib.get_close_matches(path.name.lower(), by_lower, count, cutoff=0.6)]
    return tuple(printable_name(parent / name) for name in dict.fromkeys([*same_stem, *close]))[:count]


def missing_file_text(path: Path, context: ToolContext) -> str:
    """What to tell the model of a path that does not exist."""
    text = f"{printable_name(path)} does not exist."
    near = near_names(path)
    if near:
        text += f" Did you mean {' or '.join(near)}?"
    return f"{text} The working directory is {printable_name(context.cwd)}."


def read_question(tool_name: str, path: Path, context: ToolContext) -> PermissionQuestion | None:
    """Reading inside the allowed folders, and what pyagent itself put aside, is not asked about."""
    if is_within(path, (*context.allowed_dirs, context.results_dir)):
        return None
    folder = path if os.path.isdir(path) else path.parent
    return PermissionQuestion(
        tool_name=tool_name,
        action="read",
        subject=printable_name(path),
        reason="it lies outside the working directories",
        session_rule=f"Read(/{printable_name(folder)}/**)" if folder != folder.parent else "",
    )


def write_question(
    tool_name: str, path: Path, context: ToolContext, *, old_text: str | None, new_text: str | None
) -> PermissionQuestion:
    """The question before a file is changed; a protected path can be allowed once only.

    In rules an absolute path begins with two slashes; one would mean the project's folder.
    """
    reason = protected_reason(path)
    is_inside = is_within(path, context.allowed_dirs)
    if reason:
        rule = ""
    elif is_inside:
        root = next(folder for folder in context.allowed_dirs if is_within(path, (folder,)))
        rule = f"Edit(/{printable_name(os.path.realpath(root))}/**)"
    else:
        rule = f"Edit(/{printable_name(path)})"
        reason = "it lies outside the working directories"
    return PermissionQuestion(
        tool_name=tool_name,
        action="edit",
        subject=printable_name(path),
        reason=reason or "it changes a file",
        old_text=old_text,
        new_text=new_text,
        session_rule=rule,
    )
