"""What differs from git's HEAD: committed or not, staged or not, and new files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyagent.agent.user_git import GitMissingError, GitSilentError, UserGit
from pyagent.pages import DiffFile, FileKind

MAX_NEW_FILE_BYTES = 200_000
"""Of a file that git does not know yet; larger ones are named only."""
MAX_NEW_FILES = 200

_KINDS: Mapping[str, FileKind] = {"A": "create", "D": "delete"}


def head_diff(cwd: Path, deadline: float) -> tuple[tuple[DiffFile, ...], str]:
    """The files that differ, and why there are none or some are missing. Never raises.

    `deadline` is by `time.monotonic`.
    """
    try:
        git = UserGit(cwd, deadline)
    except GitMissingError as error:
        return (), str(error)
    try:
        root = Path(os.fsdecode(git.run("rev-parse", "--show-toplevel").rstrip(b"\n")))
    except GitSilentError:
        return (), "This folder is in no git repository."
    try:
        return _files(git, root)
    except (GitSilentError, OSError, ValueError) as error:
        return (), f"git did not answer: {str(error)[:200]}"


def _files(git: UserGit, root: Path) -> tuple[tuple[DiffFile, ...], str]:
    plain = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=dirty")
    base = _base(git)
    fields = git.run(*plain, "--name-status", "-z", base).split(b"\0")
    names: list[tuple[str, FileKind]] = [
        (os.fsdecode(path), _KINDS.get(kind[:1].decode(), "change"))
        for kind, path in zip(fields[::2], fields[1::2], strict=False)
    ]
    parts = ("\n" + git.run(*plain, "-p", base).decode("utf-8", "replace")).split("\ndiff --git ")[1:]
    changed = [DiffFile(path, kind, f"diff --git {part}") for (path, kind), part in zip(names, parts, strict=False)]
    new = [
        os.fsdecode(p)
        for p in git.run("-C", str(root), "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
        if p
    ]
    files = (*changed, *(DiffFile(path, "create", _as_new(root / path)) for path in new[:MAX_NEW_FILES]))
    left = len(new) - MAX_NEW_FILES
    return tuple(
        sorted(files, key=lambda file: file.path)
    ), f"{left:,} more new files are not listed." if left > 0 else ""


def _base(git: UserGit) -> str:
    """HEAD, or the empty tree where nothing was committed yet."""
    try:
        return git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
    except GitSilentError:
        return git.run("hash-object", "-t", "tree", os.devnull).decode().strip()


def _as_new(path: Path) -> str:
    """The unified diff of a whole new file; empty where it cannot be shown."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_NEW_FILE_BYTES:
            return ""
        data = path.read_bytes()
    except OSError:
        return ""
    if b"\0" in data or not data:
        return ""
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    return f"--- /dev/null\n+++ b/{path.name}\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
