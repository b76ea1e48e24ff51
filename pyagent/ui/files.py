"""The project's files for `@` completion, listed in a thread: by git where there is a repository, else by a walk."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyagent.ui.path_search import PathSearch

MAX_FILES = 200_000
"""Files offered. Searching this many takes some 20 ms a key, and listing them a second in the background."""

STALE_AFTER_S = 10.0
"""A list older than this is made anew, in the background, when it is asked for."""

WALK_LIMIT_S = 3.0
"""Time a walk may take where there is no git; what was found by then is offered."""

PRUNED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache",
     ".pytest_cache", "target", "dist", "build", ".next", ".cache"}
)  # fmt: skip
"""Folders nobody names by hand."""


class FileIndex:
    """The files below a folder, as paths relative to it with `/`. Asking never waits."""

    def __init__(self, root: Path, on_listed: Callable[[], object] = bool) -> None:
        """`on_listed` is called, in the thread that lists, once a fresh list stands."""
        self._root = root
        self._on_listed = on_listed
        self._search = PathSearch()
        self._listed_at_s = float("-inf")
        self._thread: threading.Thread | None = None

    def paths(self) -> Sequence[str]:
        """What is known now. A stale list is given once more while a fresh one is made."""
        if time.monotonic() - self._listed_at_s > STALE_AFTER_S:
            self.refresh()
        return self._search.paths

    def matching(self, query: str) -> Sequence[str]:
        """The paths worth ranking for what was typed behind an `@`."""
        self.paths()
        return self._search.matching(query)

    def refresh(self) -> None:
        """Begin to list the files, unless that is under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._list, name="files", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait for a listing under way."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _list(self) -> None:
        found = listed_by_git(self._root)
        self._search = PathSearch(found if found is not None else walked(self._root))
        self._listed_at_s = time.monotonic()
        self._on_listed()


def listed_by_git(root: Path) -> list[str] | None:
    """Tracked and untracked files that are not ignored; None where git cannot tell."""
    command = ["git", "--no-optional-locks", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    names = done.stdout.decode("utf-8", "replace").split("\0")[:-1]
    return sorted(dict.fromkeys(names))[:MAX_FILES]


def walked(root: Path) -> list[str]:
    """Files found by walking, near ones first; symbolic links to folders are not followed."""
    found: list[str] = []
    ends_at_s = time.monotonic() + WALK_LIMIT_S
    waiting = [""]
    while waiting and len(found) < MAX_FILES and time.monotonic() < ends_at_s:
        folder = waiting.pop(0)
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = f"{folder}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                found.append(name)
            elif entry.name not in PRUNED_FOLDERS:
                waiting.append(f"{name}/")
    return found[:MAX_FILES]
