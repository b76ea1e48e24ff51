"""What an interrupt of a compaction leaves behind: the session as it was, and nothing that acts later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.commands import Interrupt, RunCommand, SubmitPrompt
from pyagent.events import (
    CommandFinished,
    CompactionEnded,
    CompactionFinished,
    CompactionStarted,
    GaugeMoved,
    Notice,
    SessionOpened,
    TurnFinished,
)
from pyagent.log import Boundary, CheckpointTaken
from tests.agent.background import FORGETFUL_SUMMARY, Worker, turns_of_calls
from tests.agent.support import launch_options, records_on_disk, running_agent, state_on_disk, with_environ
from tests.agent.test_checkpoints import put, tree_of
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import BEFORE_HEADERS, Answer, Point, Script, after_deltas, reply, stall, tool_use

WINDOW_TOKENS = 60_000
NO_NOTES = {"PYAGENT_SESSION_MEMORY": "0"}
SUMMARY = reply(FORGETFUL_SUMMARY, delta_chars=20)


def stalled(place: Point) -> Answer:
    return stall(SUMMARY, place)


@pytest.mark.parametrize("place", [BEFORE_HEADERS, after_deltas(2)], ids=["before the summary", "in the summary"])
async def test_an_automatic_compaction_is_cancelled_and_comes_again_once_it_is_due(
    tmp_path: Path, place: Point
) -> None:
    worker = Worker(turns_of_calls(2, 8), summary=stalled(place))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            agent.send(SubmitPrompt("go on"))
            await server.wait_until(lambda: server.stalled_count == 1)
            held = state_on_disk(options).view.items
            since = len(agent.events)
            agent.send(Interrupt())
            ended = await agent.next_of(CompactionEnded, since=since)
            turn = await agent.next_of(TurnFinished, since=since)
            assert state_on_disk(options).view.items == held
            worker.summary = SUMMARY
            since = len(agent.events)
            assert isinstance(await agent.prompt("and then"), TurnFinished)
            again = await agent.next_of(CompactionFinished, since=since)
        server.assert_finished()
    assert ended.outcome == "cancelled"
    assert turn.stop_reason == "interrupted"
    assert (again.trigger, again.layer) == ("auto", "full")
    assert "and then" in str(server.message_requests[-1].body["messages"])


async def test_a_cancelled_compaction_leaves_nothing_behind_that_touches_the_work_tree(tmp_path: Path) -> None:
    change = reply(tool_use("Bash", {"command": "echo two > a.txt; rm gone.txt; seq 1 3000"}))
    work = Script([change, "Changed.", *["Well."] * 5])
    worker = Worker(work, summary=stalled(BEFORE_HEADERS))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        put(options.cwd / "a.txt", b"one\n", 0o644)
        put(options.cwd / "gone.txt", b"once\n", 0o600)
        async with running_agent(options) as agent:
            await agent.prompt("change things")
            await agent.prompt("and now")
            session_id = agent.all_of(SessionOpened)[0].session_id
            before = tree_of(options.cwd)
            agent.send(RunCommand("compact", "in short"))
            await server.wait_until(lambda: server.stalled_count == 1)
            agent.send(Interrupt())
            await agent.next_of(CommandFinished, since=0)
            assert tree_of(options.cwd) == before
            # From here on the tree is the person's own; the answer that was given up comes late.
            put(options.cwd / "a.txt", b"three\n", 0o755)
            put(options.cwd / "new.txt", b"mine\n", 0o640)
            own = tree_of(options.cwd)
            server.release()
            refused = await agent.command("compact", "undo", Notice)
            await agent.prompt("go on")
            assert tree_of(options.cwd) == own
            await agent.command("clear", "", SessionOpened)
            await agent.prompt("in a new session")
            assert tree_of(options.cwd) == own
            await agent.command("resume", session_id, SessionOpened)
            await agent.prompt("in the old one again")
            assert tree_of(options.cwd) == own
        async with running_agent(replace(options, resume=session_id)) as agent:
            await agent.prompt("after a restart")
            assert tree_of(options.cwd) == own
        server.assert_finished()
    records = records_on_disk(options)
    assert any(isinstance(record.payload, CheckpointTaken) for record in records), "there was something to restore"
    assert not any(isinstance(record.payload, Boundary) for record in records)
    assert "No compaction" in refused.text


async def test_compacting_reads_the_work_tree_and_changes_nothing_in_it(tmp_path: Path) -> None:
    worker = Worker(Script([reply(tool_use("Read", {"file_path": "a.txt"})), "Read.", "Well."]), summary=SUMMARY)
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        put(options.cwd / "a.txt", b"one\n" * 4_000, 0o600)
        async with running_agent(options) as agent:
            await agent.prompt("read it")
            put(options.cwd / "a.txt", b"mine\n" * 4_000, 0o640)
            own = tree_of(options.cwd)
            await agent.command("compact", "in short", CompactionFinished)
            await agent.command("compact", "undo", Notice)
            await agent.prompt("go on")
            assert tree_of(options.cwd) == own
        server.assert_finished()


async def test_compacting_by_hand_during_an_answer_at_the_trigger_makes_one_compaction(tmp_path: Path) -> None:
    turns = turns_of_calls(2, 3)
    answer = stall(reply("A long answer. " * 2_400, delta_chars=2_000), after_deltas(16))
    worker = Worker(lambda request: answer if request.last_text == "answer" else turns(request), summary=SUMMARY)
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            await agent.prompt("go on")
            agent.send(SubmitPrompt("answer"))
            await server.wait_until(lambda: server.stalled_count == 1)
            already = len(agent.all_of(CompactionStarted))
            agent.send(RunCommand("compact", "in short"))
            await agent.until(lambda: any("as soon as" in text for text in agent.notices))
            assert len(agent.all_of(CompactionStarted)) == already
            server.release()
            await agent.next_of(CommandFinished, since=0)
            await agent.prompt("thanks")
        server.assert_finished()
    figures = [event.gauge for event in agent.all_of(GaugeMoved)]
    assert any(gauge.used_tokens >= gauge.trigger_tokens for gauge in figures), "the trigger was reached"
    assert [event.trigger for event in agent.all_of(CompactionFinished)] == ["manual"]
    assert len(state_on_disk(options).boundaries) == 1
