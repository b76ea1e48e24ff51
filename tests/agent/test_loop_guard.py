"""The guard against going round in circles: what counts as the same call again, and what follows from it."""

from __future__ import annotations

import pytest

from pyagent.agent.loop_guard import REPEATS_STOPPED, REPEATS_TOLD, LoopGuard
from pyagent.commands import SubmitPrompt
from pyagent.events import Notice, TurnFinished
from pyagent.messages import ImageBlock, JsonObject, TextBlock
from tests.agent.test_conversation import call, response, stage, text
from tests.fakes.scripted import FakeTool

SAME = ("Bash", {"command": "make"}, "error", True)


def count_after(*calls: tuple[str, JsonObject, str, bool]) -> int:
    guard = LoopGuard()
    for name, tool_input, result, is_error in calls:
        guard = guard.after(name, tool_input, (TextBlock(result),), is_error, name)
    return guard.count


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ((SAME, SAME, SAME), 3),
        ((SAME, ("Bash", {"command": "make", "description": "Try again"}, "error", True)), 2),
        ((SAME, ("Bash", {"command": "make -k"}, "error", True)), 1),
        ((SAME, ("Bash", {"command": "make"}, "ok", True)), 1),
        ((SAME, ("Bash", {"command": "make"}, "error", False)), 1),
        ((SAME, SAME, ("Read", {}, "x", False), SAME), 1),
    ],
    ids=[
        "the same",
        "the same with another description",
        "another input",
        "another result",
        "an error first, then none",
        "something else in between",
    ],
)
def test_only_the_same_call_with_the_same_result_in_a_row_counts(
    calls: tuple[tuple[str, JsonObject, str, bool], ...], count: int
) -> None:
    assert count_after(*calls) == count


def test_another_image_is_another_result() -> None:
    guard = LoopGuard()
    for data in ("AAAA", "BBBB"):
        guard = guard.after("Read", {}, (ImageBlock({"type": "base64", "data": data}),), False, "Read")
    assert guard.count == 1


async def test_the_third_time_in_a_row_the_model_is_told_once() -> None:
    script = [response(call(f"c{n}", "again")) for n in range(REPEATS_TOLD + 1)]
    async with stage([*script, response(text("done"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        told = {use_id for use_id, result in s.results().items() if "same Echo call" in result}
        assert told == {f"c{REPEATS_TOLD - 1}"}
        assert s.results()[f"c{REPEATS_TOLD - 1}"].startswith("again\n<system-reminder>")
        assert (finished.stop_reason, s.of(Notice)) == ("end_turn", [])


async def test_a_model_that_goes_on_all_the_same_is_stopped_and_the_person_is_told_the_call() -> None:
    script = [response(call(f"c{n}", "again")) for n in range(REPEATS_STOPPED)]
    async with stage([*script, response(text("fine"))]) as s:
        s.conversation.send(SubmitPrompt("go"))
        finished = await s.until_event(TurnFinished)
        assert finished.stop_reason == "loop"
        assert len(s.results()) == REPEATS_STOPPED
        [notice] = s.of(Notice)
        assert "Echo" in notice.text
        assert notice.hint
        s.conversation.send(SubmitPrompt("go on"))
        await s.until_event(TurnFinished, 2)
        assert s.texts()[-1] == "fine"


async def test_calls_that_stand_in_one_response_are_all_answered_before_the_turn_stops() -> None:
    uses = [call(f"c{n}", "again") for n in range(REPEATS_STOPPED + 2)]
    async with stage([response(*uses)], FakeTool(is_read_only=False)) as s:
        s.conversation.send(SubmitPrompt("go"))
        await s.until_event(TurnFinished)
        assert len(s.results()) == REPEATS_STOPPED + 2


async def test_a_new_prompt_starts_the_count_anew() -> None:
    rounds = [response(call(f"c{n}", "again")) for n in range(4)]
    async with stage([*rounds[:2], response(text("one")), *rounds[2:], response(text("two"))]) as s:
        for number, prompt in enumerate(("go", "again"), start=1):
            s.conversation.send(SubmitPrompt(prompt))
            await s.until_event(TurnFinished, number)
        assert not any("same Echo call" in result for result in s.results().values())
