"""Where a conversation is kept and what it starts from: a new file, one that is gone on with, or a copy of one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyagent.agent.claude_import import PREFIX, find_claude_session, read_claude_session
from pyagent.agent.deferred_sink import DeferredSink
from pyagent.agent.session_reader import older_records, open_session
from pyagent.agent.session_store import (
    DiscardingSink,
    RecordSink,
    SessionDisk,
    SessionFile,
    find_session,
    list_sessions,
    read_session,
)
from pyagent.errors import SessionError
from pyagent.log import Record
from pyagent.state import ConversationState


class History:
    """What of a session's file was left unread, for those who look further back."""

    def __init__(self, path: Path | None, begin_offset: int = 0) -> None:
        self._path = path
        self.begin_offset = begin_offset
        """Everything from this byte on was read or told of; 0 if there is nothing before it."""

    def older(self) -> tuple[Record, ...]:
        """The next older stretch, read from the disk; empty if there is none."""
        if self._path is None or not self.begin_offset:
            return ()
        records, self.begin_offset = older_records(self._path, self.begin_offset)
        return records

    async def complete(self, state: ConversationState) -> None:
        """Bring all of the file into a state that was opened from its end."""
        if self._path is not None and state.is_partial:
            loaded = await asyncio.to_thread(read_session, self._path)
            on_disk = {record.seq for record in loaded.records}
            # What could not be written yet (a full disk) stands in memory only.
            state.complete((*loaded.records, *(record for record in state.records if record.seq not in on_disk)))


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """See the module's docstring."""

    session_id: str
    state: ConversationState
    sink: RecordSink
    transcript_path: Path | None
    results_dir: Path
    notes_path: Path | None
    """The file of the session's background notes; None if nothing of the session is kept."""
    history: History
    problems: tuple[str, ...] = ()
    forked_from: str = ""
    """Id of the session this one is a copy of."""
    is_read_only: bool = False
    """Somebody only looks at it: what is said of it goes nowhere."""


