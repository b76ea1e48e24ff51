"""The one place where a conversation's records come into being: numbered, stored, folded and told of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from pyagent.agent.session_store import KnowsOffsets, RecordSink
from pyagent.events import EventSink, RecordCommitted
from pyagent.log import Payload, Record, StateSaved
from pyagent.saved_state import leave_to_file, saved_state
from pyagent.state import ConversationState

SAVE_EVERY_BYTES = 4_000_000
"""A reader that begins at a saved state reads at most about this much, which takes some 100 ms."""


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The current time, timezone-aware."""
        ...


def now() -> datetime:
    """The clock of a real session."""
    return datetime.now(UTC)


def new_uuid() -> str:
    return str(uuid4())


class Journal:
    """Writes a conversation's log. Each record is in the file before it is in the state, and in both before anyone
    hears of it."""

    def __init__(
        self,
        state: ConversationState,
        *,
        sink: RecordSink,
        emit: EventSink,
        clock: Clock,
        new_uuid: Callable[[], str],
    ) -> None:
        self.state = state
        self.clock = clock
        self.new_uuid = new_uuid
        self._sink = sink
        self._emit = emit
        self._saved_at = max((self._place_of(r) for r in state.records if isinstance(r.payload, StateSaved)), default=0)

    def commit(self, payload: Payload, *, uuid: str = "", tx: str = "") -> Record:
        """Append one record and return it."""
        record = Record(self.state.next_seq, uuid or self.new_uuid(), self.clock(), payload, tx)
        self._sink.append(record)
        self.state.apply(record)
        self._emit(RecordCommitted(record))
        return record

    def commit_all(self, payloads: Iterable[tuple[str, Payload, str]]) -> None:
        """Append several records, each given as (uuid, payload, transaction id)."""
        for uuid, payload, tx in payloads:
            self.commit(payload, uuid=uuid, tx=tx)

    def _place_of(self, record: Record) -> int:
        return (self._sink.offset_of(record.seq) or 0) if isinstance(self._sink, KnowsOffsets) else 0

    def save_state_if_due(self) -> None:
        """Write the state down if much was written since it last was."""
        if isinstance(self._sink, KnowsOffsets) and self.state.records:
            at = self._sink.offset_of(self.state.records[-1].seq)
            if at is not None and at - self._saved_at > SAVE_EVERY_BYTES:
                self.save_state()

    def save_state(self) -> None:
        """Write down what the log folds to, so that a later reader can begin here, and let go of what came before.

        So a session in its hundredth hour holds no more than one that was just resumed.
        """
        if isinstance(self._sink, KnowsOffsets):
            saved = saved_state(self.state, self._sink.offset_of)
            if saved is not None:
                record = self.commit(saved)
                self._saved_at = self._sink.offset_of(record.seq) or 0
                if self._saved_at:
                    leave_to_file(self.state, record)

    def close(self) -> None:
        self._sink.close()
