"""Commands typed with `!`: run unasked, shown, logged, and told to the model unless they are private."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyagent.agent.export import parts_of
from pyagent.commands import Interrupt, LetRunOn, RunShell
from pyagent.events import (
    Notice,
    PermissionNeeded,
    QueueChanged,
    RecordCommitted,
    ToolProgress,
    ToolStarted,
    TurnFinished,
)
from pyagent.log import Record, ShellRan
from tests.agent.support import LiveAgent, launch_options, records_on_disk, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, reply, tool_use


def texts_of(body: dict[str, Any]) -> str:
    """All text of a request's messages."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return "\n".join(str(block.get("text", "")) for block in blocks)


async def ran(agent: LiveAgent, command: str, *, is_private: bool = False) -> ShellRan:
    """Run it and wait for its record."""
    since = len(agent.events)

    def record() -> ShellRan | None:
        for event in agent.events[since:]:
            if isinstance(event, RecordCommitted) and isinstance(event.record.payload, ShellRan):
                return event.record.payload
        return None

    agent.send(RunShell(command, is_private))
    await agent.until(lambda: record() is not None)
    found = record()
    assert found is not None
    return found


async def test_the_model_is_told_of_a_command_with_the_next_prompt_and_not_before(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["I see."])) as server:
        options = launch_options(tmp_path, server.url, permission_mode="default")
        async with running_agent(options) as agent:
            record = await ran(agent, "echo from-the-person")
            assert server.message_requests == []
            await agent.prompt("what did it say?")
            assert agent.all_of(PermissionNeeded) == []
        sent = texts_of(server.message_requests[0].body)
    assert record.output == "from-the-person"
    assert "$ echo from-the-person" in sent
    assert sent.index("from-the-person") < sent.index("what did it say?")


async def test_a_private_command_is_shown_and_logged_and_never_sent(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["Yes."])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            record = await ran(agent, "echo only-for-me", is_private=True)
            await agent.prompt("hello")
        assert "only-for-me" not in texts_of(server.message_requests[0].body)
    assert record.display["private"] is True
    kept = [r.payload for r in records_on_disk(options) if isinstance(r.payload, ShellRan)]
    assert [shell.output for shell in kept] == ["only-for-me"]


async def test_a_resumed_session_tells_of_the_command_again(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await ran(agent, "echo kept")
            await agent.prompt("first")
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("second")
            replayed = [event.record.payload for event in agent.all_of(RecordCommitted) if event.is_replay]
    assert any(isinstance(payload, ShellRan) and payload.output == "kept" for payload in replayed)
    before, after = (request.body["messages"] for request in server.message_requests)
    assert after[: len(before) - 1] == before[:-1]


def test_an_export_shows_the_persons_commands() -> None:
    ran_by_person = Record(0, "u", datetime(2026, 5, 4, tzinfo=UTC), ShellRan("r", "ls", "a.txt", is_error=False))
    assert [(part.speaker, part.text) for part in parts_of([ran_by_person])] == [
        ("Tool call", "ls"),
        ("Tool result", "a.txt"),
    ]


async def test_with_the_setting_the_model_answers_a_command_at_once(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["It says hi."])) as server:
        options = launch_options(tmp_path, server.url, settings_json='{"respondToBashCommands": true}')
        async with running_agent(options) as agent:
            since = len(agent.events)
            agent.send(RunShell("echo hi"))
            ended = await agent.next_of(TurnFinished, since=since)
    assert ended.text == "It says hi."
    assert "$ echo hi" in texts_of(server.message_requests[0].body)


async def test_an_interrupt_kills_the_command_and_keeps_what_it_said(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            agent.send(RunShell("echo begun; sleep 100"))
            await agent.until(lambda: any("begun" in event.text for event in agent.all_of(ToolProgress)))
            agent.send(Interrupt())
            await agent.until(lambda: "Interrupted." in agent.notices)
    shell = next(r.payload for r in records_on_disk(options) if isinstance(r.payload, ShellRan))
    assert shell.output.splitlines() == ["begun", "[Interrupted by the user]"]
    assert shell.is_error


async def test_a_command_given_during_a_turn_waits_for_its_end(tmp_path: Path) -> None:
    script = Script([reply(tool_use("Bash", {"command": "until [ -e go ]; do sleep 0.02; done"})), "Done.", "Seen."])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            turn = asyncio.ensure_future(agent.prompt("wait for the file"))
            await agent.until(lambda: any(event.name == "Bash" for event in agent.all_of(ToolStarted)))
            waiting = asyncio.ensure_future(ran(agent, "echo later"))
            await agent.until(
                lambda: any("!echo later" in dict(e.prompts).values() for e in agent.all_of(QueueChanged))
            )
            (options.cwd / "go").touch()
            await turn
            assert (await waiting).output == "later"
            await agent.prompt("and now?")
        assert "later" not in texts_of(server.message_requests[1].body)
        assert "$ echo later" in texts_of(server.message_requests[2].body)
    assert not state_on_disk(options).queued


async def test_a_running_command_goes_on_in_the_background_when_the_person_wants(tmp_path: Path) -> None:
    script = Script([reply(tool_use("Bash", {"command": "echo begun; sleep 100", "timeout": 600_000})), "It runs on."])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            turn = asyncio.ensure_future(agent.prompt("serve"))
            await agent.until(lambda: any("begun" in event.text for event in agent.all_of(ToolProgress)))
            agent.send(LetRunOn())
            ended = await turn
        result = str(server.message_requests[1].body["messages"][-1]["content"])
    assert isinstance(ended, TurnFinished)
    assert "moved it to the background as bash_1" in result
    assert "begun" in result


async def test_with_nothing_running_there_is_nothing_to_leave_to_the_background(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server, running_agent(launch_options(tmp_path, server.url)) as agent:
        since = len(agent.events)
        agent.send(LetRunOn())
        notice = await agent.next_of(Notice, since=since)
    assert "No command is running" in notice.text


async def test_a_command_sees_no_credentials(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script([])) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"ANTHROPIC_API_KEY": "secret-key"})
        async with running_agent(options) as agent:
            record = await ran(agent, "env")
    assert "secret-key" not in record.output
