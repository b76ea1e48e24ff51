"""Builds records and whole turns of them for front-end tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from pyagent.events import RecordCommitted
from pyagent.log import AssistantEntry, Payload, Record, ToolRan, UserEntry
from pyagent.messages import JsonObject, TextBlock, ToolResultBlock, Usage

STARTED_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Recorder:
    """Numbers records in order, as a log does."""

    def __init__(self) -> None:
        self._seqs = count()

    def record(self, payload: Payload, tx: str = "") -> Record:
        seq = next(self._seqs)
        return Record(seq, f"u{seq}", STARTED_AT + timedelta(seconds=seq), payload, tx)

    def commit(self, payload: Payload, tx: str = "") -> RecordCommitted:
        """The event of a new record."""
        return RecordCommitted(self.record(payload, tx))


def prompt(text: str) -> UserEntry:
    return UserEntry((TextBlock(text),))


def answer(*content: JsonObject, stop_reason: str = "end_turn", cost_usd: float | None = 0.01) -> AssistantEntry:
    usage = Usage.from_wire({"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 50})
    return AssistantEntry("msg_1", "claude-test-5", content, stop_reason, usage, "d", "p", cost_usd=cost_usd)


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def thinking(words: str) -> JsonObject:
    return {"type": "thinking", "thinking": words, "signature": "s"}


def tool_use(use_id: str, name: str, **arguments: Any) -> JsonObject:
    return {"type": "tool_use", "id": use_id, "name": name, "input": arguments}


def tool_result(use_id: str, words: str, *, is_error: bool = False) -> UserEntry:
    return UserEntry((ToolResultBlock(use_id, (TextBlock(words),), is_error),), origin="tool_results")


def tool_ran(use_id: str, summary: str, duration_s: float = 0.0, **display: Any) -> ToolRan:
    return ToolRan(use_id, summary, duration_s, display)


PATCH = [
    {
        "oldStart": 1,
        "oldLines": 3,
        "newStart": 1,
        "newLines": 3,
        "lines": [" import math", "-def area(r): return 3.14 * r", "+def area(r): return math.pi * r ** 2", " "],
    }
]
