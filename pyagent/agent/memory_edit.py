"""Adding a line to a memory file, for the `#` of the input line.

Memory is the person's own text, so a project's line goes where the project keeps it: the file that is loaded there
already, else a new CLAUDE.md at the project's root. Another program's folder in the home is read and never written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from pyagent.errors import UsageError

Scope: TypeAlias = Literal["project", "user", "local"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

MAX_LINE_CHARS = 10_000
"""A longer text is a document, and would fill the context of every session."""


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    path: Path
    is_new: bool


def memory_target(scope: Scope, cwd: Path, home: Path) -> MemoryTarget:
    """The file that a line of this scope goes to; `home` is pyagent's own folder."""
    match scope:
        case "project":
            root = _project_root(cwd)
            candidates = [
                place / name
                for place in dict.fromkeys((cwd, root))
                for name in ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md"), "AGENTS.md")
            ]
            new = root / "CLAUDE.md"
        case "user":
            candidates = [home / "CLAUDE.md", home / "AGENTS.md"]
            new = candidates[0]
        case "local":
            candidates = []
            new = cwd / "CLAUDE.local.md"
    found = next((path for path in candidates if os.path.lexists(path)), None)
    return MemoryTarget(found or new, found is None and not os.path.lexists(new))


def _project_root(cwd: Path) -> Path:
    return next((folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git")), cwd)


def remember(argument: str, cwd: Path, home: Path, environ: Mapping[str, str]) -> str:
    """Add a line; `argument` is the scope and the words. Returns what to tell the person.

    Raises:
        UsageError: there is nothing to write, or the file cannot be written.
    """
    scope, _, text = argument.strip().partition(" ")
    words = " ".join(text.split())
    if scope not in SCOPES or not words:
        raise UsageError("There is nothing to remember.", hint="Type # and the words.")
    if len(words) > MAX_LINE_CHARS:
        raise UsageError(f"A memory of {len(words):,} characters is too long.", hint="Name a file instead: # see @path")
    target = memory_target(scope, cwd, home)
    try:
        _append(target.path, f"- {words}")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UsageError(f"{target.path} cannot be written: {reason}.", hint="Choose another place.") from error
    user_home = environ.get("HOME") or os.path.expanduser("~")
    path = str(target.path)
    shown = "~" + path.removeprefix(user_home) if path.startswith(user_home + os.sep) else path
    return f"{'Began' if target.is_new else 'Added to'} {shown}; the model is told with your next prompt."


def _append(path: Path, line: str) -> None:
    """Add a line at the file's end, behind a line end of the kind it uses."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        file.seek(0)
        before = file.read()
        if b"\0" in before:
            raise ValueError("it is not UTF-8 text")
        newline = "\r\n" if b"\r\n" in before else "\n"
        gap = newline if before and not before.endswith(b"\n") else ""
        file.write(f"{gap}{line}{newline}".encode("utf-8", "replace"))
