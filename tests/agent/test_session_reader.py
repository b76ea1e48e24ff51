"""A long session opens from its newest saved state, and nothing of it differs from a full reading."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pyagent.agent.session_reader import older_records, open_session
from pyagent.agent.session_store import list_sessions, project_dir, read_session
from pyagent.events import CompactionFinished, OlderRecords, PromptReturned, Report, SessionOpened, SettingMoved
from pyagent.launch import LaunchOptions
from pyagent.state import Branch, ConversationState
from tests.agent.support import SteadyClock, launch_options, running_agent
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import ToolRounds


def rounds() -> ToolRounds:
    return ToolRounds(
        [("Bash", {"command": "seq 1 2000"}), ("Read", {"file_path": "a.txt"})],
        rounds=6,
        is_summary=lambda request: "<summary>" in request.last_text,
        summary_text="<analysis>.</analysis><summary>"
        + "\n".join(f"{n}. Section" for n in range(1, 10))
        + "</summary>",
    )


def session_path(options: LaunchOptions) -> Path:
    return list_sessions(project_dir(options.home, options.cwd))[0].path


async def long_session(options: LaunchOptions) -> None:
    """Two compactions, prompts between and after them, and so much text before that nobody reads the file whole."""
    (options.cwd / "a.txt").write_text("alpha\n" * 50)
    async with running_agent(options) as agent:
        await agent.command("rename", "x" * 1_200_000, SettingMoved)
        await agent.command("rename", "a title", SettingMoved)
        await agent.prompt("count")
        await agent.command("compact", "", CompactionFinished)
        await agent.prompt("again")
        await agent.command("compact", "", CompactionFinished)
        await agent.prompt("and again")


def everything(state: ConversationState) -> dict[str, Any]:
    """What a conversation asks its state for."""
    view = state.view
    return {
        "session": state.session,
        "settings": state.settings,
        "profiles": state.profiles,
        "queued_prompts": state.queued_prompts,
        "tracking": state.tracking,
        "totals": state.totals,
        "source_totals": state.source_totals,
        "failures": state.compaction_failures,
        "notes": (state.notes, state.notes_written),
        "work": state.work,
        "pins": state.pins,
        "items": [(item.record, item.overlay) for item in view],
        "epoch": view.epoch,
        "boundary": view.boundary,
        "boundaries": state.boundaries,
        "files": state.files_by_use(),
        "known": {path: state.known_file(path) for path in state.files},
        "next_seq": state.next_seq,
        "head_seq": state.head_seq,
        "open": state.open_transactions,
    }


async def test_a_state_opened_from_its_end_equals_that_of_a_full_reading(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
    path = session_path(options)
    opened = open_session(path)
    assert opened.state.is_partial
    assert len(opened.state.records) < len(read_session(path).records) / 2
    full = ConversationState(read_session(path).records)
    assert everything(opened.state) == everything(full)
    opened.state.complete(read_session(path).records)
    assert everything(opened.state) == everything(full)
    assert opened.state.branch == full.branch


async def test_the_next_request_is_the_same_to_the_byte_however_the_session_was_opened(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
        path = session_path(options)
        whole = path.with_name("whole" + path.name)
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        kept = [line for line in lines if line["type"] != "state_saved"]
        whole.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in kept))
        bodies = []
        for wanted in (path.stem, whole.stem):
            count = len(server.message_requests)
            async with running_agent(replace(options, resume=wanted)) as agent:
                await agent.prompt("what now?")
            bodies.append(server.message_requests[count].body)
    assert bodies[0] == bodies[1]


async def test_ten_resumes_in_a_row_send_the_same_history(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
        path = session_path(options)
        backup = path.read_bytes()
        bodies = []
        for _ in range(10):
            async with running_agent(replace(options, is_continued=True)):
                pass
        for data in (backup, path.read_bytes()):
            path.write_bytes(data)
            count = len(server.message_requests)
            async with running_agent(replace(options, is_continued=True)) as agent:
                await agent.prompt("what now?")
            bodies.append(server.message_requests[count].body)
    assert bodies[0] == bodies[1]


async def test_undo_and_rewind_reach_behind_what_was_read(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
        async with running_agent(replace(options, is_continued=True)) as agent:
            older = await agent.command("older", "", OlderRecords)
            assert agent.all_of(SessionOpened)[0].has_older
            assert older.records
            await agent.command("rewind", "3 conversation", PromptReturned)
    opened = open_session(session_path(options))
    assert everything(opened.state) == everything(ConversationState(read_session(session_path(options)).records))
    assert not opened.state.boundaries
    assert not any(item.is_prompt for item in opened.state.view)


async def test_the_context_report_counts_what_was_cleared_before_the_part_that_was_read(tmp_path: Path) -> None:
    clock = SteadyClock()
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.txt").write_text("alpha\n" * 50)
        async with running_agent(options, clock=clock) as agent:
            await agent.command("rename", "x" * 1_200_000, SettingMoved)
            await agent.prompt("count")
            clock.pass_time(hours=2)
            await agent.prompt("again")
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("and again")
        async with running_agent(replace(options, is_continued=True), clock=clock) as agent:
            report = await agent.command("context", "", Report)
            assert agent.all_of(SessionOpened)[0].has_older
    assert "old results cleared" in report.text


async def test_a_fork_is_a_copy_that_goes_on_alone(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
        path = session_path(options)
        before = path.read_bytes()
        holder, fork_options = replace(options, is_continued=True), replace(options, resume=path.stem, is_forked=True)
        async with running_agent(holder) as first:
            # Only once it has the session: the newest one, which it goes on with, is else the copy.
            await first.until(lambda: bool(first.all_of(SessionOpened)))
            async with running_agent(fork_options) as fork:
                await fork.prompt("elsewhere")
                opened = fork.all_of(SessionOpened)[0]
    assert path.read_bytes() == before
    copy = path.with_name(f"{opened.session_id}.jsonl")
    state = open_session(copy).state
    assert state.session is not None
    assert (state.session.session_id, state.session.forked_from) == (copy.stem, path.stem)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert everything(state) == everything(ConversationState(read_session(copy).records))


@pytest.mark.parametrize("at_least_bytes", [1, 10_000, 10**9])
async def test_older_records_come_in_stretches_that_leave_nothing_out(tmp_path: Path, at_least_bytes: int) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
    path = session_path(options)
    opened = open_session(path)
    begin, records = opened.begin_offset, list(opened.state.recent)
    assert begin > 0
    while begin:
        older, begin = older_records(path, begin, at_least_bytes=at_least_bytes)
        records = [*older, *records]
    assert [record.seq for record in records] == [record.seq for record in read_session(path).records]


async def test_a_saved_state_that_does_not_fit_the_file_is_not_believed(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
    path = session_path(options)
    full = everything(ConversationState(read_session(path).records))
    moved = path.with_name("moved.jsonl")
    first, _, rest = path.read_bytes().partition(b"\n")
    moved.write_bytes(first.replace(b'{"seq"', b'{   "seq"') + b"\n" + rest)
    opened = open_session(moved)
    assert not opened.state.is_partial
    assert everything(opened.state) == full
    shutil.copyfile(path, moved)
    with moved.open("ab") as file:
        file.write(b'{"seq":99999,"type":"user","uu')
    opened = open_session(moved)
    assert opened.state.is_partial
    assert opened.problems
    assert everything(opened.state) == full


def test_whoever_adds_to_the_state_must_save_it_too() -> None:
    """A field that is not listed here was added since: `pyagent.saved_state` and `everything` must know it."""
    assert {f.name for f in fields(Branch)} == {
        *("records", "entries", "pending", "view", "files", "boundaries", "pins", "notes", "work"),
    }
    assert {name for name in vars(ConversationState()) if not name.startswith("_")} == {
        *("records", "session", "settings", "profiles", "queued", "tracking", "totals", "source_totals"),
        *("compaction_failures", "notes_written"),
    }


async def test_states_are_saved_behind_every_boundary_and_hold_no_results_twice(tmp_path: Path) -> None:
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        await long_session(options)
    lines = session_path(options).read_bytes().splitlines()
    saved = [line for line in lines if b'"type":"state_saved"' in line]
    assert len(saved) == 2
    assert max(len(line) for line in saved) < 30_000
