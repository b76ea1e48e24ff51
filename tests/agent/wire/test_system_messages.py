"""Notes of pyagent's on their way to the model: as `system` messages where it takes them, else as the user's text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyagent.agent.wire.client import DEFAULT_BASE_URL, AnthropicClient, Credentials
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.validate import Validator
from pyagent.events import TurnFinished
from pyagent.log import UserEntry
from pyagent.messages import TextBlock
from tests.agent.support import launch_options, running_agent
from tests.agent.wire.builders import OPUS, Conversation, prompt, results, text_raw, thinking_raw, use_raw
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.persona import first_party
from tests.fakes.script import Script, http_error, reply, thinking, tool_use

TAKES = OPUS.with_changes(has_system_messages=True)


def note(text: str = "note", label: str = "") -> UserEntry:
    return UserEntry((TextBlock(text),), origin="attachment" if label else "reminder", label=label)


def messages_of(talk: Conversation, profile: RequestProfile | None = None) -> list[dict[str, Any]]:
    profile = profile or talk.profile
    plan = RequestPlan.of(profile, talk.renderer.render(talk.state.view, profile))
    assert Validator().fault(plan.rendered, plan.marks) is None
    messages: list[dict[str, Any]] = json.loads(plan.body())["messages"]
    return messages


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_a_note_behind_the_first_response_is_a_system_message_behind_the_prompt() -> None:
    talk = Conversation(TAKES)
    talk.add(prompt("one"))
    talk.answer(text_raw("yes"))
    talk.add(note("memory", "memory:/a"), prompt("two"))
    messages = messages_of(talk)
    assert roles(messages) == ["user", "assistant", "user", "system"]
    assert [block["text"] for block in messages[2]["content"]] == ["two"]
    assert [block["text"] for block in messages[3]["content"]] == ["memory"]
    talk.answer(text_raw("done"))
    talk.add(prompt("three"))
    assert roles(messages_of(talk)) == ["user", "assistant", "user", "system", "assistant", "user"]


def test_without_the_setting_notes_stay_text_of_the_user() -> None:
    talk = Conversation(OPUS)
    talk.add(prompt("one"))
    talk.answer(text_raw("yes"))
    talk.add(note(), prompt("two"))
    assert roles(messages_of(talk)) == ["user", "assistant", "user"]


def test_notes_before_the_first_response_and_notes_alone_are_the_users() -> None:
    talk = Conversation(TAKES)
    talk.add(note("first"), prompt("one"))
    assert roles(messages_of(talk)) == ["user"]
    talk.answer(text_raw("yes"))
    talk.add(note("alone"))
    assert roles(messages_of(talk)) == ["user", "assistant", "user"]


def test_a_note_never_stands_between_a_call_and_its_result() -> None:
    talk = Conversation(TAKES)
    talk.add(prompt("look"))
    talk.answer(use_raw("a"), use_raw("b"), stop_reason="tool_use")
    talk.add(results(("a", "1")), note(), results(("b", "2")))
    messages = messages_of(talk)
    assert roles(messages) == ["user", "assistant", "user", "system"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result"]


def test_what_is_quoted_from_files_never_speaks_with_the_systems_voice() -> None:
    talk = Conversation(TAKES)
    talk.add(prompt("one"))
    talk.answer(text_raw("yes"))
    talk.add(note("content of a file", "file:/a"), prompt("two"))
    assert roles(messages_of(talk)) == ["user", "assistant", "user"]


def test_thinking_goes_back_behind_a_system_message_it_was_sampled_under_and_not_behind_another_form() -> None:
    talk = Conversation(TAKES)
    talk.add(prompt("one"))
    talk.answer(text_raw("yes"))
    talk.add(note(), prompt("two"))
    talk.answer(thinking_raw(), text_raw("done"))
    talk.add(prompt("three"))
    assert "thinking" in [block["type"] for block in messages_of(talk)[4]["content"]]
    assert "thinking" not in [block["type"] for block in messages_of(talk, OPUS)[3]["content"]]


def test_a_profile_recorded_before_there_were_system_messages_keeps_its_address_and_its_bytes() -> None:
    recorded = OPUS.to_json()
    assert "has_system_messages" not in recorded
    assert RequestProfile.from_json(recorded).profile_id == OPUS.profile_id
    assert RequestProfile.from_json(TAKES.to_json()) == TAKES
    assert TAKES.profile_id != OPUS.profile_id


async def test_a_changed_memory_file_is_told_in_a_system_message_and_a_resume_sends_the_same(tmp_path: Path) -> None:
    call = reply(thinking("look"), tool_use("Bash", {"command": "echo hello"}))
    script = Script(["one", call, "two", "three"])
    async with FakeMessagesServer(script, binding="all") as server:
        options = launch_options(tmp_path, DEFAULT_BASE_URL, model="claude-opus-5-5")
        client = AnthropicClient(Credentials("a-key", base_url=server.url))
        async with running_agent(options, client) as agent:
            (options.cwd / "CLAUDE.md").write_text("Use tabs.")
            await agent.prompt("first")
            (options.cwd / "CLAUDE.md").write_text("Use spaces.")
            await agent.prompt("second")
        client = AnthropicClient(Credentials("a-key", base_url=server.url))
        async with running_agent(replace(options, is_continued=True), client) as agent:
            assert isinstance(await agent.prompt("third"), TurnFinished)
        server.assert_finished()
    sent = [request.body["messages"] for request in server.message_requests]
    assert roles(sent[1]) == ["user", "assistant", "user", "system"]
    assert "Use spaces." in sent[1][3]["content"][0]["text"]
    assert [m["content"][0].get("text") for m in sent[3][:4]] == [m["content"][0].get("text") for m in sent[1]]
    assert sent[3][4]["content"][0]["type"] == "thinking"


async def test_a_server_that_refuses_system_messages_gets_user_text_from_then_on(tmp_path: Path) -> None:
    refused = http_error(400, "invalid_request_error", "messages.3.role: Input should be 'user' or 'assistant'")
    async with FakeMessagesServer(Script(["one", refused, "two"]), persona=first_party()) as server:
        options = launch_options(tmp_path, DEFAULT_BASE_URL, model="claude-opus-5-5")
        client = AnthropicClient(Credentials("a-key", base_url=server.url))
        async with running_agent(options, client) as agent:
            await agent.prompt("first")
            (options.cwd / "CLAUDE.md").write_text("Use spaces.")
            assert isinstance(await agent.prompt("second"), TurnFinished)
    assert roles(server.message_requests[2].body["messages"]) == ["user", "assistant", "user"]
    assert len([line for line in agent.notices if "system messages" in line]) == 1
