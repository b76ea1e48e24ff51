"""Summaries that take their time, break off, never come or are none: over the wire, with time that is moved by hand."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest

from pyagent.commands import RunCommand, SubmitPrompt
from pyagent.compaction.full import MAX_COMPACT_STREAMING_RETRIES
from pyagent.events import (
    CompactionEnded,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    RecordCommitted,
    StreamSilent,
    TurnFinished,
)
from pyagent.log import Boundary
from tests.agent.background import FORGETFUL_SUMMARY, Worker, kind_of, turns_of_calls
from tests.agent.moved_time import move_time, run_on_movable_loop
from tests.agent.support import LiveAgent, SteadyClock, launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import divergence
from tests.fakes.script import Answer, Request, after_deltas, eof, reply, stall, tool_use

WINDOW_TOKENS = 60_000
IDLE_LIMIT_S = 30.0
GAP_S = 15.0
GAPS = 5
"""75 s in all: more than twice what a stream may be silent, as half of all real summaries last more than a minute."""
DELTA_CHARS = 500
"""More than is written between two tellings of progress."""
ENVIRON = {
    "PYAGENT_SESSION_MEMORY": "0",
    "CLAUDE_STREAM_IDLE_TIMEOUT_MS": str(int(IDLE_LIMIT_S * 1_000)),
    "API_TIMEOUT_MS": str(int(IDLE_LIMIT_S * 1_000)),
}
PROGRESS_OF_TWO = [0, 138, 277]
"""Tokens told of while two deltas of a summary come: half a thousand characters at 3.6 a token."""
SUMMARY_ATTEMPTS = 1 + MAX_COMPACT_STREAMING_RETRIES
LONG_SUMMARY = FORGETFUL_SUMMARY.replace("Some work.", "Some work was done. " * 200)


WORK = {"manual": (1, 2), "auto": (2, 8)}
"""What happens before: with `auto`, the second turn crosses the trigger at once, so that no draft was made before."""


def slow_summary() -> Answer:
    """Silent after each of the first deltas, until the server is told to go on."""
    whole = reply(LONG_SUMMARY, delta_chars=DELTA_CHARS)
    return reduce(lambda answer, count: stall(answer, after_deltas(count)), range(1, GAPS + 1), whole)


async def wait_for_gap(server: FakeMessagesServer, agent: LiveAgent, since: int, gap: int) -> None:
    """Until the server is silent for that time (from 1), and all it wrote before was seen."""
    written = gap * DELTA_CHARS
    await server.wait_until(lambda: server.stalled_count == 1)
    await agent.until(lambda: any(tokens * 4 > written for tokens in progress(agent, since)))


async def wait_for_the_end_of_silence(agent: LiveAgent, since: int) -> None:
    await agent.until(lambda: StreamSilent(0.0, IDLE_LIMIT_S) in agent.events[since:])


async def wait_for_attempt(server: FakeMessagesServer, worker: Worker, attempt: int) -> None:
    """Until the summary is asked for that time (from 1), and the server is silent in it."""
    await server.wait_until(lambda: worker.counts["summary"] == attempt and server.stalled_count == 1)


async def wait_for_progress(agent: LiveAgent, since: int, told: list[int]) -> None:
    await agent.until(lambda: progress(agent, since) == told)


def progress(agent: LiveAgent, since: int) -> list[int]:
    return [event.summary_tokens for event in agent.events[since:] if isinstance(event, CompactionProgress)]


@pytest.mark.parametrize("trigger", ["manual", "auto"])
def test_a_summary_that_takes_longer_than_any_limit_is_waited_for_while_it_comes(tmp_path: Path, trigger: str) -> None:
    async def play() -> None:
        clock = SteadyClock()
        worker = Worker(turns_of_calls(*WORK[trigger]), summary=slow_summary())
        async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS, clock=clock.seconds) as server:
            options = with_environ(launch_options(tmp_path, server.url), ENVIRON)
            async with running_agent(options, clock=clock) as agent:
                await agent.prompt("begin")
                agent.send(SubmitPrompt("go on"))
                if trigger == "manual":
                    await agent.next_of(TurnFinished, since=len(agent.events))
                    agent.send(RunCommand("compact", "in short"))
                started = await agent.next_of(CompactionStarted, since=0)
                since = agent.events.index(started)
                for gap in range(1, GAPS + 1):
                    await wait_for_gap(server, agent, since, gap)
                    seen = len(agent.events)
                    move_time(GAP_S, clock)
                    silent = await agent.next_of(StreamSilent, since=seen)
                    assert silent.limit_s == IDLE_LIMIT_S
                    server.release()
                    await wait_for_the_end_of_silence(agent, seen)
                finished = await agent.next_of(CompactionFinished, since=since)
                after = await agent.prompt("hello")
            server.assert_finished()
        assert (finished.trigger, finished.layer, finished.calls) == (trigger, "full", 1)
        assert finished.duration_s == GAPS * GAP_S
        shown = progress(agent, since)
        assert shown == sorted(shown)
        assert len(set(shown)) > GAPS
        assert agent.slept.delays_s == []
        assert isinstance(after, TurnFinished)
        assert len(state_on_disk(options).boundaries) == 1

    run_on_movable_loop(play())


def test_a_summary_that_falls_silent_is_given_up_in_words_and_the_session_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        clock = SteadyClock()
        silent = stall(reply(LONG_SUMMARY, delta_chars=DELTA_CHARS), after_deltas(2))
        worker = Worker(turns_of_calls(*WORK["manual"]), summary=silent)
        async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS, clock=clock.seconds) as server:
            options = with_environ(launch_options(tmp_path, server.url), ENVIRON)
            async with running_agent(options, clock=clock) as agent:
                await agent.prompt("begin")
                await agent.prompt("go on")
                since = len(agent.events)
                agent.send(RunCommand("compact", "in short"))
                for attempt in range(1, SUMMARY_ATTEMPTS + 1):
                    await wait_for_attempt(server, worker, attempt)
                    # Each attempt counts from nothing: what the one before had written is withdrawn.
                    await wait_for_progress(agent, since, PROGRESS_OF_TWO * attempt)
                    move_time(IDLE_LIMIT_S, clock)
                finished = await agent.next_of(CompactionFinished, since=since)
                after = await agent.prompt("hello")
        assert worker.counts["summary"] == SUMMARY_ATTEMPTS
        assert finished.layer == "extractive"
        assert "Compaction failed: The answer broke off: no data for 30 s." in agent.notices
        assert isinstance(after, TurnFinished)

    run_on_movable_loop(play())


@pytest.mark.parametrize("trigger", ["manual", "auto"])
async def test_a_summary_that_breaks_off_is_never_told_as_a_success_and_costs_three_calls_at_most(
    tmp_path: Path, trigger: str
) -> None:
    broken = eof(reply(LONG_SUMMARY, delta_chars=DELTA_CHARS), after_deltas(2))
    worker = Worker(turns_of_calls(*WORK[trigger]), summary=broken)
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), ENVIRON)
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            await agent.prompt("go on")
            if trigger == "manual":
                agent.send(RunCommand("compact", "in short"))
                await agent.next_of(CompactionFinished, since=0)
            await agent.prompt("and now")
            ended = await agent.prompt("and this is answered")
        server.raise_failures()
    told = [
        event for event in agent.events if isinstance(event, CompactionStarted | CompactionEnded | CompactionFinished)
    ]
    made = [type(event) for event in told]
    # The last one makes do without a model; those before it left the conversation as it was.
    assert made[-2:] == [CompactionStarted, CompactionFinished]
    assert made[:-2] == [CompactionStarted, CompactionEnded] * (len(made) // 2 - 1)
    (boundary,) = [event for event in agent.all_of(RecordCommitted) if isinstance(event.record.payload, Boundary)]
    assert agent.events.index(boundary) < agent.events.index(told[-1])
    assert {event.outcome for event in told if isinstance(event, CompactionEnded)} <= {"failed"}
    assert worker.counts["summary"] == SUMMARY_ATTEMPTS * made.count(CompactionStarted)
    assert any(text.startswith("Compaction failed: The answer broke off") for text in agent.notices)
    assert isinstance(ended, TurnFinished)
    assert "and this is answered" in str(server.message_requests[-1].body["messages"])


async def test_a_summary_that_is_a_tool_call_is_refused_behind_the_same_prefix_and_asked_for_again(
    tmp_path: Path,
) -> None:
    turns = turns_of_calls(1, 2)
    answers = iter([reply(tool_use("Bash", {"command": "touch ran"})), reply(LONG_SUMMARY)])
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        if kind_of(request.last_text) != "summary" and not asked:
            return turns(request)
        asked.append(request)
        return next(answers)

    async with FakeMessagesServer(answer, window_tokens=WINDOW_TOKENS) as server:
        options = with_environ(launch_options(tmp_path, server.url), ENVIRON)
        async with running_agent(options) as agent:
            await agent.prompt("begin")
            await agent.prompt("go on")
            main = server.message_requests[-1]
            finished = await agent.command("compact", "in short", CompactionFinished)
        server.assert_finished()
    first, second = asked
    assert (finished.layer, finished.calls) == ("full", 2)
    assert first.body["tools"] == second.body["tools"] == main.body["tools"]
    assert divergence(first.body, second.body) is None, "the retry only appends, so that it reads the cached prefix"
    call, refusal = second.messages[-2:]
    assert [block["type"] for block in call["content"]] == ["tool_use"]
    assert refusal["content"][0]["type"] == "tool_result"
    assert refusal["content"][0]["is_error"]
    assert not (options.cwd / "ran").exists()
