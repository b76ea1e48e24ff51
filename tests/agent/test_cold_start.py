"""A long session that is resumed with a cold cache asks how to go on, and does as it is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyagent.agent.cold_start import CLEAR, COMPACT, GO_ON
from pyagent.commands import AnswerQuestion
from pyagent.compaction.microcompact import CLEARED
from pyagent.events import CompactionFinished, QuestionAsked, QuestionSettled
from pyagent.log import ClearResults
from tests.agent.background import Worker
from tests.agent.support import SteadyClock, launch_options, running_agent, state_on_disk, with_environ
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.script import ToolRounds, reply

ROUNDS = 12
KEPT = 5


@pytest.mark.parametrize(
    ("clears_by_itself", "choice", "cleared_count", "first_offer"),
    [
        (True, CLEAR, ROUNDS - KEPT, CLEAR),
        (True, GO_ON, 0, CLEAR),
        (True, "", ROUNDS - KEPT, CLEAR),
        (False, CLEAR, ROUNDS - KEPT, GO_ON),
        (False, "", 0, GO_ON),
        (True, COMPACT, 0, CLEAR),
    ],
)
async def test_the_next_request_is_as_the_person_chose(
    tmp_path: Path, clears_by_itself: bool, choice: str, cleared_count: int, first_offer: str
) -> None:
    clock = SteadyClock()
    rounds = ToolRounds([("Bash", {"command": "seq 1 6000 | head -c 29000 # {round}"})], rounds=ROUNDS)
    worker = Worker(lambda request: reply("Well.") if request.last_text == "go on" else rounds(request))
    async with FakeMessagesServer(worker, window_tokens=200_000, clock=clock.seconds) as server:
        options = with_environ(
            launch_options(tmp_path, server.url),
            {"PYAGENT_SESSION_MEMORY": "0", "PYAGENT_TIME_BASED_MICROCOMPACT": str(int(clears_by_itself))},
        )
        async with running_agent(options, clock=clock) as agent:
            await agent.prompt("count")
        clock.pass_time(minutes=90)
        resumed = replace(options, is_continued=True, is_headless=False)
        async with running_agent(resumed, clock=clock) as agent:
            sent = len(server.message_requests)
            asked = await agent.next_of(QuestionAsked, since=0)
            offers = [option.label for option in asked.questions[0].options]
            assert len(server.message_requests) == sent, "nothing is sent before the person has chosen"
            agent.send(AnswerQuestion(asked.request_id, ((choice,),) if choice else ()))
            await agent.next_of(QuestionSettled, since=0)
            if choice == COMPACT:
                await agent.next_of(CompactionFinished, since=0)
            elif choice == CLEAR:
                await agent.until(lambda: any("old tool results were cleared" in text for text in agent.notices))
            count = len(server.message_requests)
            await agent.prompt("go on")
        server.assert_finished()
    assert sorted(offers) == sorted((CLEAR, GO_ON, COMPACT))
    assert offers[0] == first_offer
    assert str(server.message_requests[count].body["messages"]).count(CLEARED) == cleared_count
    assert bool(state_on_disk(options).boundaries) == (choice == COMPACT)
    ops = [r.payload for r in state_on_disk(options).branch if isinstance(r.payload, ClearResults) and not r.tx]
    assert len(ops) == bool(cleared_count)
