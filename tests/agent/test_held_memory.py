"""A session that runs for long holds what its view needs: what stands before a compaction is left to the file."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from pyagent.agent.session_reader import open_session
from pyagent.agent.session_store import read_session
from pyagent.events import CompactionFinished, Notice, PromptReturned, Report
from pyagent.launch import LaunchOptions
from pyagent.log import Record, UserEntry
from pyagent.record_lines import record_to_line
from pyagent.state import ConversationState
from tests.agent.support import LiveAgent, launch_options, running_agent
from tests.agent.test_session_reader import everything, rounds, session_path
from tests.fakes.messages_server import FakeMessagesServer

KindT = TypeVar("KindT")


def alive(kind: type[KindT]) -> list[KindT]:
    """All objects of a class that something in this process still holds."""
    gc.collect()
    return [held for held in gc.get_objects() if isinstance(held, kind)]


def held_chars() -> int:
    """What the records in memory would take in a file, whoever holds them."""
    return sum(len(record_to_line(record)) for record in alive(Record))


@pytest.fixture
def earlier() -> list[ConversationState]:
    """What other tests of this process have left, a failed one's traceback for instance."""
    return alive(ConversationState)


def running_state(earlier: list[ConversationState]) -> ConversationState:
    """The state of the one conversation that runs."""
    (state,) = (state for state in alive(ConversationState) if not any(state is other for other in earlier))
    return state


@asynccontextmanager
async def conversing(tmp_path: Path) -> AsyncIterator[tuple[LiveAgent, LaunchOptions]]:
    """An agent whose every prompt takes rounds of tools, in a window that a few turns fill."""
    async with FakeMessagesServer(rounds(), window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        (options.cwd / "a.txt").write_text("alpha\n" * 50)
        async with running_agent(options) as agent:
            yield agent, options


async def play(agent: LiveAgent, count: int) -> None:
    """Turns with tools, a compaction behind each."""
    for _ in range(count):
        await agent.prompt("count")
        await agent.command("compact", "", CompactionFinished)
        agent.events.clear()


async def test_what_is_held_does_not_grow_with_the_turns_played(tmp_path: Path) -> None:
    before = held_chars()
    async with conversing(tmp_path) as (agent, options):
        sizes: list[tuple[int, int]] = []
        for turns in (4, 8):
            await play(agent, turns)
            sizes.append((held_chars() - before, session_path(options).stat().st_size))
    (held, written), (held_later, written_later) = sizes
    # Of each compaction its receipt stays, and of each prompt its text.
    assert held_later - held < (written_later - written) / 20


async def test_a_running_session_holds_exactly_what_one_holds_that_was_just_resumed(
    tmp_path: Path, earlier: list[ConversationState]
) -> None:
    async with conversing(tmp_path) as (agent, options):
        await play(agent, 3)
        await agent.prompt("count")
        running, path = running_state(earlier), session_path(options)
        assert running.is_partial
        resumed = open_session(path, whole_file_bytes=0).state
        assert [record.seq for record in running.records] == [record.seq for record in resumed.records]
        whole = ConversationState(read_session(path).records)
        assert everything(running) == everything(resumed) == everything(whole)


async def test_what_was_let_go_of_is_read_again_by_whoever_looks_back(
    tmp_path: Path, earlier: list[ConversationState]
) -> None:
    async with conversing(tmp_path) as (agent, options):
        await play(agent, 2)
        assert running_state(earlier).is_partial
        await agent.command("export", str(tmp_path / "all.md"), Notice)
        state = running_state(earlier)
        assert not state.is_partial
        assert state.branch == ConversationState(read_session(session_path(options)).records).branch
        del state
        await play(agent, 1)
        assert running_state(earlier).is_partial
        report = await agent.command("compactions", "", Report)
    assert (tmp_path / "all.md").read_text().count("count") >= 2
    assert report.text.count("summary by the model") == 3


async def test_undo_and_rewind_reach_behind_what_was_let_go_of(
    tmp_path: Path, earlier: list[ConversationState]
) -> None:
    async with conversing(tmp_path) as (agent, options):
        await agent.prompt("first")
        said = everything(running_state(earlier))["items"]
        await agent.command("compact", "", CompactionFinished)
        await agent.prompt("second")
        await agent.command("compact", "", CompactionFinished)
        for left in (1, 0):
            await agent.command("compact", "undo", Notice)
            assert len(running_state(earlier).boundaries) == left
        assert everything(running_state(earlier))["items"][: len(said)] == said
        await agent.command("rewind", "1 conversation", PromptReturned)
        await agent.prompt("third")
    state = ConversationState(read_session(session_path(options)).records)
    prompts = [item.entry.text for item in state.view if item.is_prompt and isinstance(item.entry, UserEntry)]
    assert prompts == ["first", "third"]
