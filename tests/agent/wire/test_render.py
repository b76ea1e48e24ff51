"""Views become requests: merged, in order, thinking only behind its prefix, and only new items rendered anew."""

from __future__ import annotations

import json
from typing import Any

from pyagent.agent.wire.body import request_body
from pyagent.agent.wire.marks import MAX_MARKS_COUNT, place_marks
from pyagent.agent.wire.normalise import CONTINUE_TEXT, OPENING_TEXT
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import BINDING_BETA, RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.log import ClearResults, Repair, Revoke, Snip, UserEntry
from pyagent.messages import ImageBlock, JsonObject, TextBlock, ToolResultBlock
from tests.agent.wire.builders import OPUS, Conversation, prompt, results, text_raw, thinking_raw, use_raw


def body_of(conversation: Conversation, profile: RequestProfile | None = None) -> dict[str, Any]:
    profile = profile or conversation.profile
    rendered = conversation.renderer.render(conversation.state.view, profile)
    body: dict[str, Any] = json.loads(RequestPlan.of(profile, rendered).body())
    return body


def kinds(body: dict[str, Any]) -> list[list[str]]:
    return [[block["type"] for block in message["content"]] for message in body["messages"]]


def tool_round(conversation: Conversation, number: int = 0) -> None:
    conversation.answer(thinking_raw(), text_raw("Let me look."), use_raw(f"t{number}"), stop_reason="tool_use")
    conversation.add(results((f"t{number}", "contents")))


def test_consecutive_user_items_become_one_message_with_results_first() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), use_raw("b"), stop_reason="tool_use")
    talk.add(results(("a", "1")), UserEntry((TextBlock("note"),), origin="reminder"), results(("b", "2")), prompt("go"))
    body = body_of(talk)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert kinds(body)[2] == ["tool_result", "tool_result", "text", "text"]


def test_thinking_is_sent_back_while_its_prefix_stands() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    tool_round(talk, 0)
    tool_round(talk, 1)
    assert [block for message in kinds(body_of(talk)) for block in message].count("thinking") == 2


def test_thinking_after_a_cleared_result_is_left_out_and_comes_back_with_the_undo() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    for number in range(3):
        tool_round(talk, number)
    before = body_of(talk)
    (cleared,) = talk.add(ClearResults({"t0": "[cleared]"}))
    assert [("thinking" in message) for message in kinds(body_of(talk))[1::2]] == [True, False, False]
    talk.add(Revoke(cleared.seq))
    assert body_of(talk) == before


def test_thinking_is_left_out_under_another_model_and_kept_after_switching_back() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    tool_round(talk)
    other = OPUS.with_changes(model="claude-sonnet-5-5")
    assert "thinking" not in kinds(body_of(talk, other))[1]
    assert "thinking" in kinds(body_of(talk))[1]


def test_thinking_behind_a_dropped_blank_text_of_its_own_message_is_left_out() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(text_raw("\n"), thinking_raw(), text_raw("yes"))
    assert kinds(body_of(talk))[1] == ["text"]


def test_a_response_of_thinking_alone_leaves_no_message_and_its_neighbours_merge() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(thinking_raw())
    talk.add(prompt("again"))
    assert kinds(body_of(talk)) == [["text", "text"]]


def test_a_view_that_begins_and_ends_with_a_response_gets_user_messages_around_it() -> None:
    talk = Conversation()
    (first,) = talk.add(prompt("look"))
    talk.answer(text_raw("done"))
    talk.add(Snip((first.uuid,)))
    texts = [message["content"][0]["text"] for message in body_of(talk)["messages"]]
    assert texts == [OPENING_TEXT, "done", CONTINUE_TEXT]


def test_a_paused_response_goes_back_last_and_unchanged() -> None:
    talk = Conversation()
    talk.add(prompt("search"))
    search: JsonObject = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    talk.answer(text_raw("searching"), search, stop_reason="pause_turn")
    assert body_of(talk)["messages"][-1] == {"role": "assistant", "content": [text_raw("searching"), search]}


