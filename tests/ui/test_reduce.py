"""Blocks from events: live and replayed, interrupted, moved back, compacted."""

from __future__ import annotations

import pytest

from pyagent.events import (
    Event,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    RecordCommitted,
    ReplayFinished,
    RequestStarted,
    StreamDiscarded,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import Boundary, ClearResults, CompactionFailed, Revoke, SetHead, ToolRan, TurnEnded, UserEntry
from pyagent.messages import JsonObject, TextBlock
from pyagent.ui.blocks import Block, BlockKind, BlockState
from pyagent.ui.reduce import AllReplaced, BlockGone, BlockPut, TextGrown, TranscriptFold
from tests.ui.fake_agent import opened
from tests.ui.records import PATCH, Recorder, answer, prompt, text, thinking, tool_ran, tool_result, tool_use


def blocks_after(*events: Event) -> tuple[Block, ...]:
    fold = TranscriptFold()
    for event in events:
        fold.apply(event)
    return fold.blocks


def live_turn() -> list[Event]:
    r = Recorder()
    return [
        r.commit(prompt("make it exact")),
        TurnStarted("u0"),
        RequestStarted("repl_main_thread"),
        ThinkingDelta("pi is "),
        ThinkingDelta("in math"),
        TextDelta("I will "),
        TextDelta("edit."),
        ToolInputDelta("t1", "Edit", 10),
        ToolInputDelta("t1", "Edit", 90),
        ToolInputDelta("t2", "Bash", 9),
        r.commit(
            answer(
                thinking("pi is in math"),
                text("I will edit."),
                tool_use("t1", "Edit", file_path="a.py"),
                tool_use("t2", "Bash", command="pytest"),
                stop_reason="tool_use",
            )
        ),
        ToolStarted("t1", "Edit", "Edit a.py", {"file_path": "a.py"}),
        ToolFinished("t1", "Edit", "Edit a.py", False, "The file was changed.", 0.25, {"patch": PATCH}),
        r.commit(tool_result("t1", "The file was changed.")),
        r.commit(tool_ran("t1", "Edit a.py", 0.25, patch=PATCH)),
        ToolStarted("t2", "Bash", "pytest", {"command": "pytest"}),
        ToolProgress("t2", "1 failed\n"),
        ToolFinished("t2", "Bash", "pytest", True, "1 failed\nE", 2.0, {"exit_code": 1}),
        r.commit(tool_result("t2", "1 failed\nE", is_error=True)),
        r.commit(tool_ran("t2", "pytest", 2.0, exit_code=1)),
        RequestStarted("repl_main_thread"),
        TextDelta("Done."),
        r.commit(answer(text("Done."))),
        r.commit(TurnEnded("end_turn")),
        TurnFinished("end_turn", 2, 3.0, "Done."),
    ]


def test_a_turn_gives_its_prompt_thinking_text_tools_and_answer_in_order() -> None:
    blocks = blocks_after(*live_turn())
    assert [(b.kind, b.title, b.text, b.state) for b in blocks] == [
        (BlockKind.USER, "", "make it exact", BlockState.DONE),
        (BlockKind.THINKING, "", "pi is in math", BlockState.DONE),
        (BlockKind.ASSISTANT, "", "I will edit.", BlockState.DONE),
        (BlockKind.TOOL, "Edit", "a.py", BlockState.OK),
        (BlockKind.TOOL, "Bash", "pytest", BlockState.FAILED),
        (BlockKind.ASSISTANT, "", "Done.", BlockState.DONE),
    ]
    assert [line.text for line in blocks[3].diff if line.marks] == [
        "def area(r): return 3.14 * r",
        "def area(r): return math.pi * r ** 2",
    ]
    assert blocks[4].facts == ("exit 1",)
    assert blocks[4].elapsed_s == 2.0


def test_replaying_the_records_alone_gives_the_same_blocks_as_the_live_turn() -> None:
    live = live_turn()
    replayed = [RecordCommitted(e.record, is_replay=True) for e in live if isinstance(e, RecordCommitted)]
    assert blocks_after(*replayed, ReplayFinished()) == blocks_after(*live)


@pytest.mark.parametrize("cut", range(1, 24))
def test_nothing_is_left_running_wherever_a_turn_is_cut_off(cut: int) -> None:
    blocks = blocks_after(*live_turn()[:cut], TurnFinished("interrupted", 0, 1.0))
    assert not {b.state for b in blocks} & {BlockState.RUNNING, BlockState.STREAMING, BlockState.QUEUED}


def test_deltas_grow_the_block_that_the_committed_answer_then_takes_over() -> None:
    r, fold = Recorder(), TranscriptFold()
    fold.apply(RequestStarted("repl_main_thread"))
    (begun,) = fold.apply(TextDelta("one "))
    assert isinstance(begun, BlockPut)
    assert begun.block.state is BlockState.STREAMING
    assert fold.apply(TextDelta("two")) == (TextGrown(begun.block.id, "two"),)
    (done,) = fold.apply(r.commit(answer(text("one two"))))
    assert done == BlockPut(Block(begun.block.id, BlockKind.ASSISTANT, text="one two"))


def test_blank_text_before_a_tool_call_makes_no_block() -> None:
    blocks = blocks_after(RequestStarted("x"), TextDelta("\n"), ToolInputDelta("t1", "Read", 0))
    assert [b.kind for b in blocks] == [BlockKind.TOOL]


def test_provisional_blocks_that_the_committed_answer_lacks_are_taken_away() -> None:
    r, fold = Recorder(), TranscriptFold()
    for event in (RequestStarted("x"), TextDelta("hello"), ToolInputDelta("t9", "Read", 3)):
        fold.apply(event)
    assert BlockGone("tool:t9") in fold.apply(r.commit(answer(text("hello"))))


def test_discarded_text_stays_marked_and_the_next_attempt_stands_beside_it() -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(prompt("hi")),
        RequestStarted("x"),
        TextDelta("half an ans"),
        StreamDiscarded("connection lost"),
        RequestStarted("x", attempt=2),
        TextDelta("whole"),
        r.commit(answer(text("whole answer"))),
    )
    assert [(b.kind, b.text, b.state) for b in blocks if b.kind is BlockKind.ASSISTANT] == [
        (BlockKind.ASSISTANT, "half an ans", BlockState.INTERRUPTED),
        (BlockKind.ASSISTANT, "whole answer", BlockState.DONE),
    ]
    assert "connection lost" in next(b.text for b in blocks if b.kind is BlockKind.NOTICE)


