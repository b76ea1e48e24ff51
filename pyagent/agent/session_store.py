"""Session files: one JSON Lines file a session, appended record by record, readable after any crash.

Layout: `<home>/projects/<slug of the folder>/<session id>.jsonl`, with `<session id>/tool-results/` beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from pyagent.errors import SessionError, SessionLockedError
from pyagent.log import Record, SessionStarted
from pyagent.messages import JsonObject, Usage
from pyagent.record_lines import SCHEMA_VERSION, record_from_json, record_to_line

SLUG_MAX_CHARS = 200
"""A folder name may have 255 bytes; the rest is left to the hash that keeps long paths apart."""

HEAD_BYTES, TAIL_BYTES = 64 * 1024, 64 * 1024
"""What a listing reads of each file: the first prompt stands near the start, the last title near the end."""


def pyagent_home(environ: Mapping[str, str]) -> Path:
    """`$PYAGENT_HOME`, else `~/.pyagent`."""
    named = environ.get("PYAGENT_HOME", "").strip()
    return Path(named).expanduser() if named else Path(environ.get("HOME") or Path.home()) / ".pyagent"


def project_slug(cwd: Path) -> str:
    """The folder name of a project: every character but letters and digits becomes `-`; long ones end in a hash."""
    text = os.fspath(cwd)
    slug = re.sub(r"[^A-Za-z0-9]", "-", text)
    if len(slug) <= SLUG_MAX_CHARS:
        return slug
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{slug[:SLUG_MAX_CHARS]}-{digest}"


def project_dir(home: Path, cwd: Path) -> Path:
    return home / "projects" / project_slug(cwd)


class RecordSink(Protocol):
    """Where a conversation's records go, in order, each at once."""

    def append(self, record: Record) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class KnowsOffsets(Protocol):
    """A sink that can say where in its file a record stands."""

    def offset_of(self, seq: int) -> int | None: ...


class DiscardingSink:
    """For conversations that are not kept (`--no-session-persistence`)."""

    def append(self, record: Record) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Nothing is open."""


class SessionDisk(Protocol):
    """How a session file's bytes get to the disk: the system's own calls, or a test's failing ones."""

    def write(self, fd: int, data: bytes | bytearray) -> int:
        """How many bytes were written. Raises OSError."""
        ...

    def truncate(self, fd: int, size_bytes: int) -> None:
        """Raises OSError."""
        ...


class SystemDisk:
    """The system's own calls."""

    def write(self, fd: int, data: bytes | bytearray) -> int:
        return os.write(fd, data)

    def truncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)


class SessionFile:
    """The one writer of a session file.

    A record that cannot be written (disk full, read-only) is kept in memory and tried again with the next one;
    `on_problem` hears of it once, and again when writing works anew. What the file already holds is never cut.

    Raises:
        SessionLockedError: another process writes this session.
        SessionError: the file cannot be opened for writing.
    """

    def __init__(self, path: Path, *, on_problem: Callable[[str], None], disk: SessionDisk | None = None) -> None:
        self.path = path
        self._disk = disk or SystemDisk()
        self._on_problem = on_problem
        self._unwritten = bytearray()
        self._is_failing = False
        self._offsets: dict[int, int] = {}
        self._fd = _open_locked(path)
        self._end_torn_line()

    def know_offsets(self, offsets: Mapping[int, int]) -> None:
        """Where earlier records stand, as a reader found them."""
        self._offsets |= offsets

    def offset_of(self, seq: int) -> int | None:
        """Where a record's line begins, in bytes; None if that is not known or it could not be written."""
        return None if self._unwritten else self._offsets.get(seq)

    def append(self, record: Record) -> None:
        self._offsets[record.seq] = os.fstat(self._fd).st_size + len(self._unwritten)
        self._unwritten += record_to_line(record)
        size = os.fstat(self._fd).st_size
        try:
            while self._unwritten:
                written = self._disk.write(self._fd, self._unwritten)
                del self._unwritten[:written]
        except OSError as error:
            self._keep_whole_records(size)
            if not self._is_failing:
                self._is_failing = True
                self._on_problem(
                    f"The session cannot be saved ({error.strerror}): {self.path}. "
                    "The conversation goes on; what is said now is lost if pyagent ends before the disk is free."
                )
            return
        if self._is_failing:
            self._is_failing = False
            self._on_problem("The session is saved again; nothing is missing from it.")

    def close(self) -> None:
        if self._fd >= 0:
            _unlock_and_close(self._fd)
            self._fd = -1

    def _keep_whole_records(self, size: int) -> None:
        """After a short write: take the torn piece off the file's end again, so that the retry writes whole lines."""
        written = os.fstat(self._fd).st_size - size
        if written <= 0:
            return
        with open(self.path, "rb") as reader:
            reader.seek(size)
            torn = reader.read(written)
        whole_bytes = torn.rfind(b"\n") + 1
        try:
            self._disk.truncate(self._fd, size + whole_bytes)
        except OSError:
            return
        self._unwritten[:0] = torn[whole_bytes:]

    def _end_torn_line(self) -> None:
        """A line broken off by a crash is ended, so that the next record starts on a line of its own."""
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")


