"""Opening a session file from its newest saved state, so that its length does not matter; older history on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyagent.agent.session_store import RecordReader, first_record, read_session
from pyagent.errors import SessionError
from pyagent.log import Record, Revoke, SetHead, StateSaved
from pyagent.saved_state import restored_state
from pyagent.state import ConversationState

WHOLE_FILE_BYTES = 1_000_000
"""Files up to this size are read whole: it takes no longer than looking for where to begin."""

CHUNK_BYTES = 1_000_000
"""How much is read at once, going backwards."""

_MARK = b'"type":"state_saved"'
"""Cannot stand inside a JSON string, where quotes are escaped; that it is the line's own type is checked."""


@dataclass(slots=True)
class OpenedSession:
    """A session ready to go on. `offsets` are the byte offsets of its records, by sequence number."""

    state: ConversationState
    problems: tuple[str, ...] = ()
    offsets: dict[int, int] = field(default_factory=dict)
    begin_offset: int = 0
    """Where the part of the file begins that was read in one piece; 0 for the whole file."""


def open_session(path: Path, *, whole_file_bytes: int = WHOLE_FILE_BYTES) -> OpenedSession:
    """The session's state, as if all of the file had been read.

    Raises:
        SessionError: the file cannot be read, or is no session.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > whole_file_bytes and first_record(file) is not None:
                opened = _from_saved_state(file.fileno(), size)
                if opened is not None:
                    return opened
    except OSError as error:
        raise SessionError(f"The session cannot be read: {path}: {error.strerror}.") from error
    loaded = read_session(path)
    return OpenedSession(ConversationState(loaded.records), loaded.problems, dict(loaded.offsets))


def _from_saved_state(fd: int, size: int) -> OpenedSession | None:
    """None if there is no usable saved state."""
    oldest_target = size
    tail_reader: RecordReader | None = None
    end = size
    for begin in _marked_lines(fd, size):
        piece = RecordReader(begin)
        piece.read(os.pread(fd, end - begin, begin), is_end=end == size)
        end = begin
        tail_reader = piece if tail_reader is None else piece.followed_by(tail_reader)
        if not piece.records or not isinstance(piece.records[0].payload, StateSaved):
            continue
        for record in piece.records:
            if isinstance(record.payload, SetHead | Revoke):
                oldest_target = min(oldest_target, record.payload.target_seq)
        saved = piece.records[0]
        if oldest_target < saved.seq:
            continue
        opened = _restored(fd, tail_reader, saved.payload, begin)
        if opened is not None:
            return opened
    return None


def _restored(fd: int, tail: RecordReader, saved: object, begin: int) -> OpenedSession | None:
    assert isinstance(saved, StateSaved)
    offsets: dict[int, int] = {}

    def record_at(seq: int, offset: int) -> Record:
        record = _record_at(fd, offset)
        if record is None or record.seq != seq:
            raise ValueError(f"no record {seq} at byte {offset}")
        offsets[seq] = offset
        return record

    try:
        state = restored_state(saved, record_at)
    except ValueError:
        return None
    for record in tail.records:
        state.apply(record)
    return OpenedSession(state, tail.problems, offsets | tail.offsets, begin)


def _record_at(fd: int, offset: int) -> Record | None:
    """The record whose line begins at this byte."""
    data = b""
    while b"\n" not in data:
        more = os.pread(fd, CHUNK_BYTES if data else 16_384, offset + len(data))
        if not more:
            return None
        data += more
    reader = RecordReader(offset)
    reader.read(data[: data.index(b"\n") + 1], is_end=False)
    return reader.records[0] if reader.records else None


def _marked_lines(fd: int, size: int) -> Iterator[int]:
    """Where the lines begin that hold the mark of a saved state, last line first."""
    end = size
    later = b""
    while end > 0:
        begin = max(0, end - CHUNK_BYTES)
        data = os.pread(fd, end - begin, begin) + later[: len(_MARK)]
        at = data.rfind(_MARK)
        while at != -1:
            line_begin = _line_begin(fd, begin + at)
            yield line_begin
            at = data.rfind(_MARK, 0, max(0, line_begin - begin)) if line_begin > begin else -1
        later, end = data, begin


def _line_begin(fd: int, offset: int) -> int:
    """Where the line that holds this byte begins."""
    while offset > 0:
        begin = max(0, offset - CHUNK_BYTES)
        at = os.pread(fd, offset - begin, begin).rfind(b"\n")
        if at != -1:
            return begin + at + 1
        offset = begin
    return 0


def older_records(
    path: Path, before_offset: int, *, at_least_bytes: int = CHUNK_BYTES
) -> tuple[tuple[Record, ...], int]:
    """The records that stand before a byte offset, about `at_least_bytes` of them, and where they begin (0: no more).

    Raises:
        SessionError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            begin = _line_begin(file.fileno(), max(0, before_offset - at_least_bytes))
            reader = RecordReader(begin)
            reader.read(os.pread(file.fileno(), before_offset - begin, begin), is_end=False)
    except OSError as error:
        raise SessionError(f"The session cannot be read: {path}: {error.strerror}.") from error
    return tuple(reader.records), begin
