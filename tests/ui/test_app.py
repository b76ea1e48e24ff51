"""The full screen with a scripted agent: what is sent, shown and asked."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from pyagent.agent.session_store import project_dir
from pyagent.commands import AnswerPermission, Command, Interrupt, RunCommand, Shutdown, SubmitPrompt, TakeBackQueued
from pyagent.events import (
    CommandFinished,
    CompactionEnded,
    CompactionProgress,
    CompactionStarted,
    Event,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    PromptReturned,
    QueueChanged,
    RecordCommitted,
    ReplayFinished,
    Report,
    RequestStarted,
    RetryScheduled,
    SettingMoved,
    TextDelta,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import Boundary, SessionStarted, TurnEnded, UserEntry
from pyagent.messages import TextBlock
from pyagent.record_lines import record_to_line
from pyagent.ui.app import PyagentApp
from pyagent.ui.blocks import BlockKind
from pyagent.ui.busy import BusyLine, QueuePanel
from pyagent.ui.cli import FrontEnd, Invocation
from pyagent.ui.dialogs.approval import ApprovalScreen
from pyagent.ui.dialogs.bottom_box import BottomBox
from pyagent.ui.dialogs.help import HelpScreen
from pyagent.ui.dialogs.picker import PickerList, PickerScreen
from pyagent.ui.dialogs.text import TextScreen
from pyagent.ui.images import Clipboard
from pyagent.ui.prompt import Prompt
from pyagent.ui.session_view import SessionView
from pyagent.ui.statusbar import StatusBar
from pyagent.ui.transcript import Transcript
from tests.ui.fake_agent import FakeAgent, launch_options, opened
from tests.ui.records import Recorder, answer, prompt, text, thinking, tool_ran, tool_result, tool_use

Driver = Pilot[int]


class Session:
    """A running app, its agent, and waiting for what is to become true."""

    def __init__(self, app: PyagentApp, agent: FakeAgent, pilot: Driver) -> None:
        self.app, self.agent, self.pilot = app, agent, pilot
        self.recorder = Recorder()

    async def until(self, is_true: Callable[[], object], what: str = "") -> None:
        for _ in range(200):
            if is_true():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"never came true: {what or is_true}")

    async def emit(self, *emitted: Event) -> None:
        """Emit events and wait until the screen has taken them in."""
        marker = self.view.take_count
        self.agent.emit(*emitted)
        await self.until(lambda: self.view.take_count > marker, "events taken in")

    async def type(self, words: str, *keys: str) -> None:
        await self.pilot.press(*("space" if c == " " else "slash" if c == "/" else c for c in words), *keys)

    @property
    def view(self) -> SessionView:
        assert self.app.view is not None
        return self.app.view

    @property
    def transcript(self) -> Transcript:
        return self.app.query_one(Transcript)

    @property
    def prompt(self) -> Prompt:
        return self.app.query_one(Prompt)

    @property
    def busy_words(self) -> str:
        return self.app.query_one(BusyLine).shown

    def texts(self, kind: BlockKind) -> list[str]:
        return [block.text for block in self.transcript.blocks if block.kind is kind]


@asynccontextmanager
async def session(
    home: Path,
    first: Sequence[Event] = (opened(),),
    answers: Callable[[Command], Sequence[Event]] | None = None,
    *,
    size: tuple[int, int] = (100, 30),
    invocation: Invocation | None = None,
    clock: Callable[[], float] = time.monotonic,
    clipboard: Clipboard | None = None,
) -> AsyncIterator[Session]:
    agent = FakeAgent(first, answers)
    invocation = invocation or Invocation(launch_options(home), FrontEnd.SCREEN)
    app = PyagentApp(invocation, agent, version="1.2.3", clock=clock, clipboard=clipboard)
    async with app.run_test(size=size) as pilot:
        running = Session(app, agent, pilot)
        await running.until(lambda: app.view is not None, "agent started")
        if first:
            await running.until(lambda: running.view.take_count > 0, "first events taken in")
        yield running


async def test_a_typed_prompt_goes_to_the_agent_and_the_line_is_empty_again(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("fix it", "enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt) == [SubmitPrompt("fix it")])
        assert s.prompt.text == ""


async def test_the_status_bar_names_a_session_that_is_only_looked_at(tmp_path: Path) -> None:
    async with session(tmp_path, first=(opened(is_read_only=True),)) as s:
        bar = s.app.query_one(StatusBar)
        await s.until(lambda: "read-only" in bar.render_line(0).text)
        await s.emit(opened())
        await s.until(lambda: "read-only" not in bar.render_line(0).text)


async def test_streamed_text_shows_while_it_comes_and_stands_when_committed(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(s.recorder.commit(prompt("hi")), TurnStarted("u0"), RequestStarted("x"), TextDelta("Hel"))
        assert s.texts(BlockKind.ASSISTANT) == ["Hel"]
        assert "esc to interrupt" in s.busy_words
        await s.emit(
            TextDelta("lo"), s.recorder.commit(answer(text("Hello"))), TurnFinished("end_turn", 1, 1.0, "Hello")
        )
        assert s.texts(BlockKind.ASSISTANT) == ["Hello"]
        assert s.busy_words == ""


async def test_escape_interrupts_a_running_turn_and_does_nothing_to_an_idle_one(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == []
        await s.emit(TurnStarted("u0"))
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == [Interrupt()]


async def test_escape_interrupts_a_compaction_and_leaves_what_is_typed_meanwhile(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(CompactionStarted("manual", "full", 150_000), CompactionProgress(300, 2.0))
        await s.type("and then")
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == [Interrupt()]
        assert s.prompt.text == "and then"
        await s.emit(CompactionEnded("cancelled", "interrupted; the conversation is as it was"))
        assert s.busy_words == ""
        await s.type(" go on", "enter")
        await s.until(lambda: s.agent.sent(SubmitPrompt) == [SubmitPrompt("and then go on")])


async def test_escape_drops_a_side_question_that_waits_for_its_answer(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("/btw what is this?", "enter")
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == [Interrupt()]
        await s.emit(CommandFinished("btw"))
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == [Interrupt()]
        await s.type("/btw", "enter")
        await s.emit(CommandFinished("btw"))
        await s.type("/btw and this?", "enter")
        await s.pilot.press("escape")
        assert s.agent.sent(Interrupt) == [Interrupt()] * 2


async def test_a_prompt_given_back_stands_above_the_draft(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("later")
        await s.emit(PromptReturned("first"))
        assert s.prompt.text == "first\nlater"


async def test_queued_prompts_are_listed_and_up_takes_the_newest_back(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(TurnStarted("u0"), QueueChanged((("q1", "and then this"),)))
        assert s.app.query_one(QueuePanel).prompts == ("and then this",)
        await s.pilot.press("up")
        assert s.agent.sent(TakeBackQueued) == [TakeBackQueued()]


async def test_a_prompt_sent_before_the_session_is_open_is_shown_as_waiting(tmp_path: Path) -> None:
    async with session(tmp_path, first=()) as s:
        await s.type("early", "enter")
        await s.until(lambda: s.app.query_one(QueuePanel).prompts == ("early",))
        await s.emit(opened())
        assert s.app.query_one(QueuePanel).prompts == ("early",)
        await s.emit(s.recorder.commit(prompt("early")), TurnStarted("u1"))
        assert s.app.query_one(QueuePanel).prompts == ()


async def test_a_prompt_stays_in_sight_until_the_agent_tells_of_it(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("first", "enter")
        await s.until(lambda: s.app.query_one(QueuePanel).prompts == ("first",))
        await s.emit(s.recorder.commit(prompt("first")), TurnStarted("u1"))
        assert s.app.query_one(QueuePanel).prompts == ()
        await s.type("second", "enter")
        await s.until(lambda: s.app.query_one(QueuePanel).prompts == ("second",))
        await s.emit(QueueChanged((("q1", "second"),)))
        assert s.app.query_one(QueuePanel).prompts == ("second",)
        await s.emit(QueueChanged(()), s.recorder.commit(prompt("second")))
        assert s.app.query_one(QueuePanel).prompts == ()


async def test_a_prompt_that_is_refused_stands_in_the_input_line_only(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("refused", "enter")
        await s.until(lambda: s.app.query_one(QueuePanel).prompts == ("refused",))
        await s.emit(PromptReturned("refused"), TurnFailed("read_only", "This session is only read.", ""))
        assert (s.app.query_one(QueuePanel).prompts, s.prompt.text) == ((), "refused")


async def test_the_way_back_stands_at_the_prompt_that_would_come_back(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(TurnStarted("u0"), QueueChanged((("q1", "one"), ("q2", "two"))))
        panel = s.app.query_one(QueuePanel)
        await s.until(lambda: panel.size.height == 2, "laid out")
        rows = [panel.render_line(y).text.strip() for y in range(2)]
        assert rows == ["◌ queued  one", "◌ queued  two · ↑ takes the newest back"]


def question(request_id: str = "q1", subject: str = "rm -rf build") -> PermissionNeeded:
    asked = PermissionQuestion(
        "Bash", "command", subject, reason="not known to be safe", session_rule="Bash(rm -rf build)"
    )
    return PermissionNeeded(request_id, "t1", asked)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("y",), AnswerPermission("q1", "once")),
        (("2",), AnswerPermission("q1", "session")),
        (("n",), AnswerPermission("q1", "no")),
        (("escape",), AnswerPermission("q1", "no")),
        (("tab", "l", "s", "enter"), AnswerPermission("q1", "no", "ls")),
    ],
)
async def test_a_permission_dialog_answers_with(tmp_path: Path, keys: tuple[str, ...], expected: Command) -> None:
    async with session(tmp_path) as s:
        await s.emit(TurnStarted("u0"), question())
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        await s.pilot.press(*keys)
        await s.until(lambda: s.agent.sent(AnswerPermission) == [expected])
        await s.until(lambda: len(s.app.screen_stack) == 1)


async def test_text_that_leaves_the_line_says_how_it_comes_back(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("a thought", "ctrl+s")
        await s.until(lambda: "Ctrl+S brings it back" in s.busy_words)
        await s.pilot.press("ctrl+s")
        await s.until(lambda: s.busy_words == "")
        assert s.prompt.text == "a thought"


@pytest.mark.parametrize(
    ("moved", "told"),
    [
        (SettingMoved("effort", "low"), "Effort: low"),
        (SettingMoved("cwd", "/repo/engine/docs"), "Working folder: /repo/engine/docs"),
    ],
    ids=["effort", "cwd"],
)
async def test_another_setting_is_told_however_narrow_the_status_bar(
    tmp_path: Path, moved: SettingMoved, told: str
) -> None:
    async with session(tmp_path, size=(60, 15)) as s:
        await s.emit(moved)
        await s.until(lambda: told in s.busy_words)


@pytest.mark.parametrize("rows", [15, 24, 40])
async def test_what_was_said_last_stays_in_sight_above_a_question(tmp_path: Path, rows: int) -> None:
    said = "\n\n".join(f"Paragraph {number}." for number in range(60))
    async with session(tmp_path, size=(80, rows)) as s:
        ended_at = s.transcript.region.bottom
        await s.emit(TurnStarted("u0"), s.recorder.commit(answer(text(f"{said}\n\nThis is why."))), question())
        await s.until(lambda: s.app.screen.query(BottomBox), "composed")
        box = s.app.screen.query_one(BottomBox)
        seen = s.app.screen_stack[0].query_one(Transcript)
        await s.until(lambda: 0 < seen.region.bottom == box.region.y, "ends where the dialog begins")
        await s.until(lambda: any("This is why." in seen.render_line(y).text for y in range(seen.size.height)))
        await s.pilot.press("n")
        await s.until(lambda: len(s.app.screen_stack) == 1)
        await s.until(lambda: s.transcript.region.bottom >= ended_at - 1, "has its rows back, but the busy line's")


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 1), (9, 40), (200, 1)], ids=str)
async def test_any_size_of_window_is_survived(tmp_path: Path, size: tuple[int, int]) -> None:
    async with session(tmp_path) as s:
        table = "| a | b |\n|---|---|\n" + "| 漢字 👩‍👩‍👧 | x |\n" * 5
        await s.emit(TurnStarted("u0"), RequestStarted("x"), TextDelta(f"# Title\n\n{table}"), question())
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        await s.pilot.resize_terminal(*size)
        await s.emit(TextDelta("\nmore words 漢字"))
        await s.pilot.press("y")
        await s.until(lambda: len(s.app.screen_stack) == 1)
        for command in ("/help", "/theme"):
            await s.type(command, "enter")
            await s.until(lambda: len(s.app.screen_stack) == 2)
            await s.pilot.press("escape")
            await s.until(lambda: len(s.app.screen_stack) == 1)
        await s.pilot.resize_terminal(100, 30)
        await s.type("fine")
        assert s.prompt.text == "fine"


async def test_the_spinner_stands_still_under_a_dialog_and_moves_on_behind_it(tmp_path: Path) -> None:
    now_s = [100.0]
    async with session(tmp_path, clock=lambda: now_s[0]) as s:
        await s.emit(TurnStarted("u0"), RequestStarted("x"), question())
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        shown = s.busy_words
        now_s[0] += 7.0
        s.view.tick()
        assert s.busy_words == shown
        await s.pilot.press("y")
        await s.until(lambda: "7.0 s" in s.busy_words)


async def test_a_compaction_in_the_middle_of_a_turn_counts_its_own_seconds_and_tokens(tmp_path: Path) -> None:
    now_s = [100.0]
    async with session(tmp_path, clock=lambda: now_s[0]) as s:
        await s.emit(TurnStarted("u0"), RequestStarted("x"), TextDelta("word " * 400))
        now_s[0] += 60.0
        await s.emit(CompactionStarted("auto", "full", 167_000))
        now_s[0] += 7.0
        await s.emit(CompactionProgress(1_234, 7.0))
        s.view.tick()
        assert s.busy_words[2:] == "Compacting · summary 1 234 tokens · 7.0 s · esc to interrupt"
        await s.emit(RetryScheduled(1, 10, 4.0, "overloaded", 529))
        assert "Retrying in 4 s" in s.busy_words
        await s.emit(CompactionProgress(0, 11.0))
        assert s.busy_words[2:] == "Compacting · 7.0 s · esc to interrupt"
        await s.emit(CompactionEnded("failed", "no answer"))
        s.view.tick()
        assert "67 s" in s.busy_words or "1 min" in s.busy_words


async def test_two_questions_are_asked_one_after_the_other(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(question("q1"), question("q2", "ls"))
        for request_id in ("q1", "q2"):
            await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
            await s.pilot.press("y")
            wanted = AnswerPermission(request_id, "once")
            await s.until(lambda wanted=wanted: wanted in s.agent.commands)  # type: ignore[misc]  # bound early


async def test_a_withdrawn_question_closes_its_dialog_without_an_answer(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(question())
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        await s.emit(PermissionSettled("q1", is_allowed=False))
        await s.until(lambda: len(s.app.screen_stack) == 1)
        assert s.agent.sent(AnswerPermission) == []


async def test_letters_being_typed_do_not_answer_a_dialog_that_opens(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("wh")
        s.agent.emit(question())
        await s.type("y not")
        assert s.prompt.text == "why not"
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        assert s.agent.sent(AnswerPermission) == []


async def test_commands_of_the_agent_travel_and_unknown_ones_stay(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("/compact keep names", "enter")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand("compact", "keep names")])
        await s.type("/compcat", "escape", "enter")
        await s.until(lambda: "/compact" in s.busy_words)
        assert s.agent.sent(SubmitPrompt) == []
        assert s.prompt.text == "/compcat"


async def test_a_report_opens_a_page_of_its_own(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        return [Report("Context", "84k of 200k")] if command == RunCommand("context") else []

    async with session(tmp_path, answers=answers) as s:
        await s.type("/context", "enter")
        await s.until(lambda: isinstance(s.app.screen, TextScreen))
        await s.pilot.press("q")
        await s.until(lambda: len(s.app.screen_stack) == 1)


@pytest.mark.parametrize(
    ("command", "search", "chosen"), [("model", "offline", "offline"), ("mode", "accept", "acceptEdits")]
)
async def test_a_command_without_its_argument_asks_for_it(
    tmp_path: Path, command: str, search: str, chosen: str
) -> None:
    async with session(tmp_path) as s:
        await s.type(f"/{command}", "enter")
        await s.until(lambda: isinstance(s.app.screen, PickerScreen))
        await s.type(search, "enter")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand(command, chosen)])


async def test_resume_offers_the_other_sessions_of_the_folder_which_can_be_deleted_and_brought_back(
    tmp_path: Path,
) -> None:
    options = launch_options(tmp_path)
    r = Recorder()
    folder = project_dir(options.home, options.cwd)
    folder.mkdir(parents=True)
    started = SessionStarted(1, "old-one", str(tmp_path), "1", "main")
    lines = [record_to_line(r.record(started)), record_to_line(r.record(prompt("fix [the] parser")))]
    (folder / "old-one.jsonl").write_bytes(b"".join(lines))
    invocation = Invocation(options, FrontEnd.SCREEN, picks_session=True)
    async with session(tmp_path, invocation=invocation) as s:
        await s.until(lambda: isinstance(s.app.screen, PickerScreen))
        await s.pilot.press("ctrl+d")
        await s.until(lambda: not s.app.screen.query_one(PickerList).labels)
        assert not (folder / "old-one.jsonl").exists()
        await s.pilot.press("ctrl+u")
        await s.until(lambda: s.app.screen.query_one(PickerList).labels == ("fix [the] parser",))
        assert (folder / "old-one.jsonl").exists()
        await s.pilot.press("enter")
        await s.until(lambda: s.agent.sent(RunCommand) == [RunCommand("resume", "old-one")])


async def test_question_mark_on_an_empty_line_shows_help(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.pilot.press("question_mark")
        await s.until(lambda: isinstance(s.app.screen, HelpScreen))


async def test_shift_tab_goes_through_the_modes_but_never_into_bypass(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        from pyagent.events import SettingMoved

        return [SettingMoved("mode", command.argument)] if isinstance(command, RunCommand) else []

    async with session(tmp_path, answers=answers) as s:
        for expected in ("acceptEdits", "plan", "default"):
            await s.pilot.press("shift+tab")
            await s.until(lambda expected=expected: s.view.status.mode == expected)  # type: ignore[misc]  # bound early


async def test_ctrl_c_empties_the_line_then_stops_the_turn_then_leaves(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.emit(TurnStarted("u0"))
        await s.type("draft")
        await s.pilot.press("ctrl+c")
        assert s.prompt.text == ""
        assert s.agent.sent(Interrupt) == []
        await s.pilot.press("ctrl+c")
        assert s.agent.sent(Interrupt) == [Interrupt()]
        await s.pilot.press("ctrl+c")
        await s.until(lambda: s.agent.sent(Shutdown))
        assert s.app.return_code == 0


async def test_ctrl_d_twice_leaves_from_an_empty_line_only(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        await s.type("a")
        await s.pilot.press("ctrl+d", "ctrl+d")
        assert s.agent.sent(Shutdown) == []
        await s.pilot.press("backspace", "ctrl+d", "ctrl+d")
        await s.until(lambda: s.agent.sent(Shutdown))


async def test_keys_typed_before_the_first_paint_are_not_lost(tmp_path: Path) -> None:
    agent = FakeAgent([opened()])
    app = PyagentApp(Invocation(launch_options(tmp_path), FrontEnd.SCREEN), agent)
    async with app.run_test() as pilot:
        await pilot.press("a", "b")
        await pilot.pause()
        assert app.query_one(Prompt).text == "ab"


async def test_a_resumed_session_shows_its_conversation_at_once_and_follows_its_end(tmp_path: Path) -> None:
    r = Recorder()
    records = [
        r.record(prompt("one")),
        r.record(answer(thinking("hm"), text("1"), tool_use("t1", "Bash", command="ls"))),
        r.record(tool_result("t1", "a\nb")),
        r.record(tool_ran("t1", "ls")),
        r.record(UserEntry((TextBlock("sum"),), origin="summary"), tx="t"),
        r.record(Boundary((), "auto", "full", 9_000, 1_000, 4, summary_uuid="u4"), tx="t"),
        r.record(TurnEnded("end_turn")),
    ]
    replay = [RecordCommitted(record, is_replay=True) for record in records]
    async with session(tmp_path, first=(opened(is_resumed=True), *replay, ReplayFinished())) as s:
        kinds = [block.kind for block in s.transcript.blocks]
        assert [kind.value for kind in kinds] == ["banner", "user", "thinking", "assistant", "tool", "boundary"]
        assert s.transcript.follow


async def test_ctrl_o_shows_all_unfolded_and_what_still_comes_and_leaves_the_screen_as_it_was(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        r = s.recorder
        await s.emit(
            r.commit(answer(thinking("hm"), tool_use("t1", "Bash", command="ls"))), r.commit(tool_result("t1", "a\nb"))
        )
        foldable = [block for block in s.transcript.blocks if block.is_foldable]
        await s.pilot.press("ctrl+o")
        reading = s.app.screen.query_one(Transcript)
        assert not any(reading.block(block.id).is_collapsed for block in foldable)
        await s.emit(r.commit(tool_result("t2", "late")), TextDelta("still coming"))
        assert reading.blocks[-1].text == "still coming"
        await s.pilot.press("ctrl+o")
        assert all(s.transcript.block(block.id).is_collapsed for block in foldable)
        assert s.transcript.blocks[-1].text == "still coming"


async def test_a_session_that_cannot_open_ends_the_program_with_its_reason(tmp_path: Path) -> None:
    from pyagent.events import ConversationClosed

    async with session(tmp_path, first=(TurnFailed("SessionError", "No such session.", "See --resume."),)) as s:
        s.agent.emit(ConversationClosed(""))
        await s.until(lambda: s.app.return_code == 1)
        assert s.app.failure == "No such session. See --resume."


async def test_a_first_prompt_from_the_command_line_is_sent(tmp_path: Path) -> None:
    invocation = Invocation(launch_options(tmp_path, prompt="explain this"), FrontEnd.SCREEN)
    async with session(tmp_path, invocation=invocation) as s:
        assert s.agent.sent(SubmitPrompt) == [SubmitPrompt("explain this")]


async def test_outside_text_with_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    words = "x[i] = y[j] [/foo] [@click=app.quit]hi[/]"
    async with session(tmp_path, size=(60, 15)) as s:
        await s.emit(s.recorder.commit(prompt(words)), TurnFailed("X", words, words), question(subject=words))
        await s.until(lambda: isinstance(s.app.screen, ApprovalScreen))
        assert s.texts(BlockKind.USER) == [words]


async def test_ctrl_f_searches_the_transcript_and_escape_gives_the_keys_back(tmp_path: Path) -> None:
    async with session(tmp_path) as s:
        for number in range(12):
            await s.emit(s.recorder.commit(prompt(f"needle {number} here")), s.recorder.commit(answer(text("x\n" * 9))))
        await s.pilot.press("ctrl+f")
        await s.type("needle 3")
        await s.until(lambda: "1 block" in s.busy_words)
        assert not s.transcript.follow
        await s.pilot.press("escape")
        await s.type("typed")
        assert s.prompt.text == "typed"
        assert s.busy_words == ""


async def test_what_is_printed_is_logged_once_also_where_the_log_cannot_be_written(tmp_path: Path) -> None:
    seen: list[str] = []

    class FullDisk(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())
            print("No space left on device", file=sys.stderr)

    handler = FullDisk()
    logging.getLogger().addHandler(handler)
    try:
        async with session(tmp_path) as s:
            print("stray")
            await s.pilot.pause()
    finally:
        logging.getLogger().removeHandler(handler)
    assert seen == ["printed to stdout: stray"]