def _open_locked(path: Path) -> int:
    """The locked file, which still stands under its name: it may be moved away between being opened and locked."""
    while True:
        fd = _open_and_lock(path)
        try:
            is_there = os.path.samestat(os.stat(path), os.fstat(fd))
        except OSError:
            is_there = False
        if is_there:
            return fd
        _unlock_and_close(fd)


def _unlock_and_close(fd: int) -> None:
    # Closing alone leaves the lock to a child process that was forked meanwhile, until it runs its program: whoever
    # opened the session again at that moment would be told that it is open elsewhere.
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _open_and_lock(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SessionError(
            f"The session file cannot be opened: {path}: {error.strerror}.",
            hint="Set PYAGENT_HOME to a folder you can write to, or start with --no-session-persistence.",
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise SessionLockedError(
            f"This session is open in another pyagent: {path.stem}.",
            hint="Close it there, or start with --fork-session to go on in a copy.",
        ) from error
    if os.fstat(fd).st_mode & 0o077:
        os.fchmod(fd, 0o600)
    return fd


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """What a session file holds. `problems` says in sentences what could not be read; the rest is there."""

    records: tuple[Record, ...]
    problems: tuple[str, ...]
    offsets: Mapping[int, int] = field(default_factory=dict)
    """Where each record's line begins, in bytes, by sequence number."""


class RecordReader:
    """Turns lines into records and remembers what was wrong. Lines are split at newline bytes only."""

    def __init__(self, offset: int = 0) -> None:
        """`offset` is where the first line begins in its file, in bytes."""
        self.records: list[Record] = []
        self.offsets: dict[int, int] = {}
        self._offset = offset
        self._number = 0
        self._faults: dict[str, list[int]] = {}
        self._seen: set[str] = set()

    def read(self, data: bytes, *, is_end: bool) -> None:
        """Take in whole lines. `is_end`: these are the file's last, of which the very last may be torn."""
        for line in data.split(b"\n"):
            self.take(line, is_torn=False)
        if is_end and data and not data.endswith(b"\n"):
            self._end_torn()

    def take(self, line: bytes, *, is_torn: bool) -> None:
        """Take in the next line, without its newline."""
        self._number += 1
        begin, self._offset = self._offset, self._offset + len(line) + 1
        if not line.strip():
            return
        for record in _records_of(line):
            if record is None:
                self._fault("broken off" if is_torn else "unreadable")
            elif record.uuid in self._seen:
                continue
            elif self.records and record.seq <= self.records[-1].seq:
                self._fault("out of order")
            else:
                self._seen.add(record.uuid)
                self.records.append(record)
                self.offsets[record.seq] = begin

    def followed_by(self, later: RecordReader) -> RecordReader:
        """This piece of a file with the next one behind it."""
        last_seq = self.records[-1].seq if self.records else -1
        for record in later.records:
            if record.uuid not in self._seen and record.seq > last_seq:
                self._seen.add(record.uuid)
                self.records.append(record)
                self.offsets[record.seq] = later.offsets[record.seq]
        for what, numbers in later._faults.items():
            self._faults.setdefault(what, []).extend(numbers)
        return self

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(_fault_text(what, numbers) for what, numbers in self._faults.items())

    def _fault(self, what: str) -> None:
        self._faults.setdefault(what, []).append(self._number)

    def _end_torn(self) -> None:
        """The last line was counted as unreadable like any other; it was broken off."""
        numbers = self._faults.get("unreadable", [])
        if numbers and numbers[-1] == self._number:
            numbers.pop()
            if not numbers:
                del self._faults["unreadable"]
            self._fault("broken off")


def first_record(file: BinaryIO) -> Record | None:
    """The record on the first line, if that is a session's."""
    line = file.readline(HEAD_BYTES)
    record = next(_records_of(line), None)
    return record if record is not None and isinstance(record.payload, SessionStarted) else None


def read_session(path: Path) -> LoadedSession:
    """All readable records, in order.

    Raises:
        SessionError: the file cannot be read at all, or no line of it is a record.
    """
    reader = RecordReader()
    try:
        with path.open("rb") as file:
            for line in file:
                reader.take(line.removesuffix(b"\n"), is_torn=not line.endswith(b"\n"))
    except OSError as error:
        raise SessionError(f"The session cannot be read: {path}: {error.strerror}.") from error
    if not any(isinstance(record.payload, SessionStarted) for record in reader.records):
        raise SessionError(
            f"Not a pyagent session: {path}.",
            hint="Start a new session, or pick another with pyagent --resume.",
        )
    return LoadedSession(tuple(reader.records), reader.problems, reader.offsets)


def _fault_text(what: str, numbers: list[int]) -> str:
    """One sentence for all lines with the same fault: a damaged file can have thousands."""
    if len(numbers) == 1:
        return f"Line {numbers[0]} of the session file is {what} and is left out."
    return f"{len(numbers)} lines of the session file (first: {numbers[0]}) are {what} and are left out."


def _records_of(line: bytes) -> Iterator[Record | None]:
    """The records of one line; two objects on one line (two writers, an old crash) are two records."""
    text = line.decode("utf-8", "replace").strip()
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
            yield record_from_json(value) if isinstance(value, dict) else None
        except (ValueError, RecursionError):
            yield None
            return
        while position < len(text) and text[position].isspace():
            position += 1


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One row of a session list."""

    session_id: str
    path: Path
    title: str
    first_prompt: str
    modified_at: datetime
    size_bytes: int
    git_branch: str
    cwd: str
    last_tokens: int
    """Context size the newest response reported, 0 if none is near the end of the file."""

    @property
    def name(self) -> str:
        return self.title or self.first_prompt or "(nothing said)"


def list_sessions(folder: Path) -> list[SessionInfo]:
    """The sessions of a project, newest first, by reading the head and tail of each file."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".jsonl")]
    except OSError:
        return []
    infos = [info for name in names if (info := _session_info(folder, name)) is not None]
    return sorted(infos, key=lambda info: info.modified_at, reverse=True)


def _session_info(folder: Path, name: str) -> SessionInfo | None:
    try:
        fd = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        head = os.pread(fd, HEAD_BYTES, 0)
        tail = os.pread(fd, TAIL_BYTES, max(found.st_size - TAIL_BYTES, HEAD_BYTES)) if len(head) == HEAD_BYTES else b""
    except OSError:
        return None
    finally:
        os.close(fd)
    started = _object_at(head, 0)
    cwd = _text(started.get("cwd"))
    if started.get("type") != SessionStarted.kind or not cwd:
        return None
    session_id = name.removesuffix(".jsonl")
    return SessionInfo(
        session_id,
        folder / name,
        _last_title(tail) or _last_title(head),
        _first_prompt(head),
        datetime.fromtimestamp(found.st_mtime, UTC),
        found.st_size,
        _text(started.get("git_branch")),
        cwd,
        _last_tokens(tail) or _last_tokens(head),
    )


# Marks that a record's line holds outside of any string, where quotes are escaped. Parsing nothing but the lines that
# hold one is what lets ten thousand sessions be listed in a second.
_TITLE_MARK, _PROMPT_MARK, _ANSWER_MARK = b'"name":"title"', b'"type":"user"', b'"type":"assistant"'


def _last_title(data: bytes) -> str:
    at = data.rfind(_TITLE_MARK)
    return _text(_object_at(data, at).get("value")) if at != -1 else ""


def _first_prompt(data: bytes) -> str:
    at = data.find(_PROMPT_MARK)
    while at != -1:
        line = _object_at(data, at)
        if line.get("origin", "prompt") == "prompt":
            content = line.get("content")
            texts = (
                [block.get("text") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
            )
            text = _text(line.get("display")) or " ".join(text for text in texts if isinstance(text, str))
            if text:
                return " ".join(text.split())[:200]
        at = data.find(_PROMPT_MARK, at + 1)
    return ""


def _last_tokens(data: bytes) -> int:
    at = data.rfind(_ANSWER_MARK)
    while at != -1:
        usage = _object_at(data, at).get("usage")
        if isinstance(usage, dict) and (tokens := Usage.from_wire(usage)).is_reported:
            return tokens.context_tokens
        at = data.rfind(_ANSWER_MARK, 0, at)
    return 0


def _object_at(data: bytes, position: int) -> JsonObject:
    """The JSON object of the line that holds this byte; empty where it is cut off or no object."""
    begin = data.rfind(b"\n", 0, position) + 1
    end = data.find(b"\n", position)
    try:
        value = json.loads(data[begin : end if end != -1 else len(data)].decode())
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def find_session(folder: Path, wanted: str) -> SessionInfo:
    """The session named by an id, the start of an id, a title, or words of its title or first prompt; newest first.

    Raises:
        SessionError: there is none.
    """
    sessions = list_sessions(folder)
    if not sessions:
        raise SessionError("There is no earlier session in this folder.", hint="Start one with: pyagent")
    needle = wanted.casefold().strip()
    tests: tuple[Callable[[SessionInfo], bool], ...] = (
        lambda info: info.session_id.casefold() == needle,
        lambda info: len(needle) >= 4 and info.session_id.casefold().startswith(needle),
        lambda info: info.title.casefold() == needle,
        lambda info: needle in info.title.casefold(),
        lambda info: needle in info.first_prompt.casefold(),
    )
    for test in tests:
        for info in sessions:
            if test(info):
                return info
    raise SessionError(
        f"No session here matches {wanted!r}.", hint="See them with: pyagent --resume (inside a terminal), or /resume."
    )


def started_record_is_readable(records: tuple[Record, ...]) -> bool:
    """Whether this version knows the file's schema well enough to go on writing it."""
    return all(
        record.payload.schema_version <= SCHEMA_VERSION
        for record in records
        if isinstance(record.payload, SessionStarted)
    )
