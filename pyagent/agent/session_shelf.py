"""Renaming and deleting saved sessions that nobody has open; what is deleted lies in a trash folder for a while.

Layout: `<home>/trash/<slug of the folder>/<when, in ns since 1970>-<session id>/`, with the session's file and what
lay beside it, under their own names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from pyagent.agent.session_reader import open_session
from pyagent.agent.session_store import SessionFile, project_dir, project_slug
from pyagent.errors import SessionError
from pyagent.log import Record, SettingChanged
from pyagent.messages import scrub_surrogates

NS_A_DAY = 86_400 * 10**9


def trash_dir(home: Path, slug: str) -> Path:
    """Where the deleted sessions of a project lie."""
    return home / "trash" / slug


class SessionShelf:
    """The saved sessions of one project folder. Waits for the disk: not for the screen's thread."""

    def __init__(self, home: Path, cwd: Path, *, clock: Callable[[], datetime]) -> None:
        self._folder = project_dir(home, cwd)
        self._trash = trash_dir(home, project_slug(cwd))
        self._clock = clock

    def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Its place in the list, which its age makes, stays.

        Raises:
            SessionError: there is no such session, or it is open elsewhere.
        """
        path, problems = self._path(session_id), list[str]()
        found = path.stat()
        file = SessionFile(path, on_problem=problems.append)
        try:
            opened = open_session(path)
            setting = SettingChanged("title", scrub_surrogates(" ".join(title.split())))
            file.append(Record(opened.state.next_seq, str(uuid4()), self._clock(), setting))
        finally:
            file.close()
        if problems:
            raise SessionError(problems[0])
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def delete(self, session_id: str) -> None:
        """Move a session into the trash.

        Raises:
            SessionError: there is no such session, it is open elsewhere, or it cannot be moved.
        """
        path = self._path(session_id)
        file = SessionFile(path, on_problem=lambda text: None)
        try:
            place = self._trash / f"{int(self._clock().timestamp() * 10**9):020}-{session_id}"
            place.mkdir(mode=0o700, parents=True)
            _move(path, place)
        except OSError as error:
            raise SessionError(f"The session cannot be deleted: {error.strerror}: {path}.") from error
        finally:
            file.close()

    def restore(self) -> str:
        """Bring the session back that was deleted last; its id.

        Raises:
            SessionError: the trash is empty, or the session cannot be moved.
        """
        places = sorted(_names(self._trash))
        if not places:
            raise SessionError("No deleted session is left to bring back.")
        place = self._trash / places[-1]
        session_id = places[-1].partition("-")[2]
        try:
            if (self._folder / f"{session_id}.jsonl").exists():
                raise SessionError(f"There is a session {session_id} again; the deleted one stays in the trash.")
            _move(place / f"{session_id}.jsonl", self._folder)
            place.rmdir()
        except OSError as error:
            raise SessionError(f"The session cannot be brought back: {error.strerror}: {place}.") from error
        return session_id

    def _path(self, session_id: str) -> Path:
        path = self._folder / f"{session_id}.jsonl"
        if not path.is_file():
            raise SessionError(f"There is no session {session_id} any more.")
        return path


def empty_trash(trash: Path, *, days: int, now_s: float) -> list[str]:
    """Delete for good what was put into the trash more than `days` days ago; the sessions' ids."""
    gone = []
    for name in _names(trash):
        when, _, session_id = name.partition("-")
        if when.isdecimal() and now_s * 10**9 - int(when) > days * NS_A_DAY:
            shutil.rmtree(trash / name, ignore_errors=True)
            if not (trash / name).exists():
                gone.append(session_id)
    return gone


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _move(path: Path, folder: Path) -> None:
    """Move a session's file and what lies beside it; the file last when it leaves, so that neither is ever alone."""
    beside = path.with_suffix("")
    with contextlib.suppress(FileNotFoundError):
        beside.rename(folder / beside.name)
    path.rename(folder / path.name)
