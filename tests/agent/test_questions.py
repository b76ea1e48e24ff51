"""The model's questions on their way through the conversation."""

from __future__ import annotations

import asyncio

from pyagent.agent.tool_runner import INTERRUPTED_TEXT
from pyagent.commands import AnswerQuestion, Interrupt, SubmitPrompt
from pyagent.events import Question, QuestionAsked, QuestionOption, QuestionSettled, TurnFinished
from tests.agent.test_conversation import Stage, call, response, stage, text
from tests.fakes.scripted import FakeTool

QUESTIONS = (Question("Way", "Which way?", (QuestionOption("left"), QuestionOption("right"))),)


def asking(stages: list[Stage], given: list[AnswerQuestion]) -> FakeTool:
    """A tool that asks the person before it answers."""

    async def ask() -> None:
        given.append(await stages[0].conversation.ask_questions("a", QUESTIONS))

    return FakeTool(before=lambda words: ask())


async def test_an_answer_reaches_the_tool_that_asked() -> None:
    stages: list[Stage] = []
    given: list[AnswerQuestion] = []
    async with stage([response(call("a")), response(text("done"))], asking(stages, given)) as s:
        stages.append(s)
        s.conversation.send(SubmitPrompt("go"))
        asked = await s.until_event(QuestionAsked)
        assert asked.questions == QUESTIONS
        s.conversation.send(AnswerQuestion("another question", (("right",),)))
        s.conversation.send(AnswerQuestion(asked.request_id, (("left",),)))
        s.conversation.send(AnswerQuestion(asked.request_id, (("right",),)))
        await s.until_event(TurnFinished)
        assert [answer.answers for answer in given] == [(("left",),)]
        assert s.of(QuestionSettled) == [QuestionSettled(asked.request_id, is_answered=True)]


async def test_an_interrupt_withdraws_the_questions() -> None:
    stages: list[Stage] = []
    async with stage([response(call("a"))], asking(stages, [])) as s:
        stages.append(s)
        s.conversation.send(SubmitPrompt("go"))
        asked = await s.until_event(QuestionAsked)
        s.conversation.send(Interrupt())
        await s.until_event(TurnFinished)
        assert s.of(QuestionSettled) == [QuestionSettled(asked.request_id, is_answered=False)]
        assert s.results() == {"a": INTERRUPTED_TEXT}
        s.conversation.send(AnswerQuestion(asked.request_id, (("left",),)))
        await asyncio.sleep(0)
