"""Whatever a history looks like, after one repair the strict server's own rules take it."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.wire.marks import place_marks
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.render import RenderedConversation, Renderer
from pyagent.agent.wire.repair import MediaLimits, Repairer, find_repair, media_repair, thinking_repair
from pyagent.agent.wire.validate import Validator
from pyagent.log import AssistantEntry, Fold, Payload, Snip, UserEntry
from pyagent.messages import Block, DocumentBlock, ImageBlock, JsonObject, TextBlock, ToolResultBlock, Usage
from pyagent.view import View, ViewItem
from tests.agent.wire.builders import OPUS, Conversation, prompt, results, text_raw, thinking_raw, use_raw
from tests.fakes.model_table import ModelTable
from tests.fakes.persona import first_party
from tests.fakes.rules import check_request, parse_body

HEADERS = {"anthropic-version": "2023-06-01"}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
UNKNOWN: JsonObject = {"type": "hologram", "glow": 3}


def image(width_px: int = 1, height_px: int = 1) -> ImageBlock:
    return ImageBlock({"type": "base64", "media_type": "image/png", "data": PNG}, width_px, height_px)


def accepted(view: View) -> dict[str, Any]:
    """The request for a view, checked by the strict server's rules. Raises Refusal."""
    rendered = Renderer().render(view, OPUS)
    marks = place_marks(OPUS, rendered)
    assert Validator().fault(rendered, marks) is None
    body = parse_body(RequestPlan(OPUS, rendered, marks).body())
    issued = {json.dumps(UNKNOWN, sort_keys=True)}
    check_request(body, HEADERS, first_party(), ModelTable(), counting=False, issued_unknown=issued)
    return body


def repaired(view: View, limits: MediaLimits | None = None) -> View:
    repair = find_repair(view, limits)
    return view if repair is None else view.with_op(repair)


# ── single faults ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sound_view_needs_no_repair() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(thinking_raw(), use_raw("a"), use_raw("b"), stop_reason="tool_use")
    talk.add(results(("a", "1"), ("b", "")))
    assert find_repair(talk.state.view) is None


def test_a_call_without_a_result_is_answered() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), use_raw("b"), stop_reason="tool_use")
    talk.add(results(("a", "1")), prompt("next"))
    repair = find_repair(talk.state.view, open_text="stopped")
    assert repair is not None
    assert repair.answers == {"b": "stopped"}
    body = accepted(talk.state.view.with_op(repair))
    assert sorted(block["type"] for block in body["messages"][2]["content"]) == ["text", "tool_result", "tool_result"]


def test_the_first_result_of_a_call_wins() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(results(("a", "first")), results(("a", "second")))
    assert accepted(repaired(talk.state.view))["messages"][2]["content"][0]["content"][0]["text"] == "first"


def test_a_result_that_came_late_becomes_the_answer() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(prompt("meanwhile"))
    talk.answer(text_raw("yes"))
    talk.add(results(("a", "late news")))
    body = accepted(repaired(talk.state.view))
    assert body["messages"][2]["content"][0]["content"][0]["text"] == "late news"


def test_a_missing_answer_in_a_response_of_two_parts_keeps_the_other_results() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("x"), use_raw("y"), stop_reason="pause_turn")
    talk.answer(use_raw("z"), stop_reason="tool_use")
    talk.add(results(("y", "of y"), ("z", "of z")))
    texts = json.dumps(accepted(repaired(talk.state.view)))
    assert "of y" in texts
    assert "of z" in texts


def test_a_call_id_used_twice_and_a_nameless_call_leave_with_their_results() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(results(("a", "1")))
    talk.answer(text_raw("again"), use_raw("a"), use_raw("b", name=""), stop_reason="tool_use")
    talk.add(results(("a", "2"), ("b", "3")))
    body = accepted(repaired(talk.state.view))
    assert [block["type"] for message in body["messages"] for block in message["content"]].count("tool_use") == 1


