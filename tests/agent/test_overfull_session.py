"""A conversation that is larger than the server's window: `/compact` makes it fit, whatever becomes of the summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.events import CompactionFinished, TurnFinished
from tests.agent.background import FORGETFUL_SUMMARY, Worker, turns_of_calls
from tests.agent.support import launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import Answer, prompt_too_long, reply

WINDOW_TOKENS = 60_000
NO_NOTES = {"PYAGENT_SESSION_MEMORY": "0"}


@pytest.mark.parametrize(
    ("summary", "layer"),
    [(reply(FORGETFUL_SUMMARY), "full"), (prompt_too_long(WINDOW_TOKENS + 500, WINDOW_TOKENS), "extractive")],
    ids=["a summary", "no summary"],
)
async def test_compacting_by_hand_works_when_the_conversation_no_longer_fits(
    tmp_path: Path, summary: Answer, layer: str
) -> None:
    async with FakeMessagesServer(Worker(turns_of_calls(8, 8, 8)), window_tokens=200_000) as server:
        options = with_environ(launch_options(tmp_path, server.url), NO_NOTES)
        async with running_agent(options) as agent:
            for number in range(3):
                await agent.prompt(f"task {number}")
        assert server.message_requests[-1].input_tokens > WINDOW_TOKENS
    worker = Worker(turns_of_calls(), summary=summary)
    async with FakeMessagesServer(worker, window_tokens=WINDOW_TOKENS, id_prefix="small") as server:
        options = with_environ(options, {"ANTHROPIC_BASE_URL": server.url})
        async with running_agent(replace(options, is_continued=True)) as agent:
            finished = await agent.command("compact", "in short", CompactionFinished)
            ended = await agent.prompt("go on")
        server.raise_failures()
        requests = server.message_requests
    assert finished.layer == layer
    assert finished.after_tokens < WINDOW_TOKENS
    assert worker.counts["summary"] <= 6
    assert isinstance(ended, TurnFinished)
    assert not requests[-1].is_refusal
    said = str(requests[-1].body["messages"])
    assert all(f"task {number}" in said for number in range(3))
    assert len(state_on_disk(options).boundaries) == 1