def test_a_paused_response_without_a_tool_of_the_servers_is_followed_by_a_users_word() -> None:
    talk = Conversation()
    talk.add(prompt("search"))
    talk.answer(text_raw("searching"), stop_reason="pause_turn")
    assert body_of(talk)["messages"][-1]["role"] == "user"


def test_answers_of_a_repair_stand_right_behind_their_response() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(prompt("never mind"))
    talk.add(Repair("no result", answers={"a": "interrupted"}))
    assert kinds(body_of(talk)) == [["text"], ["tool_use"], ["tool_result", "text"]]


def test_results_without_content_are_sent_as_the_api_takes_them() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(*(use_raw(use_id) for use_id in "abcd"), stop_reason="tool_use")
    image = ImageBlock({"type": "base64", "media_type": "image/png", "data": "aGk="}, 9, 9)
    talk.add(
        UserEntry(
            (
                ToolResultBlock("a", ()),
                ToolResultBlock("b", (TextBlock(" \n"), TextBlock("said"))),
                ToolResultBlock("c", (TextBlock("\n"),), is_error=True),
                ToolResultBlock("d", (image,), is_error=True),
            ),
            origin="tool_results",
        )
    )
    body = body_of(talk)
    sent = {block["tool_use_id"]: block for block in body["messages"][-1]["content"]}
    assert not sent["a"].get("content")
    assert [part["text"] for part in sent["b"]["content"]] == ["said"]
    # An error must say something, and may hold nothing but text.
    assert [part["text"] for part in sent["c"]["content"]] == ["(no output)"]
    assert sent["c"]["is_error"]
    assert [part["type"] for part in sent["d"]["content"]] == ["image"]
    assert not sent["d"].get("is_error")


def test_surrogates_and_numbers_json_does_not_know_never_reach_the_wire() -> None:
    talk = Conversation()
    talk.add(prompt("\ud83d half an emoji"))
    talk.answer({**use_raw("a"), "input": {"n": float("nan"), "s": "\udc00"}}, stop_reason="tool_use")
    talk.add(results(("a", "\ud83d\ude00")))
    body = body_of(talk)
    assert body["messages"][1]["content"][0]["input"] == {"n": None, "s": "\ufffd"}
    assert body["messages"][2]["content"][0]["content"][0]["text"] == "😀"


def test_only_new_items_are_rendered_when_a_view_grows() -> None:
    seen: list[bytes] = []

    def estimate(data: bytes) -> int:
        seen.append(data)
        return 1

    talk = Conversation()
    talk.renderer = Renderer(estimate)
    talk.add(prompt("look"))
    for number in range(5):
        tool_round(talk, number)
    talk.renderer.render(talk.state.view, OPUS)
    seen.clear()
    talk.add(prompt("one more"))
    talk.renderer.render(talk.state.view, OPUS)
    assert len(seen) == 1


def test_a_view_tried_out_with_an_op_does_not_poison_the_real_one() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    tool_round(talk, 0)
    tried = talk.state.view.with_op(ClearResults({"t0": "[tried]"}), talk.state.next_seq)
    talk.renderer.render(tried, OPUS)
    talk.add(ClearResults({"t0": "[real]"}))
    assert body_of(talk)["messages"][2]["content"][0]["content"][0]["text"] == "[real]"


def test_a_request_repeats_the_bytes_of_the_one_before_up_to_its_marks() -> None:
    talk = Conversation(OPUS.with_changes(cache_ttl="off"))
    talk.add(prompt("look"))
    tool_round(talk, 0)
    first = RequestPlan.of(talk.profile, talk.renderer.render(talk.state.view, talk.profile)).body()
    tool_round(talk, 1)
    second = RequestPlan.of(talk.profile, talk.renderer.render(talk.state.view, talk.profile)).body()
    assert second.startswith(first.removesuffix(b"]}"))


