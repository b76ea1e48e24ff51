"""A compaction killed at any write leaves the session wholly before it or wholly after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyagent.agent.session_store import list_sessions, project_dir, read_session
from pyagent.events import CompactionFinished, TurnFinished
from pyagent.log import Boundary
from pyagent.state import ConversationState
from tests.agent.background import Worker
from tests.agent.support import launch_options, running_agent, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import ToolRounds

TORN_BYTES = (1, 40)
"""Cuts within a line, from its end, beside the cut at the line's end."""


def view_of(path: Path) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(item.key for item in ConversationState(read_session(path).records).view)


async def test_killed_at_any_write_of_a_compaction_a_resume_is_before_or_after_it(tmp_path: Path) -> None:
    command = "yes 'the quick brown fox jumps over the lazy dog' | head -n 60 # {round}"
    worker = Worker(ToolRounds([("Bash", {"command": command})], rounds=2))
    async with FakeMessagesServer(worker, window_tokens=60_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"PYAGENT_SESSION_MEMORY": "0"})
        async with running_agent(options) as agent:
            for number in range(3):
                await agent.prompt(f"task {number}")
            path = list_sessions(project_dir(options.home, options.cwd))[0].path
            before_bytes = path.stat().st_size
            await agent.command("compact", "in short", CompactionFinished)
        whole = path.read_bytes()
        before = ConversationState(read_session(path).records[: whole[:before_bytes].count(b"\n")])
        keys_before = tuple(item.key for item in before.view)
        keys_after = view_of(path)
        assert keys_before != keys_after
        ends = [at + 1 for at in range(before_bytes, len(whole)) if whole[at : at + 1] == b"\n"]
        boundary_end = next(end for end in ends if b'"type":"boundary"' in whole[:end].splitlines()[-1])
        cuts = sorted({cut for end in ends for cut in (end, *(end - torn for torn in TORN_BYTES))})
        assert len(ends) > 3
        for cut in (cut for cut in cuts if cut >= before_bytes):
            path.write_bytes(whole[:cut])
            # The boundary line without its newline is complete all the same.
            is_after = cut >= boundary_end - 1
            assert view_of(path) == (keys_after if is_after else keys_before), f"cut at {cut}"
        # And the program itself goes on from a cut in the midst, saying so.
        path.write_bytes(whole[: max(end for end in ends if end < boundary_end)])
        async with running_agent(replace(options, is_continued=True)) as agent:
            assert isinstance(await agent.prompt("hello"), TurnFinished)
            assert any("broken off" in text for text in agent.notices)
        server.assert_finished()
    assert not any(isinstance(record.payload, Boundary) for record in read_session(path).records)
