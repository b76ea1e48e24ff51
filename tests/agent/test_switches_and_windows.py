"""The kill switches on every path, each override, and windows from 8k to 1M: over the wire."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    GaugeMoved,
    Report,
    RequestStarted,
    SettingMoved,
    TurnFailed,
    TurnFinished,
)
from pyagent.launch import LaunchOptions
from pyagent.log import Boundary, NotesSaved
from tests.agent.background import Worker
from tests.agent.support import launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Answer, Request, ToolRounds, http_error, prompt_too_long, reply

WINDOW_TOKENS = 60_000
NO_NOTES = {"PYAGENT_SESSION_MEMORY": "0"}


def reading(rounds: int, lines: int = 190) -> ToolRounds:
    command = f"yes 'the quick brown fox jumps over the lazy dog' | head -n {lines} # {{round}}"
    return ToolRounds([("Bash", {"command": command})], rounds=rounds)


def compactions(options: LaunchOptions) -> list[str]:
    return [r.payload.layer for r in state_on_disk(options).records if isinstance(r.payload, Boundary)]


SWITCHES: dict[str, dict[str, str]] = {
    "nothing": {},
    "DISABLE_COMPACT": {"DISABLE_COMPACT": "1"},
    "DISABLE_AUTO_COMPACT": {"DISABLE_AUTO_COMPACT": "1"},
    "PYAGENT twin": {"DISABLE_AUTO_COMPACT": "0", "PYAGENT_DISABLE_AUTO_COMPACT": "1"},
}


@pytest.mark.parametrize("switch", SWITCHES)
async def test_path_threshold(tmp_path: Path, switch: str) -> None:
    async with FakeMessagesServer(Worker(reading(9)), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {**NO_NOTES, **SWITCHES[switch]})
        async with running_agent(options) as agent:
            await agent.prompt("read on")
    assert bool(compactions(options)) is (switch == "nothing")


@pytest.mark.parametrize("switch", SWITCHES)
async def test_path_background_draft(tmp_path: Path, switch: str) -> None:
    worker = Worker(reading(7))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {**NO_NOTES, **SWITCHES[switch]})
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            await agent.prompt("a little more")
    assert bool(worker.counts["summary"]) is (switch == "nothing")


@pytest.mark.parametrize("switch", SWITCHES)
async def test_path_session_memory(tmp_path: Path, switch: str) -> None:
    async with FakeMessagesServer(Worker(reading(8)), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), SWITCHES[switch])
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            if switch == "nothing":
                await agent.until(
                    lambda: any(
                        isinstance(getattr(getattr(event, "record", None), "payload", None), NotesSaved)
                        for event in agent.events
                    )
                )
    saved = any(isinstance(record.payload, NotesSaved) for record in state_on_disk(options).records)
    assert saved is (switch == "nothing")


@pytest.mark.parametrize("switch", SWITCHES)
async def test_path_reactive(tmp_path: Path, switch: str) -> None:
    work = reading(3)
    is_refused = False

    def answer(request: Request) -> Answer:
        nonlocal is_refused
        if "and now" in request.last_text and not is_refused:
            is_refused = True
            return prompt_too_long(WINDOW_TOKENS + 900, WINDOW_TOKENS)
        return work(request)

    async with FakeMessagesServer(Worker(answer), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {**NO_NOTES, **SWITCHES[switch]})
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            ended = await agent.prompt("and now")
            again = await agent.prompt("still there?")
    assert isinstance(ended, TurnFinished if switch == "nothing" else TurnFailed)
    assert isinstance(again, TurnFinished)
    assert bool(compactions(options)) is (switch == "nothing")


@pytest.mark.parametrize(
    ("rounds", "wording", "limit_tokens"),
    [
        (4, "Input length 43,000 exceeds what this deployment takes, 40,000 tokens", 40_000),
        (4, "The input length exceeds the maximum of this deployment", None),
        (0, "The input length exceeds the maximum of this deployment", None),
    ],
)
async def test_a_refusal_in_unknown_words_below_the_trigger_teaches_the_limit_if_the_size_agrees(
    tmp_path: Path, rounds: int, wording: str, limit_tokens: int | None
) -> None:
    work = reading(rounds)
    refusals = [http_error(400, "invalid_request_error", wording)]

    def answer(request: Request) -> Answer:
        if "and now" not in request.last_text:
            return work(request)
        return refusals.pop() if refusals else reply("Fine.")

    async with FakeMessagesServer(Worker(answer), window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            believed = agent.all_of(GaugeMoved)[-1].gauge
            ended = await agent.prompt("and now")
            taught = agent.all_of(GaugeMoved)[-1].gauge
    assert believed.used_tokens < believed.trigger_tokens
    if not rounds:
        # So little text is too long for nobody: the refusal is about something else, and told as it is.
        assert isinstance(ended, TurnFailed)
        assert wording in ended.message
        assert taught.window_tokens == WINDOW_TOKENS
        assert not compactions(options)
        return
    assert isinstance(ended, TurnFinished)
    assert compactions(options) == ["reactive"]
    assert taught.window_tokens == (limit_tokens or taught.window_tokens) < WINDOW_TOKENS


@pytest.mark.parametrize("switch", SWITCHES)
async def test_path_by_hand(tmp_path: Path, switch: str) -> None:
    worker = Worker(reading(3))
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), {**NO_NOTES, **SWITCHES[switch]})
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            since = len(agent.events)
            await agent.command(
                "compact", "in short", CompactionFinished if switch != "DISABLE_COMPACT" else CompactionEnded
            )
            told = [event.reason for event in agent.events[since:] if isinstance(event, CompactionEnded)]
    assert bool(worker.counts["summary"]) is (switch != "DISABLE_COMPACT")
    assert any("DISABLE_COMPACT" in text for text in told) is (switch == "DISABLE_COMPACT")


async def test_with_auto_compact_off_a_full_context_refuses_prompts_and_disable_compact_leaves_it_to_the_server(
    tmp_path: Path,
) -> None:
    for switch, kind in (("DISABLE_AUTO_COMPACT", "ContextFullError"), ("DISABLE_COMPACT", "")):
        async with FakeMessagesServer(Worker(reading(14)), window_tokens=WINDOW_TOKENS) as server:
            options = with_environ(launch_options(tmp_path / switch, server.url), {switch: "1"})
            async with running_agent(options) as agent:
                await agent.prompt("read on")
                count = len(server.message_requests)
                ended = await agent.prompt("more")
        assert (getattr(ended, "kind", "") == "ContextFullError") is bool(kind)
        assert (len(server.message_requests) == count) is bool(kind)


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, "compacts at 67,000"),
        ({"PYAGENT_AUTO_COMPACT_WINDOW": "150000", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, "compacts at 117,000"),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "900000"}, "compacts at 167,000"),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, "compacts at 90,000"),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "99"}, "compacts at 167,000"),
        ({"DISABLE_AUTO_COMPACT": "1"}, "does not compact by itself · refuses prompts at 177,000"),
        ({"DISABLE_AUTO_COMPACT": "1", "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "50000"}, "refuses prompts at 50,000"),
    ],
)
async def test_each_override_moves_its_line(tmp_path: Path, environ: dict[str, str], shown: str) -> None:
    async with FakeMessagesServer(Worker(reading(0)), window_tokens=200_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), environ)
        async with running_agent(options) as agent:
            await agent.prompt("hello")
            report = await agent.command("context", "", Report)
    assert shown in report.text
    assert not any("ignored" in notice for notice in agent.notices)


@pytest.mark.parametrize("value", ["7999", "lots", "-1", "1e6"])
async def test_an_override_that_means_nothing_is_told_once_and_ignored(tmp_path: Path, value: str) -> None:
    async with FakeMessagesServer(Worker(reading(0)), window_tokens=200_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": value})
        async with running_agent(options) as agent:
            await agent.prompt("hello")
            report = await agent.command("context", "", Report)
    assert sum("CLAUDE_CODE_AUTO_COMPACT_WINDOW" in notice for notice in agent.notices) == 1
    assert "compacts at 167,000" in report.text


@pytest.mark.parametrize("window_tokens", [8_000, 16_000, 32_000, 60_000, 100_000, 200_000, 1_000_000])
async def test_forty_rounds_meet_no_refusal_in_any_window(tmp_path: Path, window_tokens: int) -> None:
    lines = max(min(window_tokens // 2_000, 60), 4)
    worker = Worker(reading(8, lines))
    async with FakeMessagesServer(worker, window_tokens=window_tokens) as server:
        options = launch_options(tmp_path, server.url, tools=("Bash", "Read"), system_prompt="You write code.")
        async with running_agent(options) as agent:
            for number in range(5):
                ended = await agent.prompt(f"part {number}")
                assert isinstance(ended, TurnFinished), ended
        server.assert_finished()
    assert worker.counts["main"] >= 40
    assert all(request.body["stream"] for request in server.message_requests)
    # No request of the main loop goes out while the gauge is at the trigger: both are made of the same count.
    shown = [event for event in agent.events if isinstance(event, GaugeMoved | RequestStarted)]
    gauges = [
        before.gauge
        for before, after in itertools.pairwise(shown)
        if isinstance(before, GaugeMoved) and isinstance(after, RequestStarted)
    ]
    assert len(gauges) >= 40
    assert all(gauge.used_tokens < gauge.trigger_tokens for gauge in gauges)


async def test_a_switch_to_a_smaller_window_compacts_before_the_next_request(tmp_path: Path) -> None:
    windows = {"claude-sonnet-5-5": 1_000_000, "claude-haiku-4-5": 60_000}
    async with FakeMessagesServer(Worker(reading(9)), windows=windows) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            await agent.prompt("read on")
            assert not compactions(options)
            await agent.command("model", "claude-haiku-4-5", SettingMoved)
            ended = await agent.prompt("go on")
        assert not server.refusals
    assert isinstance(ended, TurnFinished)
    assert compactions(options)
