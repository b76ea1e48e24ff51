"""Folding events: whatever a server sends, the outcome is a response or a typed failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.wire.failures import ApiFailure, BrokenStreamFailure, retry_after_s
from pyagent.agent.wire.stream import Accumulator, Response
from pyagent.messages import JsonObject

START: JsonObject = {
    "type": "message_start",
    "message": {"id": "m", "model": "x", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}},
}
STOP: JsonObject = {"type": "message_stop"}


def end(reason: str | None = "end_turn", **more: Any) -> JsonObject:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}, **more}


def block(index: int, start: JsonObject, *deltas: JsonObject, is_closed: bool = True) -> list[JsonObject]:
    events: list[JsonObject] = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}] if is_closed else events


def fold(*events: JsonObject) -> Response:
    building = Accumulator()
    for event in events:
        building.add(event)
    return building.finish()


def use(*pieces: str, is_closed: bool = True) -> list[JsonObject]:
    start = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(0, start, *deltas, is_closed=is_closed)


def test_empty_input_is_an_empty_object_and_pieces_are_joined() -> None:
    assert fold(START, *use(""), end("tool_use"), STOP).content[0]["input"] == {}
    assert fold(START, *use('{"a"', ": [1]}"), end("tool_use"), STOP).content[0]["input"] == {"a": [1]}


def test_a_call_that_was_never_closed_is_broken_though_its_json_is_whole() -> None:
    response = fold(START, *use('{"a": 1}', is_closed=False), end("tool_use"), STOP)
    assert response.broken_tool_inputs == {"t": '{"a": 1}'}


def test_signatures_citations_and_summaries_arrive_in_their_blocks() -> None:
    response = fold(
        START,
        *block(
            0,
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "a", "estimated_tokens": 3},
            {"type": "signature_delta", "signature": "sig"},
        ),
        *block(1, {"type": "text", "text": "", "citations": None}, {"type": "citations_delta", "citation": {"n": 1}}),
        *block(
            2,
            {"type": "compaction", "content": None, "signature": "s"},
            {"type": "compaction_delta", "content": "all of it", "encrypted_content": "e"},
        ),
        end(),
        STOP,
    )
    assert response.content[0] == {"type": "thinking", "thinking": "a", "signature": "sig"}
    assert response.content[1]["citations"] == [{"n": 1}]
    assert response.content[2] == {
        "type": "compaction",
        "content": "all of it",
        "signature": "s",
        "encrypted_content": "e",
    }


def test_what_a_server_did_to_the_request_is_kept() -> None:
    start = {**START, "message": {**START["message"], "input_transformations": [{"type": "thinking_dropped"}]}}
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 7}]}
    response = fold(start, *block(0, {"type": "text", "text": "x"}), end(context_management=edits), STOP)
    assert response.input_transformations == ({"type": "thinking_dropped"},)
    assert response.applied_edits[0]["cleared_input_tokens"] == 7
    assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 9)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [STOP],
        [START, STOP],
        [START, end(None), STOP],
        [START, *block(0, {"type": "text", "text": "x"}), end()],
        [START, {"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta", "text": "x"}}],
        [START, *block(0, {"type": "text"}), *block(0, {"type": "text"})],
        [{"type": "content_block_start"}],
        [{"type": "message_start", "message": None}],
    ],
)
def test_an_incomplete_or_senseless_stream_is_a_broken_one(events: list[JsonObject]) -> None:
    with pytest.raises(BrokenStreamFailure) as caught:
        fold(*events)
    assert caught.value.is_retryable


def test_a_broken_stream_tells_what_it_had_used() -> None:
    with pytest.raises(BrokenStreamFailure) as caught:
        fold(START, *block(0, {"type": "text", "text": "x"}))
    assert (caught.value.model, caught.value.usage.input_tokens) == ("x", 5)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_types = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "ping",
        "new",
    ]
)
_events = st.fixed_dictionaries(
    {"type": _types},
    optional={
        "index": st.integers(0, 2),
        "message": st.just(START["message"]) | _json,
        "content_block": st.sampled_from([{"type": "text", "text": ""}, {"type": "tool_use", "id": 3}, {}]) | _json,
        "delta": st.sampled_from(
            [
                {"type": "text_delta", "text": "x"},
                {"type": "input_json_delta", "partial_json": "{"},
                {"type": "text_delta"},
            ]
        )
        | _json,
        "usage": _json,
        "error": _json,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_events, max_size=12))
def test_no_stream_of_events_causes_anything_but_a_response_or_a_failure(events: list[JsonObject]) -> None:
    try:
        response = fold(*events)
    except ApiFailure:
        return
    json.dumps(response.content)
    assert response.stop_reason


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT", "date": "Mon, 30 Nov 2026 12:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read_in_all_its_spellings(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