def test_server_tools_lose_halves_of_pairs_but_not_the_call_under_way() -> None:
    use: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_0", "content": []}
    talk = Conversation()
    talk.add(prompt("search"))
    talk.answer(text_raw("a"), result, use, stop_reason="end_turn")
    repair = find_repair(talk.state.view)
    assert repair is not None
    assert repair.dropped_blocks == ("u1/1",)
    talk.add(prompt("so?"))
    talk.answer(text_raw("b"))
    later = find_repair(talk.state.view)
    assert later is not None
    assert later.dropped_blocks == ("u1/1", "u1/2")


def test_a_server_call_under_way_is_given_up_once_the_user_speaks() -> None:
    use: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    talk = Conversation()
    talk.add(prompt("search"))
    talk.answer(text_raw("a"), use, stop_reason="pause_turn")
    assert find_repair(talk.state.view) is None
    talk.add(prompt("never mind"))
    repair = find_repair(talk.state.view)
    assert repair is not None
    assert repair.dropped_blocks == ("u1/1",)


def test_large_images_leave_once_there_are_many_and_their_results_keep_the_text() -> None:
    talk = Conversation()
    talk.add(UserEntry((TextBlock("see"), *(image() for _ in range(20)))))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    shown = ToolResultBlock("a", (TextBlock("screenshot"), image(2_500, 100)))
    talk.add(UserEntry((shown,), origin="tool_results"))
    body = accepted(repaired(talk.state.view, MediaLimits()))
    answer = body["messages"][2]["content"][0]["content"][0]["text"]
    assert answer.startswith("screenshot")
    assert "2000 pixels" in answer


def test_the_oldest_images_leave_when_there_are_too_many() -> None:
    talk = Conversation()
    talk.add(UserEntry((TextBlock("see"), image(), image(), image())))
    repair = find_repair(talk.state.view, MediaLimits(max_count=2))
    assert repair is not None
    assert repair.dropped_blocks == ("u0/1",)


def test_named_images_can_be_taken_out() -> None:
    talk = Conversation()
    talk.add(UserEntry((TextBlock("see"), image(), DocumentBlock({"type": "text", "data": "x"}))))
    repair = media_repair(talk.state.view, [("u0", 1), ("u0", 0), ("gone", 0)], "the server refused it")
    assert repair is not None
    assert repair.dropped_blocks == ("u0/1",)


def test_all_thinking_can_be_dropped_and_stays_dropped() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(thinking_raw(), text_raw("yes"))
    repair = thinking_repair(talk.state.view, "refused")
    assert repair is not None
    view = talk.state.view.with_op(repair)
    assert "thinking" not in [part.kind for part in Renderer().render(view, OPUS).messages[1].parts]
    assert thinking_repair(view, "refused") is None


# ── any history ──────────────────────────────────────────────────────────────────────────────────────────────────

_ids = st.sampled_from(["t1", "t2", "t3", "t4", "functions.Read:0", ""])
_texts = st.sampled_from(["hello", "", "  \n", "\ud83d", "a\u2028b", "\x00"])
_raw_blocks = st.one_of(
    _texts.map(text_raw),
    st.builds(use_raw, _ids, st.sampled_from(["Read", "", "n" * 300, "Bash"])),
    st.just({"type": "tool_use", "id": "t9", "name": "Read", "input": "not an object"}),
    st.just(thinking_raw()),
    st.just({"type": "redacted_thinking", "data": "x"}),
    st.just(UNKNOWN),
    st.just({"type": "image", "source": {}}),
    st.just({"type": "text", "text": "marked", "cache_control": {"type": "ephemeral"}}),
)
_result_parts = st.lists(st.one_of(_texts.map(TextBlock), st.builds(image)), max_size=2).map(tuple)
_user_blocks: st.SearchStrategy[Block] = st.one_of(
    _texts.map(TextBlock),
    st.builds(ToolResultBlock, _ids, _result_parts, st.booleans()),
    st.builds(image, st.integers(1, 3_000), st.just(10)),
)
_user = st.lists(_user_blocks, max_size=4).map(lambda blocks: UserEntry(tuple(blocks)))


@st.composite
def _assistant(draw: st.DrawFn) -> AssistantEntry:
    content = draw(st.lists(_raw_blocks, max_size=4))
    stop = draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn"]))
    return AssistantEntry("m", "claude-opus-5-5", tuple(content), stop, Usage(), "other", "p")


