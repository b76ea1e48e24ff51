"""After a long pause the cache is cold: old results are cleared, once, and said so."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pyagent.agent.session_store import list_sessions, project_dir
from pyagent.compaction.microcompact import CLEARED
from pyagent.launch import LaunchOptions
from pyagent.log import ClearResults
from tests.agent.support import SteadyClock, launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import Recorded
from tests.fakes.script import ToolRounds

TURNS = 40
KEPT = 5


def steps() -> ToolRounds:
    """Each turn: thinking, one call, a closing text."""
    command = "yes 'the quick brown fox jumps over the lazy dog' | head -n 12 # {round}"
    return ToolRounds([("Bash", {"command": command})], rounds=1, think=True)


def results(request: Recorded) -> list[str]:
    return [
        str(block["content"])
        for message in request.body["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def thinking_count(request: Recorded) -> int:
    return sum(block["type"] == "thinking" for message in request.body["messages"] for block in message["content"])


def move_into_the_past(options: LaunchOptions, minutes: float) -> None:
    """Edit the timestamps in the session file, so that its last answer is that old."""
    path = list_sessions(project_dir(options.home, options.cwd))[0].path
    lines = path.read_text("utf-8").splitlines()
    newest = max(json.loads(line)["timestamp"] for line in lines if json.loads(line)["type"] == "assistant")
    shift = datetime.now(UTC) - timedelta(minutes=minutes) - datetime.fromisoformat(newest)

    def shifted(match: re.Match[str]) -> str:
        moved = datetime.fromisoformat(match[2]) + shift
        return f'{match[1]}{moved.isoformat()}"'

    pattern = re.compile(r'("(?:timestamp|request_started_at)":")([^"]+)"')
    path.write_text("".join(pattern.sub(shifted, line) + "\n" for line in lines), "utf-8")


@pytest.fixture
def clock() -> SteadyClock:
    return SteadyClock()


async def talk(options: LaunchOptions, clock: SteadyClock) -> None:
    async with running_agent(options, clock=clock) as agent:
        for number in range(TURNS):
            clock.pass_time(seconds=30)
            await agent.prompt(f"turn {number}")


@pytest.mark.parametrize(("minutes", "is_cleared"), [(61, True), (59, False)])
async def test_a_resume_after_an_hour_clears_all_but_five_results_and_says_so_in_one_line(
    tmp_path: Path, clock: SteadyClock, minutes: float, is_cleared: bool
) -> None:
    async with FakeMessagesServer(steps(), window_tokens=200_000, clock=clock.seconds) as server:
        options = launch_options(tmp_path, server.url)
        await talk(options, clock)
        clock.pass_time(minutes=minutes)
        async with running_agent(replace(options, is_continued=True), clock=clock) as agent:
            count = len(server.message_requests)
            await agent.prompt("after the pause")
            clock.pass_time(minutes=2)
            await agent.prompt("two minutes later")
            told = [text for text in agent.notices if "pause" in text]
        server.assert_finished()
    first, later = server.message_requests[count], server.message_requests[-1]
    cleared = [CLEARED in text for text in results(first)]
    assert sum(cleared) == (TURNS - KEPT if is_cleared else 0)
    assert cleared == sorted(cleared, reverse=True), "the newest stay"
    assert len(told) == (1 if is_cleared else 0)
    if is_cleared:
        assert re.search(r"After a pause of 61 min, 35 old tool results were cleared: [\d,]+ tokens freed", told[0])
        # Thinking behind the first edit is bound to what it was sampled under, and so no longer sent.
        assert thinking_count(first) < TURNS
    else:
        assert thinking_count(first) == 2 * TURNS
    # Two minutes later nothing more is cleared: what was kept then still is.
    assert sum(CLEARED in text for text in results(later)) == sum(cleared)
    ops = [r.payload for r in state_on_disk(options).branch if isinstance(r.payload, ClearResults)]
    assert len(ops) == (1 if is_cleared else 0)


@pytest.mark.parametrize(("minutes", "is_cleared"), [(61, True), (59, False)])
async def test_the_same_holds_by_the_real_clock_for_a_session_file_of_that_age(
    tmp_path: Path, minutes: float, is_cleared: bool
) -> None:
    async with FakeMessagesServer(steps(), window_tokens=200_000) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            for number in range(TURNS):
                await agent.prompt(f"turn {number}")
        move_into_the_past(options, minutes)
        async with running_agent(replace(options, is_continued=True)) as agent:
            count = len(server.message_requests)
            await agent.prompt("after the pause")
        server.assert_finished()
    cleared = sum(CLEARED in text for text in results(server.message_requests[count]))
    assert cleared == (TURNS - KEPT if is_cleared else 0)


@pytest.mark.parametrize(
    ("environ", "is_cleared"),
    [
        ({"DISABLE_COMPACT": "1"}, False),
        ({"DISABLE_AUTO_COMPACT": "1"}, True),
        ({"PYAGENT_TIME_BASED_MICROCOMPACT": "0"}, False),
    ],
)
async def test_the_switches_hold_after_a_pause_too(
    tmp_path: Path, clock: SteadyClock, environ: dict[str, str], is_cleared: bool
) -> None:
    async with FakeMessagesServer(steps(), window_tokens=200_000, clock=clock.seconds) as server:
        options = with_environ(launch_options(tmp_path, server.url), environ)
        async with running_agent(options, clock=clock) as agent:
            for number in range(KEPT + 2):
                await agent.prompt(f"turn {number}")
            clock.pass_time(minutes=90)
            count = len(server.message_requests)
            await agent.prompt("after the pause")
    assert any(CLEARED in text for text in results(server.message_requests[count])) is is_cleared
