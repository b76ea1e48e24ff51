"""Session memory over the wire: notes written in the background, and the compaction that needs no call."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.session_store import list_sessions, project_dir
from pyagent.events import CompactionFinished, Report, TurnFinished
from pyagent.launch import LaunchOptions
from pyagent.log import CallCost, NotesSaved, NoticeShown
from tests.agent.background import NOTES, Worker, kind_of_request
from tests.agent.support import LiveAgent, launch_options, records_on_disk, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import divergence
from tests.fakes.script import BEFORE_HEADERS, ToolRounds, after_deltas, http_error, reply, stall

WINDOW_TOKENS = 60_000


def counting(rounds: int = 8) -> ToolRounds:
    command = "yes 'the quick brown fox jumps over the lazy dog' | head -n 190 # {round}"
    return ToolRounds([("Bash", {"command": command})], rounds=rounds)


def saved(agent: LiveAgent) -> list[NotesSaved]:
    return [
        payload
        for event in agent.events
        if isinstance(payload := getattr(getattr(event, "record", None), "payload", None), NotesSaved)
    ]


def notes_file(options: LaunchOptions) -> Path:
    return list_sessions(project_dir(options.home, options.cwd))[0].path.with_suffix("") / "notes.md"


async def test_notes_are_written_beside_the_turn_from_its_cached_prefix(tmp_path: Path) -> None:
    worker = Worker(counting())
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.until(lambda: bool(saved(agent)))
        server.assert_finished()
        forks = [request for request in server.message_requests if kind_of_request(request) == "notes"]
        before = server.message_requests[server.message_requests.index(forks[0]) - 1]
    assert forks
    # The fork is the conversation itself with one more message, so that most of it is read from the cache.
    found = divergence(before.body, forks[0].body)
    assert found is None or found.path.startswith(f"messages.{len(forks[0].body['messages']) - 1}.")
    assert forks[0].body["tools"] == before.body["tools"]
    assert forks[0].usage["cache_read_input_tokens"] > 0.5 * forks[0].input_tokens
    costs = [r.payload for r in records_on_disk(options) if isinstance(r.payload, CallCost)]
    assert {cost.source for cost in costs} == {"session_memory"}
    assert notes_file(options).read_text("utf-8").startswith("# Title\nCounting")
    assert stat.S_IMODE(notes_file(options).stat().st_mode) == 0o600


async def test_compacting_by_hand_from_notes_makes_no_call(tmp_path: Path) -> None:
    worker = Worker(counting())
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.until(lambda: bool(saved(agent)))
            await server.wait_until(lambda: all(request.is_complete for request in server.message_requests))
            count = len(server.message_requests)
            finished = await agent.command("compact", "", CompactionFinished)
            assert len(server.message_requests) == count
            await agent.prompt("go on")
        server.assert_finished()
    assert (finished.layer, finished.calls, finished.trigger) == ("session_memory", 0, "manual")
    assert worker.counts["summary"] == 0
    assert "Counting goes on." in str(server.message_requests[count].body["messages"])
    assert state_on_disk(options).boundaries


async def test_an_edit_of_the_notes_file_reaches_the_summary(tmp_path: Path) -> None:
    async with FakeMessagesServer(Worker(counting()), window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.until(lambda: bool(saved(agent)))
            path = notes_file(options)
            await server.wait_until(lambda: path.exists())
            path.write_text("# Title\nEdited by hand: the secret is 7351.\n", "utf-8")
            await agent.command("compact", "", CompactionFinished)
            count = len(server.message_requests)
            await agent.prompt("go on")
    assert "the secret is 7351" in str(server.message_requests[count].body["messages"])


async def test_a_compaction_clears_how_far_the_notes_reach_and_a_resume_keeps_it(tmp_path: Path) -> None:
    worker = Worker(counting())
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.until(lambda: bool(saved(agent)))
        resumed = replace(options, is_continued=True)
        async with running_agent(resumed) as agent:
            finished = await agent.command("compact", "", CompactionFinished)
        assert finished.layer == "session_memory"
    state = state_on_disk(options)
    assert state.notes.covered_uuid == ""
    assert state.notes.text.startswith("# Title")
    assert state.notes.updates == 0


@pytest.mark.parametrize(
    "environ",
    [{"DISABLE_COMPACT": "1"}, {"DISABLE_AUTO_COMPACT": "1"}, {"PYAGENT_SESSION_MEMORY": "0"}],
    ids=["DISABLE_COMPACT", "DISABLE_AUTO_COMPACT", "gate"],
)
async def test_switched_off_no_notes_are_written(tmp_path: Path, environ: dict[str, str]) -> None:
    worker = Worker(counting(3))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), environ)
        async with running_agent(options) as agent:
            assert isinstance(await agent.prompt("count"), TurnFinished)
    assert worker.counts["notes"] == 0


async def test_a_failing_notes_call_disturbs_nobody_and_is_not_repeated_at_once(tmp_path: Path) -> None:
    worker = Worker(counting(), notes=http_error(400, "invalid_request_error", "no notes today"))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            assert isinstance(await agent.prompt("count"), TurnFinished)
            report = await agent.command("context", "", Report)
    assert 1 <= worker.counts["notes"] <= 3
    assert "no notes today" in report.text
    # Of the failure nothing was said in passing.
    assert not any("notes" in text for text in agent.notices), agent.notices


async def test_a_stalled_notes_call_holds_up_neither_the_turn_nor_the_end(tmp_path: Path) -> None:
    worker = Worker(counting(), notes=stall(reply(NOTES), BEFORE_HEADERS))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            assert isinstance(await agent.prompt("count"), TurnFinished)
            assert server.stalled_count == 1
    assert not any(isinstance(record.payload, NotesSaved) for record in records_on_disk(options))


async def test_a_compaction_waits_for_notes_that_are_being_written(tmp_path: Path) -> None:
    worker = Worker(counting(), notes=stall(reply(NOTES), BEFORE_HEADERS))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await server.wait_until(lambda: server.stalled_count == 1)
            worker.notes = NOTES
            compacting = agent.command("compact", "", CompactionFinished)
            server.release()
            finished = await compacting
    assert (finished.layer, finished.calls) == ("session_memory", 0)
    assert worker.counts["summary"] == 0


async def test_without_notes_a_summary_is_prepared_from_the_warning_on_and_swapped_in(tmp_path: Path) -> None:
    worker = Worker(counting(16))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        async with running_agent(options) as agent:
            await agent.prompt("count")
        server.assert_finished()
    finished = agent.all_of(CompactionFinished)
    assert finished
    assert finished[0].layer == "draft"
    assert worker.counts["summary"] >= 1
    sources = {r.payload.source for r in records_on_disk(options) if isinstance(r.payload, CallCost)}
    assert "draft" in sources


async def test_a_prepared_summary_that_was_not_needed_is_told_with_its_price(tmp_path: Path) -> None:
    worker = Worker(counting(4))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await agent.prompt("count again")
            await server.wait_until(lambda: worker.counts["summary"] == 1)
            await server.wait_until(lambda: all(request.is_complete for request in server.message_requests))
            await agent.until(
                lambda: any(
                    isinstance(getattr(getattr(e, "record", None), "payload", None), CallCost) for e in agent.events
                )
            )
    told = [r.payload.text for r in records_on_disk(options) if isinstance(r.payload, NoticeShown)]
    assert any("was not needed ($0." in text for text in told)


async def test_the_notes_of_a_cancelled_call_are_billed(tmp_path: Path) -> None:
    worker = Worker(counting(), notes=stall(reply(NOTES, delta_chars=10), after_deltas(2)))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            await server.wait_until(lambda: server.stalled_count == 1)
    costs = [r.payload for r in records_on_disk(options) if isinstance(r.payload, CallCost)]
    assert [cost.source for cost in costs] == ["session_memory"]
    assert costs[0].usage.prompt_tokens > 1_000
