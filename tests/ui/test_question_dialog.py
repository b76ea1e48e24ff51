"""The dialog of the model's own questions, by key and by mouse, and its way through the front ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.containers import Vertical

from pyagent.commands import AnswerQuestion, Command, SubmitPrompt
from pyagent.events import Event, Question, QuestionAsked, QuestionOption, QuestionSettled, ToolStarted, TurnFinished
from pyagent.ui.blocks import BlockState
from pyagent.ui.dialogs.question import OTHER, ChoiceRows, QuestionAnswers, QuestionScreen
from pyagent.ui.dialogs.rows import FIELD_KEYS, Rows
from pyagent.ui.reduce import TranscriptFold
from pyagent.ui.status import Phase, SessionStatus, reduce_status
from tests.ui.screens import Stage, shown
from tests.ui.test_app import session
from tests.ui.test_plain import run

ONE = Question("Way", "Which [way]?", (QuestionOption("left", "The [short] one"), QuestionOption("right")))
MANY = Question("Extras", "Which extras?", (QuestionOption("a"), QuestionOption("b"), QuestionOption("c")), True)
ASKED = QuestionAsked("q1", "t1", (ONE, MANY))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("enter",), ("left",)),
        (("2",), ("right",)),
        (("down", "enter"), ("right",)),
        (("tab", *"1 up", "enter"), ("1 up",)),
        (("up", "enter", *"x", "enter"), ("x",)),
        (("3", *"y", "enter"), ("y",)),
        (("tab", "escape", "2"), ("right",)),
        (("space", "2"), ("right",)),
    ],
)
async def test_one_option_or_other_words_answer(keys: tuple[str, ...], expected: tuple[str, ...]) -> None:
    results: list[QuestionAnswers | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(QuestionScreen((ONE,)), results.append)
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
    assert results == [(expected,)]


async def test_the_keys_told_of_are_those_of_the_field_while_it_is_open() -> None:
    async with Stage().run_test(size=(80, 24)) as pilot:
        screen = QuestionScreen((ONE,))
        pilot.app.push_screen(screen)
        await pilot.pause()
        box = screen.query_one(Vertical)
        before = str(box.border_subtitle)
        await pilot.press("tab")
        assert box.border_subtitle == FIELD_KEYS
        await pilot.press("escape")
        assert box.border_subtitle == before


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("space", "down", "down", "space", "enter"), ("a", "c")),
        (("1", "2", "1", "enter"), ("b",)),
        (("down", "enter"), ("b",)),
        (("2", "tab", "z", "enter"), ("b", "z")),
    ],
)
async def test_several_options_may_be_picked_where_the_question_allows_it(
    keys: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    results: list[QuestionAnswers | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(QuestionScreen((MANY,)), results.append)
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
    assert results == [(expected,)]


async def test_questions_come_one_by_one_and_escape_goes_back() -> None:
    results: list[QuestionAnswers | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        screen = QuestionScreen((ONE, MANY))
        pilot.app.push_screen(screen, results.append)
        await pilot.pause()
        await pilot.press("2")
        await pilot.pause()
        assert "Which extras?" in shown(screen.query_one(Rows))
        await pilot.press("escape")
        await pilot.pause()
        assert "Which [way]?" in shown(screen.query_one(Rows))
        await pilot.press("1", "3", "enter")
        await pilot.pause()
    assert results == [(("left",), ("c",))]


async def test_escape_at_the_first_question_leaves_all_unanswered() -> None:
    results: list[QuestionAnswers | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(QuestionScreen((ONE, MANY)), results.append)
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
    assert results == [None]


async def test_outside_text_is_literal_and_all_options_fit_a_small_terminal() -> None:
    async with Stage().run_test(size=(60, 15)) as pilot:
        long = Question("[/x]", "word " * 200, tuple(QuestionOption(f"o{n}", "words " * 40) for n in range(4)))
        screen = QuestionScreen((long,))
        pilot.app.push_screen(screen)
        await pilot.pause()
        choices = screen.query_one(ChoiceRows)
        assert OTHER in shown(choices)
        assert "o3" in shown(choices)
        pilot.app.pop_screen()
        screen = QuestionScreen((ONE,))
        pilot.app.push_screen(screen)
        await pilot.pause()
        assert "The [short] one" in shown(screen.query_one(ChoiceRows))
        assert screen.query_one(Vertical).border_title is not None


async def test_a_click_chooses_the_option_whose_description_was_hit() -> None:
    results: list[QuestionAnswers | None] = []
    async with Stage().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(QuestionScreen((ONE,)), results.append)
        await pilot.pause()
        await pilot.click(ChoiceRows, offset=(4, 1))
        await pilot.pause()
    assert results == [(("left",),)]


async def test_the_full_screen_asks_and_sends_the_answers(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(ASKED)
        await s.until(lambda: isinstance(s.app.screen, QuestionScreen))
        await s.pilot.press("1", "2", "enter")
        await s.until(lambda: s.agent.sent(AnswerQuestion) == [AnswerQuestion("q1", (("left",), ("b",)))])
        await s.until(lambda: len(s.app.screen_stack) == 1)


async def test_a_withdrawn_question_closes_without_an_answer(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(ASKED)
        await s.until(lambda: isinstance(s.app.screen, QuestionScreen))
        await s.emit(QuestionSettled("q1", is_answered=False))
        await s.until(lambda: len(s.app.screen_stack) == 1)
        assert s.agent.sent(AnswerQuestion) == []


def test_the_row_of_the_tool_waits_and_the_status_says_for_whom() -> None:
    fold = TranscriptFold()
    fold.apply(ToolStarted("t1", "AskUserQuestion", "AskUserQuestion Way", {}))
    states = []
    for event in (ASKED, QuestionSettled("q1", is_answered=True)):
        fold.apply(event)
        states.append(fold.blocks[0].state)
    assert states == [BlockState.WAITING, BlockState.RUNNING]
    assert reduce_status(SessionStatus(), ASKED).phase is Phase.ASKING


def asks(command: Command) -> Sequence[Event]:
    match command:
        case SubmitPrompt():
            return (ASKED,)
        case AnswerQuestion():
            return (TurnFinished("end_turn", 1, 1.0, ""),)
        case _:
            return ()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("2", "1, 3"), (("right",), ("a", "c"))),
        (("straight on", "b, please"), (("straight on",), ("b, please",))),
        (("", "2"), ((), ("b",))),
    ],
    ids=["numbers", "other words", "one left out"],
)
def test_line_by_line_questions_are_answered_by_number_or_in_words(
    tmp_path: Path, lines: tuple[str, ...], expected: QuestionAnswers
) -> None:
    _, out, agent = run(tmp_path, ["go", *lines], asks)
    assert "Question: Which [way]?\n1. left: The [short] one\n2. right\n" in out
    assert agent.sent(AnswerQuestion) == [AnswerQuestion("q1", expected)]


def test_line_by_line_without_a_terminal_nobody_answers(tmp_path: Path) -> None:
    _, _, agent = run(tmp_path, ["go"], asks, is_interactive=False)
    [sent] = agent.sent(AnswerQuestion)
    assert isinstance(sent, AnswerQuestion)
    assert not sent.answers
    assert sent.reason