def test_marks_stand_where_the_previous_request_ended_and_never_exceed_four() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    ends: list[tuple[int, int]] = []
    for number in range(6):
        marks = place_marks(OPUS, talk.renderer.render(talk.state.view, OPUS))
        assert marks.count <= MAX_MARKS_COUNT
        assert ends[-1:] == list(marks.places[-2:-1])
        ends.append(marks.places[-1])
        tool_round(talk, number)
    assert json.dumps(body_of(talk)).count("cache_control") == MAX_MARKS_COUNT


def test_caching_for_an_hour_names_its_lifetime_and_off_leaves_no_mark() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    hour = body_of(talk, OPUS.with_changes(cache_ttl="1h"))
    assert hour["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in json.dumps(body_of(talk, OPUS.with_changes(cache_ttl="off")))


def test_a_fork_leaves_the_waiting_prompt_behind_and_adds_one_text() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    tool_round(talk)
    talk.answer(text_raw("done"))
    talk.add(prompt("waiting"))
    fork = RequestPlan.of(OPUS, talk.renderer.render(talk.state.view, OPUS)).fork("summarise")
    messages = json.loads(fork.body())["messages"]
    assert [block["text"] for block in messages[-1]["content"]] == ["summarise"]
    assert messages[-2]["content"][-1]["text"] == "done"


def test_a_fork_in_mid_loop_ends_with_the_answered_calls() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    tool_round(talk)
    fork = RequestPlan.of(OPUS, talk.renderer.render(talk.state.view, OPUS)).fork("summarise")
    assert kinds(json.loads(fork.body())) == [["text"], ["thinking", "text", "tool_use"], ["tool_result", "text"]]


def test_manual_thinking_pauses_in_a_loop_whose_response_does_not_begin_with_it() -> None:
    manual = RequestProfile("claude-haiku-4-5", "s", OPUS.tools, thinking={"type": "enabled", "budget_tokens": 2_000})
    talk = Conversation(manual)
    talk.add(prompt("look"))
    assert "thinking" in body_of(talk)
    talk.answer(use_raw("a"), stop_reason="tool_use")
    talk.add(results(("a", "1")))
    assert "thinking" not in body_of(talk)


def test_asking_to_drop_unbound_thinking_brings_its_beta_along() -> None:
    profile = OPUS.with_changes(block_binding_drop=True)
    assert BINDING_BETA in profile.all_betas
    assert (profile.wire_thinking or {})["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_a_profile_survives_the_log_with_its_id() -> None:
    profile = OPUS.with_changes(betas=("x",), cache_ttl="1h", context_management={"edits": []})
    body = json.loads(json.dumps(profile.to_json())) | {"field_of_the_future": 1}
    assert RequestProfile.from_json(body).profile_id == profile.profile_id
    assert RequestProfile.from_json(body) == profile


def test_foreign_call_ids_are_made_acceptable_on_both_sides() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    talk.answer(use_raw("functions.Read:0"), stop_reason="tool_use")
    talk.add(results(("functions.Read:0", "x")))
    body = body_of(talk)
    assert body["messages"][1]["content"][0]["id"] == body["messages"][2]["content"][0]["tool_use_id"]
    assert ":" not in body["messages"][1]["content"][0]["id"]


def test_the_body_can_be_asked_for_without_a_stream_and_with_other_fields() -> None:
    talk = Conversation()
    talk.add(prompt("look"))
    rendered = talk.renderer.render(talk.state.view, OPUS)
    raw = request_body(
        OPUS, rendered, place_marks(OPUS, rendered), stream=False, max_tokens=7, extra_fields={"compaction": {}}
    )
    body = json.loads(raw)
    assert "stream" not in body
    assert body["max_tokens"] == 7
    assert body["compaction"] == {}