def test_a_question_shows_the_call_waiting_until_it_is_settled() -> None:
    r, fold = Recorder(), TranscriptFold()
    fold.apply(r.commit(answer(tool_use("t1", "Bash", command="rm x"))))
    fold.apply(PermissionNeeded("q1", "t1", PermissionQuestion("Bash", "command", "rm x")))
    waiting = fold.blocks[0]
    fold.apply(PermissionSettled("q1", is_allowed=True))
    assert (waiting.state, fold.blocks[0].state) == (BlockState.WAITING, BlockState.QUEUED)


@pytest.mark.parametrize(
    ("display", "facts"),
    [
        ({"summary": "12 files", "lines": 14}, ("12 files",)),
        ({"summary": "0 files"}, ("0 files",)),
        ({"lines": 1_024}, ("1,024 lines",)),
        ({"summary": "no output", "exit_code": 3, "lines": 0}, ("no output", "exit 3")),
        ({}, ()),
    ],
)
def test_a_row_says_what_its_tool_says_it_did(display: JsonObject, facts: tuple[str, ...]) -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(answer(tool_use("t1", "Glob", pattern="*"))),
        r.commit(tool_result("t1", "[No files found.]")),
        r.commit(ToolRan("t1", "Glob *", 0.0, display)),
    )
    assert blocks[0].facts == facts


def test_a_refused_call_says_so() -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(answer(tool_use("t1", "Bash", command="rm x"))),
        r.commit(tool_result("t1", "The user did not allow this call.", is_error=True)),
        r.commit(tool_ran("t1", "Bash", denied=True)),
    )
    assert (blocks[0].text, blocks[0].facts, blocks[0].state) == ("rm x", ("not allowed",), BlockState.FAILED)


def test_a_boundary_reads_as_one_line_and_unfolds_to_its_summary() -> None:
    r = Recorder()
    boundary = Boundary(
        ("u1",), "auto", "session_memory", 167_000, 24_000, 40, summary_uuid="u0",
        receipt={"calls": 0, "duration_s": 0.31, "cost_usd": 0.0, "files_restored": ["a.py", "b.py"]},
    )  # fmt: skip
    blocks = blocks_after(
        r.commit(UserEntry((TextBlock("## Goal\nexact area"),), origin="summary"), tx="t"),
        r.commit(UserEntry((TextBlock("memory"),), origin="attachment", label="memory:x"), tx="t"),
        r.commit(boundary, tx="t"),
    )
    assert len(blocks) == 1
    assert blocks[0].kind is BlockKind.BOUNDARY
    assert " · ".join((blocks[0].text, *blocks[0].facts)) == (
        "167k → 24k tokens · session memory · no API call · 0.3 s"
    )
    assert "exact area" in blocks[0].detail
    assert "Files restored: a.py, b.py" in blocks[0].detail


def test_an_undone_compaction_is_marked_and_a_redo_takes_the_mark_off() -> None:
    r = Recorder()
    boundary, undo = r.commit(Boundary((), "manual", "full", 9_000, 2_000, 4)), r.commit(Revoke(0))
    assert blocks_after(boundary, undo)[0].facts[-1] == "undone"
    assert "undone" not in blocks_after(boundary, undo, r.commit(Revoke(1)))[0].facts


