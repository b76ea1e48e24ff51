"""The cached prefix on the wire: what a request wrote, the next one reads, whatever stands between them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.events import CompactionFinished
from tests.agent.support import launch_options, running_agent
from tests.fakes.direct import DirectServer
from tests.fakes.recorded import Recorded
from tests.fakes.script import Request, Script, ToolRounds, reply, thinking, tool_use

MODELS = pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-5-5"])
SUMMARY = "<analysis>.</analysis><summary>" + "\n".join(f"{n}. Section {n}" for n in range(1, 10)) + "</summary>"


def is_summary(request: Request) -> bool:
    return "<summary>" in request.last_text


def marked_tokens(request: Recorded) -> int:
    """Tokens up to the last cache mark: what the next request can read."""
    return int(request.usage["cache_read_input_tokens"] + request.usage["cache_creation_input_tokens"])


def read_tokens(request: Recorded) -> int:
    return int(request.usage["cache_read_input_tokens"])


def mark_count(request: Recorded) -> int:
    return str(request.body).count("'cache_control'")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)


@MODELS
async def test_every_request_reads_the_whole_marked_prefix_of_the_one_before(tmp_path: Path, model: str) -> None:
    server = DirectServer(
        ToolRounds([("Bash", {"command": "seq 1 {round}0"})], rounds=15, think=True, parallel=2), binding="all"
    )
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1", model=model), server) as agent:
        for prompt in ("one", "two", "three"):
            await agent.prompt(prompt)
    assert server.refused == []
    assert len(server.requests) == 48
    for before, after in zip(server.requests, server.requests[1:], strict=False):
        assert read_tokens(after) == marked_tokens(before)
        assert 1 <= mark_count(after) <= 4
    assert not [line for line in agent.notices if "cache" in line]


@MODELS
@pytest.mark.parametrize("call_count", [9, 10, 11, 25, 60])
async def test_a_turn_of_more_blocks_than_the_look_back_still_reads_the_cache(
    tmp_path: Path, model: str, call_count: int
) -> None:
    calls = [tool_use("Glob", {"pattern": f"*{number}"}) for number in range(call_count)]
    server = DirectServer(Script([reply(thinking("All at once."), *calls), "Done.", "Again."]), binding="all")
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1", model=model), server) as agent:
        await agent.prompt("look " * 1_000)
        await agent.prompt("again")
    first, second, third = server.requests
    assert read_tokens(second) == marked_tokens(first) > 1_024
    assert read_tokens(third) == marked_tokens(second)


@MODELS
async def test_the_summary_call_reads_the_conversations_cache(tmp_path: Path, model: str) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq 1 2000"})], rounds=8, think=True, is_summary=is_summary, summary_text=SUMMARY
    )
    server = DirectServer(rounds, window_tokens=80_000, binding="all")
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1", model=model), server) as agent:
        await agent.prompt("count")
        await agent.command("compact", "", CompactionFinished)
    assert server.refused == []
    *_, last, summary = server.requests
    assert read_tokens(summary) >= marked_tokens(last)


@MODELS
async def test_the_system_text_is_still_read_from_the_cache_after_a_compaction(tmp_path: Path, model: str) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq 1 2000"})], rounds=8, think=True, is_summary=is_summary, summary_text=SUMMARY
    )
    server = DirectServer(rounds, window_tokens=80_000, binding="all")
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1", model=model), server) as agent:
        await agent.prompt("count")
        await agent.command("compact", "", CompactionFinished)
        at = len(server.requests)
        await agent.prompt("go on")
    assert read_tokens(server.requests[at]) > 1_024
    assert read_tokens(server.requests[at + 1]) == marked_tokens(server.requests[at])


@MODELS
async def test_the_first_request_after_a_resume_reads_the_cache(tmp_path: Path, model: str) -> None:
    server = DirectServer(ToolRounds([("Bash", {"command": "seq 1 900"})], rounds=4, think=True), binding="all")
    options = launch_options(tmp_path, "http://127.0.0.1:1", model=model)
    git(options.cwd, "init", "-q", "-b", "main")
    async with running_agent(options, server) as agent:
        await agent.prompt("count")
    before = server.requests[-1]
    # What the system text tells of the place is as of the session's start, whatever has become of it.
    git(options.cwd, "checkout", "-q", "-b", "another")
    (options.cwd / "new.txt").write_text("new")
    async with running_agent(replace(options, is_continued=True), server) as agent:
        await agent.prompt("go on")
    assert server.dropped == []
    assert read_tokens(server.requests[5]) == marked_tokens(before)


async def test_a_cache_lost_for_no_reason_of_ours_is_reported_once(tmp_path: Path) -> None:
    server = DirectServer(ToolRounds([("Bash", {"command": "seq 1 2000"})], rounds=3))
    async with running_agent(launch_options(tmp_path, "http://127.0.0.1:1"), server) as agent:
        await agent.prompt("count")
        server.forget_cache()
        await agent.prompt("count again")
    lost = [line for line in agent.notices if "prompt cache was lost" in line]
    assert len(lost) == 1


async def test_thinking_that_comes_back_after_a_compaction_in_mid_task_is_no_unexpected_loss(tmp_path: Path) -> None:
    rounds = ToolRounds(
        [("Bash", {"command": "seq 1 {round}0; seq 1 1500"})],
        rounds=12,
        think=True,
        is_summary=is_summary,
        summary_text=SUMMARY,
    )
    server = DirectServer(rounds, window_tokens=60_000, binding="all")
    options = launch_options(tmp_path, "http://127.0.0.1:1", model="claude-sonnet-4-5")
    async with running_agent(options, server) as agent:
        for prompt in ("one", "two", "three"):
            await agent.prompt(prompt)
    assert server.refused == []
    assert {"thinking" in request.body for request in server.requests} == {True, False}
    assert not [line for line in agent.notices if "prompt cache was lost" in line]
