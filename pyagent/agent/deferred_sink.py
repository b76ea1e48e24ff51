"""Keeps a new session's records back until there is something worth a file."""

from __future__ import annotations

from collections.abc import Callable

from pyagent.agent.session_store import KnowsOffsets, RecordSink
from pyagent.errors import SessionError
from pyagent.log import PromptQueued, Record, ShellRan, UserEntry


class DeferredSink:
    """Opens the session's file when the first prompt comes, so that looking in and leaving makes no session.

    If the file cannot be opened, the person is told once and the records wait in memory for the next try.
    """

    def __init__(self, open_sink: Callable[[], RecordSink], *, on_problem: Callable[[str], None]) -> None:
        self._open_sink = open_sink
        self._on_problem = on_problem
        self._held: list[Record] = []
        self._sink: RecordSink | None = None
        self._has_prompt = False
        self._was_told = False

    def append(self, record: Record) -> None:
        payload = record.payload
        if isinstance(payload, PromptQueued | ShellRan) or (
            isinstance(payload, UserEntry) and payload.origin == "prompt"
        ):
            self._has_prompt = True
        self._held.append(record)
        if not self._has_prompt or not self._is_open():
            return
        assert self._sink is not None
        for held in self._held:
            self._sink.append(held)
        self._held.clear()

    def offset_of(self, seq: int) -> int | None:
        """Where a record stands in the file; None while there is no file."""
        sink: object = self._sink
        return sink.offset_of(seq) if isinstance(sink, KnowsOffsets) else None

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()

    def _is_open(self) -> bool:
        if self._sink is not None:
            return True
        try:
            self._sink = self._open_sink()
        except SessionError as error:
            if not self._was_told:
                self._was_told = True
                self._on_problem(f"{error.message} The conversation goes on, but it is not saved. {error.hint}")
            return False
        return True