_histories: st.SearchStrategy[list[Payload]] = st.lists(st.one_of(_user, _assistant()), min_size=1, max_size=10)


def _cut(talk: Conversation, start: int, end: int) -> View:
    uuids = [item.uuid for item in talk.state.view.items]
    return talk.state.view.with_op(Snip(tuple(uuids[:start] + uuids[end:])))


def _has_something(view: View) -> bool:
    return bool(Renderer().render(view, OPUS).messages)


@settings(max_examples=200, deadline=None)
@given(_histories, st.integers(0, 10), st.integers(0, 10))
def test_any_cut_of_any_history_is_taken_after_one_repair(history: list[Payload], start: int, end: int) -> None:
    talk = Conversation()
    talk.add(*history)
    view = repaired(_cut(talk, start, max(start, end)), MediaLimits())
    assert find_repair(view, MediaLimits()) is None
    if not _has_something(view) or Renderer().render(view, OPUS).messages[-1].role == "assistant":
        return
    accepted(view)


@settings(max_examples=100, deadline=None)
@given(_histories, st.integers(0, 2**32))
def test_a_repair_is_the_same_after_folds_and_is_made_once(history: list[Payload], seed: int) -> None:
    talk = Conversation()
    talk.add(*history)
    uuids = [item.uuid for item in talk.state.view.items]
    chosen = random.Random(seed)
    start = chosen.randrange(len(uuids))
    folded = tuple(uuids[start : chosen.randrange(start, len(uuids)) + 1])
    talk.add(Fold(folded, "[folded]"))
    repair = find_repair(talk.state.view)
    if repair is not None:
        talk.add(repair)
    assert find_repair(talk.state.view) is None


@settings(max_examples=100, deadline=None)
@given(_histories)
def test_a_view_that_grows_renders_and_validates_like_one_seen_at_once(history: list[Payload]) -> None:
    talk = Conversation()
    validator, renderer = Validator(), Renderer()
    for payload in history:
        talk.add(payload)
        grown = renderer.render(talk.state.view, OPUS)
        fault = validator.fault(grown)
        at_once = Renderer().render(talk.state.view, OPUS)
        assert grown == at_once
        assert fault == Validator().fault(at_once)


@settings(max_examples=150, deadline=None)
@given(_histories, st.booleans())
def test_looking_at_a_growing_view_again_finds_what_a_whole_look_finds(history: list[Payload], mends: bool) -> None:
    talk = Conversation()
    repairer, limits = Repairer(), MediaLimits(max_count=3)
    for payload in history:
        talk.add(payload)
        repair = repairer.find(talk.state.view, limits)
        assert repair == find_repair(talk.state.view, limits)
        if repair is not None and mends:
            talk.add(repair)
            assert repairer.find(talk.state.view, limits) is None


def test_a_sound_conversation_is_not_looked_at_from_the_start_again() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    for number in range(50):
        talk.answer(use_raw(f"t{number}"), stop_reason="tool_use")
        talk.add(results((f"t{number}", "contents")))
    repairer = Repairer()
    assert repairer.find(talk.state.view) is None
    looked_at: list[str] = []

    class Noted(ViewItem):
        def user_blocks(self) -> tuple[Block, ...]:
            looked_at.append(self.uuid)
            return super().user_blocks()

    items = tuple(Noted(item.record, item.overlay) for item in talk.state.view.items)
    repairer = Repairer()
    repairer.find(View(items))
    looked_at.clear()
    answer, result = talk.add(talk.entry([use_raw("last")], "tool_use"), results(("last", "x")))
    repairer.find(View((*items, Noted(answer), Noted(result))))
    assert len(set(looked_at)) <= 4


def test_the_validator_names_what_is_broken() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(results(("b", "1")))
    fault = Validator().fault(Renderer().render(talk.state.view, OPUS))
    assert fault is not None
    assert fault.message == 2
    assert "b" in fault.text
    assert Validator().fault(RenderedConversation((), b"")) is not None
