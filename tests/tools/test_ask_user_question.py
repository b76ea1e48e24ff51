"""The model's questions: what a person's answers read as, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from pyagent.commands import AnswerQuestion
from pyagent.events import Question, QuestionOption
from tests.tools.support import Workbench

DATABASE = {
    "question": "Which database?",
    "header": "Database",
    "options": [{"label": "SQLite", "description": "One file"}, {"label": "Postgres", "description": "A server"}],
}
EXTRAS = DATABASE | {"question": "Which extras?", "multiSelect": True}


async def answered(bench: Workbench, *given: tuple[str, ...], reason: str = "") -> Any:
    asked: list[tuple[Question, ...]] = []

    async def ask(tool_use_id: str, questions: tuple[Question, ...]) -> AnswerQuestion:
        asked.append(questions)
        return AnswerQuestion("q", given, reason)

    tool = bench.tools["AskUserQuestion"]
    tool_input = tool.input_model.model_validate({"questions": [DATABASE, EXTRAS]})
    result = await tool.run(tool_input, replace(bench.context(), ask=ask))
    options = (QuestionOption("SQLite", "One file"), QuestionOption("Postgres", "A server"))
    assert asked == [
        (Question("Database", "Which database?", options), Question("Database", "Which extras?", options, True))
    ]
    return result


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((("SQLite",), ("SQLite", "Postgres")), "Which database?\n→ SQLite\n\nWhich extras?\n→ SQLite, Postgres"),
        ((("neither, use files",), ("SQLite",)), "Which database?\n→ neither, use files"),
        ((("SQLite",), ()), "Which extras?\n→ (no answer)"),
    ],
    ids=["labels", "words of their own", "one left out"],
)
async def test_answers_stand_below_their_questions(
    bench: Workbench, given: tuple[tuple[str, ...], ...], told: str
) -> None:
    result = await answered(bench, *given)
    assert told in result.text
    assert not result.is_error


async def test_questions_left_unanswered_are_an_error_with_the_reason(bench: Workbench) -> None:
    result = await answered(bench, reason="The user closed the questions.")
    assert result.is_error
    assert result.text == "The user closed the questions."


async def test_where_nobody_sits_the_model_is_told_to_decide(bench: Workbench) -> None:
    result = await bench.call("AskUserQuestion", questions=[DATABASE])
    assert result.is_error
    assert "Nobody is here" in result.text


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [DATABASE] * 5,
        [DATABASE | {"options": [{"label": "only"}]}],
        [DATABASE | {"options": [{"label": str(n)} for n in range(5)]}],
        [DATABASE | {"question": ""}],
    ],
    ids=["none", "five", "one option", "five options", "no words"],
)
def test_what_is_no_fair_question_is_refused(bench: Workbench, questions: list[Any]) -> None:
    with pytest.raises(ValidationError):
        bench.tools["AskUserQuestion"].input_model.model_validate({"questions": questions})