class SessionOpener:
    """Opens sessions of one project folder."""

    def __init__(
        self,
        folder: Path,
        *,
        is_persistent: bool,
        tell_problem: Callable[[str], None],
        new_id: Callable[[], str],
        claude_folder: Path | None = None,
        disk: SessionDisk | None = None,
    ) -> None:
        """`claude_folder` holds Claude Code's sessions of the same working folder."""
        self._folder = folder
        self._is_persistent = is_persistent
        self._tell_problem = tell_problem
        self._new_id = new_id
        self._claude_folder = claude_folder
        self._disk = disk

    def new(self, session_id: str = "") -> SessionPlace:
        """An empty session, under the id given or a new one.

        Raises:
            SessionError: there is one of that id.
        """
        path = self._free_path(session_id or self._new_id())
        return self._place(path, ConversationState(), self._deferred(path), self._history_of(path))

    def resumed(self, wanted: str) -> SessionPlace:
        """The session that `wanted` names; the newest if it is empty.

        Raises:
            SessionError: there is none, it cannot be read, or another process writes it.
        """
        if wanted.startswith(PREFIX) and self._claude_folder is not None:
            return self.imported(find_claude_session(self._claude_folder, wanted))
        return self._opened(self.path_of(wanted))

    def viewed(self, wanted: str) -> SessionPlace:
        """A session to be looked at: no lock is taken, nothing is written. Another process may write it meanwhile.

        Raises:
            SessionError: there is none, or it cannot be read.
        """
        if wanted.startswith(PREFIX) and self._claude_folder is not None:
            source = find_claude_session(self._claude_folder, wanted)
            read = read_claude_session(source)
            state, problems, session_id = ConversationState(read.records), read.problems, PREFIX + read.session_id
            history = History(None)
        else:
            source = self.path_of(wanted)
            opened = open_session(source)
            state, problems, session_id = opened.state, opened.problems, source.stem
            history = History(source, opened.begin_offset)
        return SessionPlace(
            session_id,
            state,
            DiscardingSink(),
            source if self._is_persistent else None,
            source.with_suffix("") / "tool-results",
            None,
            history,
            problems,
            is_read_only=True,
        )

    def forked(self, wanted: str, session_id: str = "") -> SessionPlace:
        """A copy of a session, under an id of its own. The old one may be open elsewhere.

        Raises:
            SessionError: there is none, or it cannot be read or copied.
        """
        if wanted.startswith(PREFIX):
            return self.resumed(wanted)
        source = self.path_of(wanted)
        if not self._is_persistent:
            opened = open_session(source)
            history = History(source, opened.begin_offset)
            path = self._free_path(session_id or self._new_id())
            return self._place(path, opened.state, DiscardingSink(), history, opened.problems, source.stem)
        path = self._free_path(session_id or self._new_id())
        try:
            _copy_whole_lines(source, path)
            for name in ("tool-results", "notes.md"):
                _copy_beside(source.with_suffix("") / name, path.with_suffix("") / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise SessionError(f"The session cannot be copied: {error.strerror}: {source}.") from error
        return self._opened(path, forked_from=source.stem)

    def imported(self, source: Path) -> SessionPlace:
        """A new session that begins with the conversation of one of Claude Code's.

        Raises:
            SessionError: it cannot be read.
        """
        read = read_claude_session(source)
        path = self._free_path(self._new_id())
        sink = self._deferred(path)
        for record in read.records:
            sink.append(record)
        state = ConversationState(read.records)
        return self._place(path, state, sink, self._history_of(path), read.problems, PREFIX + read.session_id)

    def path_of(self, wanted: str) -> Path:
        """The file of the session that `wanted` names; of the newest if it is empty."""
        if wanted:
            return find_session(self._folder, wanted).path
        sessions = list_sessions(self._folder)
        if not sessions:
            raise SessionError("There is no earlier session in this folder.", hint="Start one with: pyagent")
        return sessions[0].path

    def _opened(self, path: Path, forked_from: str = "") -> SessionPlace:
        if not self._is_persistent:
            opened = open_session(path)
            history = History(path, opened.begin_offset)
            return self._place(path, opened.state, DiscardingSink(), history, opened.problems)
        file = SessionFile(path, on_problem=self._tell_problem, disk=self._disk)
        try:
            opened = open_session(path)
        except SessionError:
            file.close()
            raise
        file.know_offsets(opened.offsets)
        history = History(path, opened.begin_offset)
        return self._place(path, opened.state, file, history, opened.problems, forked_from)

    def _place(
        self,
        path: Path,
        state: ConversationState,
        sink: RecordSink,
        history: History,
        problems: tuple[str, ...] = (),
        forked_from: str = "",
    ) -> SessionPlace:
        beside = path.with_suffix("")
        return SessionPlace(
            path.stem,
            state,
            sink,
            path if self._is_persistent else None,
            beside / "tool-results",
            beside / "notes.md" if self._is_persistent else None,
            history,
            (*problems, *_open_transaction_problems(state)),
            forked_from,
        )

    def _free_path(self, session_id: str) -> Path:
        path = self._folder / f"{session_id}.jsonl"
        if self._is_persistent and path.exists():
            raise SessionError(
                f"There is a session {session_id} already.", hint=f"Go on with it: pyagent --resume {session_id}"
            )
        return path

    def _history_of(self, path: Path) -> History:
        """All of a new file's records were told of; what is let go of later stands in it."""
        return History(path if self._is_persistent else None)

    def _deferred(self, path: Path) -> RecordSink:
        if not self._is_persistent:
            return DiscardingSink()
        return DeferredSink(
            lambda: SessionFile(path, on_problem=self._tell_problem, disk=self._disk), on_problem=self._tell_problem
        )


def _copy_whole_lines(source: Path, target: Path) -> None:
    """Copy a session file up to its last whole line; its writer may be in the middle of the next."""
    with source.open("rb") as reader:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as writer:
            shutil.copyfileobj(reader, writer, 1_000_000)
    with target.open("rb+") as copy:
        size = copy.seek(0, os.SEEK_END)
        while size:
            begin = max(0, size - 1_000_000)
            copy.seek(begin)
            at = copy.read(size - begin).rfind(b"\n")
            size = begin + at + 1 if at != -1 else begin
            if at != -1:
                break
        copy.truncate(size)


def _copy_beside(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _open_transaction_problems(state: ConversationState) -> tuple[str, ...]:
    if not state.open_transactions:
        return ()
    return ("A compaction was broken off when pyagent ended last time; the conversation is as it was before it.",)