def test_cleared_results_are_one_row_that_names_the_tools() -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(answer(tool_use("t1", "Read", file_path="a"), tool_use("t2", "Bash", command="ls"))),
        r.commit(ClearResults({"t1": "[cleared]", "t2": "[cleared]"}, "idle for 70 min", 8_400)),
    )
    assert (blocks[-1].text, blocks[-1].facts, blocks[-1].detail) == (
        "2 old tool results cleared for the model",
        ("8.4k tokens freed", "idle for 70 min"),
        "Read, Bash",
    )


def test_moving_the_head_back_replaces_the_blocks_by_those_of_the_branch() -> None:
    r, fold = Recorder(), TranscriptFold()
    for event in (r.commit(prompt("one")), r.commit(answer(text("1"))), r.commit(prompt("two"))):
        fold.apply(event)
    (change,) = fold.apply(r.commit(SetHead(1)))
    assert isinstance(change, AllReplaced)
    assert [b.text for b in change.blocks] == ["one", "1"]
    fold.apply(r.commit(prompt("three")))
    assert [b.text for b in fold.blocks] == ["one", "1", "three"]


@pytest.mark.parametrize(
    ("ended", "kind", "words"),
    [
        (TurnEnded("interrupted"), BlockKind.NOTICE, "Interrupted"),
        (TurnEnded("failed", "No credentials."), BlockKind.ERROR, "No credentials."),
        (TurnEnded("max_turns"), BlockKind.NOTICE, "limit of API rounds"),
    ],
)
def test_a_turn_that_did_not_end_by_itself_says_how_it_ended(ended: TurnEnded, kind: BlockKind, words: str) -> None:
    r = Recorder()
    last = blocks_after(r.commit(prompt("hi")), r.commit(ended))[-1]
    assert last.kind is kind
    assert words in last.text


def test_a_failure_told_as_record_and_as_event_is_one_row() -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(prompt("hi")),
        r.commit(TurnEnded("failed", "No key. Set one.")),
        TurnFailed("CredentialsError", "No key.", "Set one."),
    )
    assert [(b.text, b.detail) for b in blocks[1:]] == [("No key.", "Set one.")]


def test_the_same_notice_twice_in_a_row_is_shown_once() -> None:
    assert len(blocks_after(Notice("Cache is cold."), Notice("Cache is cold."))) == 1


def test_a_failed_compaction_says_that_nothing_was_changed() -> None:
    r = Recorder()
    block = blocks_after(r.commit(CompactionFailed("full", "auto", "overloaded")))[0]
    assert "overloaded" in block.text
    assert block.facts == ("the conversation is as it was",)


def test_a_killed_session_replays_without_calls_that_seem_to_run() -> None:
    r = Recorder()
    blocks = blocks_after(
        r.commit(prompt("a")), r.commit(answer(tool_use("t1", "Bash", command="x"))), ReplayFinished()
    )
    assert blocks[-1].state is BlockState.INTERRUPTED


def test_another_session_replaces_everything() -> None:
    r, fold = Recorder(), TranscriptFold(lambda event: Block("banner", BlockKind.BANNER, text=event.model))
    fold.apply(opened())
    fold.apply(r.commit(prompt("one")))
    (change,) = fold.apply(opened(model="other"))
    assert change == AllReplaced((Block("banner", BlockKind.BANNER, text="other"),))


def test_markup_in_outside_text_stays_as_it_is() -> None:
    r = Recorder()
    words = "x[i] = y[j] [/foo] [@click=app.quit]hi[/]"
    assert blocks_after(r.commit(prompt(words)))[0].text == words


def test_a_task_list_stands_unfolded_with_a_mark_for_each_task() -> None:
    tasks = [
        {"content": "Find\nit", "status": "completed"},
        {"content": "Fix [it]", "status": "in_progress"},
        {"content": "Test it", "status": "pending"},
    ]
    r = Recorder()
    live: list[Event] = [
        r.commit(answer(tool_use("t1", "TodoWrite", todos=tasks))),
        ToolStarted("t1", "TodoWrite", "TodoWrite 1/3 done", {}),
        ToolFinished("t1", "TodoWrite", "TodoWrite 1/3 done", False, "The list has 3 tasks.", 0.1, {"tasks": tasks}),
    ]
    records: list[Event] = [
        r.commit(tool_result("t1", "The list has 3 tasks.")),
        r.commit(tool_ran("t1", "1/3 done", tasks=tasks)),
    ]
    for events in (live, [*live, *records], [live[0], *records]):
        [block] = blocks_after(*events)
        assert block.detail == "[x] Find it\n[~] Fix [it]\n[ ] Test it"
        assert not block.is_collapsed
