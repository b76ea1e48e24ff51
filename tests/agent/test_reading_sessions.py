"""Sessions that are only looked at, because somebody wants no more or another process writes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.read_only import CANCEL, COPY, READ_ONLY
from pyagent.agent.session_store import list_sessions, project_dir
from pyagent.commands import AnswerQuestion, RunCommand, RunShell, SubmitPrompt
from pyagent.errors import READING
from pyagent.events import (
    ConversationClosed,
    Notice,
    PromptReturned,
    QuestionAsked,
    QueueChanged,
    RecordCommitted,
    Report,
    SessionOpened,
    TurnFailed,
    TurnFinished,
)
from pyagent.launch import LaunchOptions
from tests.agent.support import LiveAgent, launch_options, records_on_disk, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script


@asynccontextmanager
async def writer(options: LaunchOptions, *said: str) -> AsyncIterator[LiveAgent]:
    """An agent that holds a session open, in which these prompts were answered."""
    async with running_agent(options) as agent:
        for text in said:
            await agent.prompt(text)
        yield agent


def session_files(options: LaunchOptions) -> dict[Path, bytes]:
    return {info.path: info.path.read_bytes() for info in list_sessions(project_dir(options.home, options.cwd))}


def replayed(agent: LiveAgent) -> str:
    return str([event.record.payload for event in agent.all_of(RecordCommitted) if event.is_replay])


async def test_a_session_can_be_viewed_and_nothing_of_it_changes(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first"):
            pass
        files = session_files(options)
        viewing = replace(options, resume="first", is_read_only=True)
        async with running_agent(viewing) as agent:
            assert (await agent.next_of(Notice, since=0)).text == READING
            for command in (SubmitPrompt("more"), RunShell("touch made"), RunShell("ls", is_private=True)):
                since = len(agent.events)
                agent.send(command)
                failed = await agent.next_of(TurnFailed, since=since)
                assert "/branch" in failed.hint
                assert "--fork-session" in failed.hint
            refused = await agent.command("rename", "other", Notice)
            report = await agent.command("mode", "plan", Notice)
        assert "reading only" in refused.text
        assert "reading only" in report.text
        assert [event.text for event in agent.all_of(PromptReturned)] == ["more", "!touch made", "!!ls"]
        assert "One." in replayed(agent)
        assert session_files(options) == files
        assert not (options.cwd / "made").exists()
        assert len(server.message_requests) == 1


async def nth_opened(agent: LiveAgent, count: int) -> SessionOpened:
    await agent.until(lambda: len(agent.all_of(SessionOpened)) >= count)
    return agent.all_of(SessionOpened)[count - 1]


async def locked_opening(options: LaunchOptions, choice: str, agent: LiveAgent) -> None:
    asked = await agent.next_of(QuestionAsked, since=0)
    assert "another pyagent" in asked.questions[0].text
    agent.send(AnswerQuestion(asked.request_id, ((choice,),)))


async def test_a_session_open_elsewhere_can_be_read(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first") as first:
            async with running_agent(replace(options, resume="first")) as second:
                await locked_opening(options, READ_ONLY, second)
                assert (await second.next_of(Notice, since=0)).text == READING
                second.send(SubmitPrompt("mine"))
                await second.next_of(TurnFailed, since=0)
            await first.prompt("goes on")
        said = [record.payload for record in records_on_disk(options) if record.is_entry]
        assert "mine" not in str(said)
        assert "goes on" in str(said)


async def test_a_session_open_elsewhere_can_be_gone_on_with_in_a_copy(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first") as first:
            held = first.all_of(SessionOpened)[0].session_id
            async with running_agent(replace(options, is_continued=True)) as second:
                await locked_opening(options, COPY, second)
                opened = await nth_opened(second, 2)
                ended = await second.prompt("second")
        assert isinstance(ended, TurnFinished)
        assert opened.session_id != held
        assert not opened.is_read_only
        assert len(session_files(options)) == 2


async def test_not_wanting_a_locked_session_at_the_start_ends_the_program(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first"), running_agent(replace(options, resume="first")) as second:
            await locked_opening(options, CANCEL, second)
            await second.next_of(ConversationClosed, since=0)


@pytest.mark.parametrize("said", [(), ("mine",)])
async def test_not_wanting_a_locked_session_leads_back(tmp_path: Path, said: tuple[str, ...]) -> None:
    async with FakeMessagesServer(Script(["One.", "Two.", "Three."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first"), writer(options, *said) as second:
            own = (await second.next_of(SessionOpened, since=0)).session_id
            second.send(RunCommand("resume", "first"))
            await locked_opening(options, CANCEL, second)
            back = await nth_opened(second, 3)
            assert not back.is_read_only
            assert (back.session_id == own) is bool(said)
            assert second.all_of(Notice) == []
            await second.prompt("go on")


async def test_headless_says_how_to_go_on_in_a_copy(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        headless = replace(options, resume="first", is_headless=True)
        async with writer(options, "first"), running_agent(headless) as second:
            failed = await second.next_of(TurnFailed, since=0)
        assert failed.kind == "SessionLockedError"
        assert "--fork-session" in failed.hint


async def test_queued_prompts_of_the_other_process_are_not_run(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        async with writer(options, "first"):
            pass
        path = list_sessions(project_dir(options.home, options.cwd))[0].path
        last = records_on_disk(options)[-1]
        path.write_bytes(
            path.read_bytes()
            + (
                f'{{"seq":{last.seq + 1},"type":"prompt_queued","uuid":"q","timestamp":"{last.at.isoformat()}",'
                '"prompt_id":"p","text":"later"}\n'
            ).encode()
        )
        async with running_agent(replace(options, resume="first", is_read_only=True)) as agent:
            await agent.next_of(Notice, since=0)
            await agent.command("cost", "", Report)
        assert all(event == QueueChanged(()) for event in agent.all_of(QueueChanged))
        assert len(server.message_requests) == 1


async def test_a_session_of_claude_code_is_viewed_where_it_lies(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["Copied."])) as server:
        options = launch_options(tmp_path, server.url, is_headless=False)
        folder = tmp_path / "claude"
        environ = {**options.environ, "CLAUDE_CONFIG_DIR": str(folder)}
        options = replace(options, environ=environ)
        slug = "".join(char if char.isalnum() else "-" for char in str(options.cwd))
        source = folder / "projects" / slug / "11111111-1111-4111-8111-111111111111.jsonl"
        source.parent.mkdir(parents=True)
        line = (
            '{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-01T10:00:00Z",'
            f'"cwd":"{options.cwd}","message":{{"role":"user","content":"told elsewhere"}}}}\n'
        )
        source.write_text(line)
        viewing = replace(options, resume=f"claude:{source.stem}", is_read_only=True)
        async with running_agent(viewing) as agent:
            await agent.next_of(Notice, since=0)
            assert "told elsewhere" in replayed(agent)
            assert session_files(options) == {}
            agent.send(RunCommand("branch"))
            opened = await nth_opened(agent, 2)
            await agent.prompt("go on")
        assert not opened.is_read_only
        assert source.read_text() == line
        assert len(session_files(options)) == 1
