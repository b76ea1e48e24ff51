"""Folders the user said to trust: only there do a project's own permissions and environment count."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyagent.agent.own_files import replace_file
from pyagent.errors import PyagentError

TRUST_FILE = "trust.json"
LOCK_FILE = "trust.lock"
HOW_TO_TRUST = "/permissions trust"
"""The command a person gives to trust the working folder; for one run the flag --trust does."""


def is_trusted(cwd: Path, home: Path) -> bool:
    """Whether the folder, or one it lies in, was trusted. `home` is pyagent's own folder. Never raises.

    Trust in the user's home folder or the root of the file system is for that folder alone: whatever is downloaded
    lands below them.
    """
    trusted = set(_trusted_folders(home))
    folder = _real(cwd)
    if folder in trusted:
        return True
    wide = {os.path.abspath(os.sep), _real(Path(os.path.expanduser("~")))}
    return any(parent in trusted and parent not in wide for parent in map(str, Path(folder).parents))


def trust(cwd: Path, home: Path) -> None:
    """Remember that the folder is trusted.

    Raises:
        PyagentError: it could not be written.
    """
    folder = _real(cwd)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(home / LOCK_FILE):
            folders = _trusted_folders(home)
            if folder not in folders:
                replace_file(home / TRUST_FILE, json.dumps({"folders": sorted([*folders, folder])}, indent=2) + "\n")
    except OSError as error:
        raise PyagentError(
            f"The trust in {folder} could not be saved: {error.strerror or error}.",
            hint=f"It holds for now; check that {home} can be written.",
        ) from error


def _trusted_folders(home: Path) -> list[str]:
    """What is stored; a file that is missing, damaged or not ours trusts nothing."""
    try:
        with (home / TRUST_FILE).open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                return []
            stored = json.load(file)
    except (OSError, ValueError, RecursionError):
        return []
    match stored:
        case {"folders": list(folders)}:
            return [folder for folder in folders if isinstance(folder, str)]
        case _:
            return []


def _real(folder: Path) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return str(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time reads and rewrites the list, so that no answer is lost."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
