"""The assembled agent, in one process, from prompt to reply against the strict server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyagent.agent.session_store import project_dir
from pyagent.events import CompactionFinished, GaugeMoved, Notice, SessionOpened, TurnFinished
from pyagent.log import AssistantEntry, UserEntry
from tests.agent.background import Worker
from tests.agent.support import launch_options, records_on_disk, running_agent, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Script, ToolRounds, reply, tool_use


async def test_a_prompt_runs_its_tools_and_ends_with_the_answer(tmp_path: Path) -> None:
    script = Script([reply(tool_use("Bash", {"command": "echo hello"})), "It says hello."])
    async with FakeMessagesServer(script) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            ended = await agent.prompt("say hello")
    assert isinstance(ended, TurnFinished)
    assert ended.text == "It says hello."
    results = server.message_requests[1].body["messages"][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result"]
    assert "hello" in str(results[0]["content"])
    entries = [record.payload for record in records_on_disk(options) if record.is_entry]
    kinds = [type(entry) for entry in entries if not (isinstance(entry, UserEntry) and entry.origin == "attachment")]
    assert kinds == [UserEntry, AssistantEntry, UserEntry, AssistantEntry]


async def test_a_resumed_session_sends_what_was_said_before(tmp_path: Path) -> None:
    async with FakeMessagesServer(Script(["One.", "Two."])) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("first")
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("second")
    before, after = (request.body["messages"] for request in server.message_requests)
    texts = [block["text"] for message in after for block in message["content"] if block["type"] == "text"]
    assert texts[-3:] == ["first", "One.", "second"]
    assert after[: len(before) - 1] == before[:-1]


async def test_a_resume_that_finds_nothing_says_so_and_leads_back(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script(["One.", "Two."])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        await agent.prompt("first")
        notice = await agent.command("resume", "zzz", Notice)
        opened = [event.session_id for event in agent.all_of(SessionOpened)]
        await agent.prompt("second")
    assert "'zzz'" in notice.text
    assert len(opened) == 2
    assert opened[0] == opened[1]
    texts = [block["text"] for message in server.message_requests[1].body["messages"] for block in message["content"]]
    assert texts[-3:] == ["first", "One.", "second"]


async def test_a_resume_that_finds_nothing_in_an_empty_session_says_so(tmp_path: Path) -> None:
    async with (
        FakeMessagesServer(Script(["One."])) as server,
        running_agent(launch_options(tmp_path, server.url)) as agent,
    ):
        notice = await agent.command("resume", "zzz", Notice)
        await agent.prompt("first")
    assert "no earlier session" in notice.text


async def test_compacting_by_hand_shrinks_the_next_request(tmp_path: Path) -> None:
    worker = Worker(ToolRounds([("Bash", {"command": "seq 1 2000 # {round}"})], rounds=6))
    async with FakeMessagesServer(worker, window_tokens=60_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        async with running_agent(options) as agent:
            await agent.prompt("count")
            before = server.message_requests[-1].input_tokens
            since = len(agent.events)
            finished = await agent.command("compact", "then write a handoff file", CompactionFinished)
            at_once = await agent.next_of(GaugeMoved, since=since)
            count = len(server.message_requests)
            await agent.prompt("go on")
            then = agent.all_of(GaugeMoved)[-1].gauge
        server.assert_finished()
    assert worker.counts["summary"] >= 1
    # What the summary should heed is no task: the summariser alone is told.
    told = ["then write a handoff file" in str(request.body["messages"][-1]) for request in server.message_requests]
    assert any(told[:count])
    assert "handoff" not in str([request.body for request in server.message_requests[count:]])
    assert len(list(project_dir(options.home, options.cwd).rglob("*.jsonl"))) == 1, "one session, one file"
    assert finished.after_tokens < finished.before_tokens
    # The gauge moves with the compaction, as an estimate; the next response's usage replaces it.
    assert (at_once.gauge.used_tokens, at_once.gauge.is_estimate) == (finished.after_tokens, True)
    assert not then.is_estimate
    assert server.message_requests[count].input_tokens < before


async def test_memory_files_stand_behind_a_compaction_as_they_are_on_the_disk_then(tmp_path: Path) -> None:
    worker = Worker(ToolRounds([("Bash", {"command": "seq 1 2000 # {round}"})], rounds=3))
    async with FakeMessagesServer(worker, window_tokens=60_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        memory = options.cwd / "CLAUDE.md"
        memory.write_text("Never add Co-Authored-By.\n")
        async with running_agent(options) as agent:
            await agent.prompt("count")
            before = server.message_requests[-1]
            memory.write_text("Never push;  not even tags.\n")
            await agent.command("compact", "in short", CompactionFinished)
            await agent.prompt("go on")
            between = server.message_requests[-1]
            memory.write_text("Use tabs;  never spaces.\n")
            await agent.command("compact", "in short", CompactionFinished)
            await agent.prompt("and on")
        server.assert_finished()
    after = str(server.message_requests[-1].body)
    assert str(before.body).count("Never add Co-Authored-By.") == 1
    assert str(between.body).count("Never push;  not even tags.") == 1
    assert "Co-Authored-By" not in str(between.body)
    assert after.count("Use tabs;  never spaces.") == 1
    assert "Never push" not in after


async def test_a_projects_env_file_is_loaded_by_nobody(tmp_path: Path) -> None:
    names = ("FROM_ENV_FILE", "ANTHROPIC_API_KEY", "DISABLE_AUTO_COMPACT")
    command = " ".join(("echo", *(f"[${{{name}-unset}}]" for name in names)))
    script = Script([reply(tool_use("Bash", {"command": command})), "Fine."])
    async with FakeMessagesServer(script, api_key="a-key") as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / ".env").write_text(
            "FROM_ENV_FILE=1\nANTHROPIC_API_KEY=another\nANTHROPIC_BASE_URL=http://127.0.0.1:9\nDISABLE_AUTO_COMPACT=1\n"
        )
        async with running_agent(options) as agent:
            ended = await agent.prompt("look")
            gauge = agent.all_of(GaugeMoved)[-1].gauge
        server.assert_finished()
    assert isinstance(ended, TurnFinished)
    assert "[unset] [unset] [unset]" in str(server.message_requests[-1].body["messages"][-1])
    assert gauge.is_auto_compact_on
