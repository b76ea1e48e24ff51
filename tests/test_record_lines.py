"""The log: records survive the way to the file and back."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.log import (
    AssistantEntry,
    Boundary,
    ClearResults,
    FileSeen,
    Payload,
    Record,
    Repair,
    Revoke,
    UnknownPayload,
    UserEntry,
)
from pyagent.messages import ImageBlock, TextBlock, ToolResultBlock, UnknownBlock, Usage
from pyagent.record_lines import record_from_json, record_to_line

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

PAYLOADS: list[Payload] = [
    UserEntry((TextBlock("hi"), ImageBlock({"type": "base64", "data": "AA=="}, 10, 20))),
    UserEntry(
        (ToolResultBlock("a", (TextBlock("x"), ImageBlock({"type": "url"}, 3, 4)), is_error=True),),
        origin="tool_results",
    ),
    UserEntry((UnknownBlock({"type": "new_thing", "n": 1}),), origin="attachment", label="memory"),
    AssistantEntry(
        "msg_1",
        "model-x",
        ({"type": "thinking", "thinking": "", "signature": "s"}, {"type": "later", "x": [1]}),
        None,
        Usage.from_wire({"input_tokens": 3, "output_tokens": 2, "new_counter": 1}),
        "digest",
        "profile",
        NOW,
        300,
        0.25,
    ),
    Boundary(("a", "b"), "manual", "full", 1, 2, 3, kept=("b",), receipt={"calls": 1}),
    ClearResults({"a": "b"}),
    Repair("why", answers={"a": "b"}, dropped_results=("u/1",)),
    Revoke(3),
    FileSeen("/p", "sha", "t", "read", line_range=(1, 2)),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.kind)
def test_a_record_read_back_from_its_line_is_the_same(payload: Payload) -> None:
    record = Record(7, "uuid-7", NOW, payload, "tx-1")
    assert record_from_json(json.loads(record_to_line(record))) == record


def test_fields_of_a_later_version_are_kept_and_written_back() -> None:
    line = json.loads(record_to_line(Record(0, "u", NOW, Revoke(3)))) | {"fromTheFuture": {"a": 1}}
    record = record_from_json(line)
    assert record.extra == {"fromTheFuture": {"a": 1}}
    assert json.loads(record_to_line(record)) == line


def test_a_kind_of_a_later_version_is_kept_whole() -> None:
    line = {"seq": 4, "type": "hologram", "uuid": "u", "timestamp": "2026-11-30T12:00:00Z", "beam": 1}
    record = record_from_json(line)
    assert isinstance(record.payload, UnknownPayload)
    assert json.loads(record_to_line(record)) == line


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"seq": 1, "type": "user"},
        {"seq": "1", "type": "revoke", "uuid": "u", "timestamp": "2026-11-30T12:00:00Z"},
        {"seq": 1, "type": "revoke", "uuid": "u", "timestamp": "2026-11-30T12:00:00", "target_seq": 0},
        {"seq": 1, "type": "revoke", "uuid": "u", "timestamp": "2026-11-30T12:00:00Z"},
        {"seq": 1, "type": "user", "uuid": "u", "timestamp": "2026-11-30T12:00:00Z", "content": "text"},
        {"seq": 1, "type": "user", "uuid": "u", "timestamp": "yesterday", "content": []},
    ],
)
def test_a_line_that_is_no_record_is_a_value_error_and_nothing_else(line: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        record_from_json(line)


@given(st.text(st.characters(codec=None, categories=None)))
def test_any_text_makes_one_ascii_line_and_comes_back_but_for_lone_surrogates(text: str) -> None:
    line = record_to_line(Record(0, "u", NOW, UserEntry((TextBlock(text),))))
    assert line.isascii()
    assert line.count(b"\n") == 1
    payload = record_from_json(json.loads(line)).payload
    assert isinstance(payload, UserEntry)
    assert len(payload.text) <= len(text)
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert payload.text == text
    payload.text.encode("utf-8")


def test_usage_reads_null_and_missing_counters_as_zero_and_keeps_what_it_does_not_know() -> None:
    usage = Usage.from_wire({"input_tokens": None, "output_tokens": 5, "cache_creation": None, "odd": 1})
    assert (usage.input_tokens, usage.output_tokens, usage.context_tokens, usage.raw["odd"]) == (0, 5, 5, 1)


def test_context_size_of_several_passes_is_the_last_message_pass() -> None:
    usage = Usage.from_wire(
        {
            "input_tokens": 900,
            "output_tokens": 90,
            "iterations": [
                {"type": "message", "input_tokens": 400, "output_tokens": 40},
                {"type": "message", "input_tokens": 500, "output_tokens": 50},
                {"type": "compaction", "input_tokens": 5000, "output_tokens": 100},
            ],
        }
    )
    assert usage.context_tokens == 550
