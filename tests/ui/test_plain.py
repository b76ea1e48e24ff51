"""Line by line: what is printed, in what order, and what numbered answers send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

import pytest

from pyagent.choices import TerminalSettings
from pyagent.commands import AnswerPermission, Command, RunCommand, SubmitPrompt
from pyagent.errors import READING
from pyagent.events import (
    CommandFinished,
    CompactionFinished,
    CompactionStarted,
    ConversationClosed,
    CostMoved,
    Event,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PermissionSettled,
    ReplayFinished,
    Report,
    RequestStarted,
    RetryScheduled,
    SessionOpened,
    SettingMoved,
    StreamSilent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.log import Boundary
from pyagent.ui.cli import FrontEnd, Invocation
from pyagent.ui.plain import PlainSession
from pyagent.ui.plain_input import NextModeKey
from pyagent.ui.plain_output import PlainPrinter
from tests.ui.fake_agent import FakeAgent, launch_options, opened
from tests.ui.records import PATCH, Recorder, answer, prompt, text, tool_ran, tool_result, tool_use


class ScriptedReader:
    """Gives lines one after the other; None at the end."""

    def __init__(self, lines: Sequence[str], *, is_interactive: bool = True) -> None:
        self._lines = list(lines)
        self.ahead: list[str] = []
        self.is_interactive = is_interactive
        self.drafts: list[str] = []
        self.prompts: list[str] = []

    def read(self, prompt: str, draft: str = "") -> str | None:
        self.drafts.append(draft)
        self.prompts.append(prompt)
        line = self._lines.pop(0) if self._lines else None
        if line == "<shift+tab>":
            raise NextModeKey("a draft")
        return line

    def answer(self, prompt: str) -> str | None:
        return self._lines.pop(0) if self._lines else None

    def typed_ahead(self) -> list[str]:
        ahead, self.ahead = self.ahead, []
        return ahead

    def switch_vim(self, is_vim: bool | None, insert_remaps: Mapping[str, str] | None = None) -> bool:
        return bool(is_vim)


def run(
    home: Path,
    lines: Sequence[str],
    answers: Callable[[Command], Sequence[Event]],
    *,
    is_interactive: bool = True,
    is_verbose: bool = False,
    screen_reader_via: str = "",
    first: Sequence[Event] = (opened(),),
    reader: ScriptedReader | None = None,
) -> tuple[int, str, FakeAgent]:
    """(exit code, everything printed, agent)."""
    written: list[str] = []
    agent = FakeAgent(first, finishing(answers))
    inbox: SimpleQueue[Event] = SimpleQueue()
    agent(launch_options(home), lambda event: inbox.put(event))
    session = PlainSession(
        Invocation(launch_options(home), FrontEnd.PLAIN, screen_reader_via=screen_reader_via),
        agent,
        inbox,
        reader or ScriptedReader(lines, is_interactive=is_interactive),
        PlainPrinter(written.append, is_verbose=is_verbose),
    )
    return session.run(), "".join(written), agent


def finishing(answers: Callable[[Command], Sequence[Event]]) -> Callable[[Command], Sequence[Event]]:
    """The same answers; a command's end with the word that it is carried out, as the agent's do."""

    def answered(command: Command) -> Sequence[Event]:
        told = answers(command)
        is_told = any(isinstance(event, CommandFinished | SessionOpened) for event in told)
        return told if is_told or not isinstance(command, RunCommand) else [*told, CommandFinished(command.name)]

    return answered


def turn(*events: Event) -> Callable[[Command], Sequence[Event]]:
    finished = TurnFinished("end_turn", 1, 1.0, "")
    return lambda command: (*events, finished) if isinstance(command, SubmitPrompt) else ()


def test_an_answer_is_printed_once_as_it_streams(tmp_path: Path) -> None:
    r = Recorder()
    events = (
        r.commit(prompt("hi")),
        RequestStarted("x"),
        TextDelta("Hello "),
        TextDelta("there."),
        r.commit(answer(text("Hello there."))),
    )
    code, out, agent = run(tmp_path, ["hi"], turn(*events))
    assert code == 0
    assert agent.sent(SubmitPrompt) == [SubmitPrompt("hi")]
    assert out.count("pyagent: Hello there.\n") == 1


def test_a_resumed_session_tells_of_its_calls_what_was_told_when_they_ran(tmp_path: Path) -> None:
    r = Recorder()
    said = (
        r.commit(answer(tool_use("t1", "Bash", command="git ls-files"), tool_use("t2", "Edit", file_path="a.py"))),
        r.commit(tool_result("t1", "a\nb\n[869 lines left out]")),
        r.commit(tool_ran("t1", "Bash git ls-files", 0.2, lines=871)),
        r.commit(tool_result("t2", "Edited.")),
        r.commit(tool_ran("t2", "Edit a.py", 0.2, patch=PATCH)),
        r.commit(answer(tool_use("t3", "Read", file_path="b.py"))),
        r.commit(tool_result("t3", "x\ny\nz")),
    )
    first = (opened(is_resumed=True), *said, ReplayFinished())
    _, out, _ = run(tmp_path, ["/exit"], turn(), first=first)
    tools = [line for line in out.splitlines() if line.startswith("tool: ")]
    assert tools == [
        "tool: Bash git ls-files · 871 lines",
        "tool: Edit a.py · 1 line added, 1 removed",
        "tool: Read b.py · 3 lines",
    ]


def test_a_tool_call_is_announced_and_its_end_told(tmp_path: Path) -> None:
    r = Recorder()
    events = (
        r.commit(answer(tool_use("t1", "Bash", command="pytest"))),
        ToolStarted("t1", "Bash", "pytest", {}),
        ToolFinished("t1", "Bash", "pytest", True, "E assert 1 == 2", 12.0, {"exit_code": 1}),
        r.commit(tool_result("t1", "E assert 1 == 2", is_error=True)),
        r.commit(tool_ran("t1", "pytest", 12.0, exit_code=1)),
    )
    _, out, _ = run(tmp_path, ["go"], turn(*events))
    assert "tool: Bash pytest\ntool error: Bash ended · failed · exit 1 · 12 s\n  E assert 1 == 2\n" in out


def test_a_question_is_a_numbered_list_and_its_number_the_answer(tmp_path: Path) -> None:
    asked = PermissionQuestion("Bash", "command", "rm -rf build", session_rule="Bash(rm -rf build)")

    def answers(command: Command) -> Sequence[Event]:
        match command:
            case SubmitPrompt():
                return [PermissionNeeded("q1", "t1", asked)]
            case AnswerPermission():
                return [PermissionSettled("q1", True), TurnFinished("end_turn", 1, 1.0)]
            case _:
                return []

    _, out, agent = run(tmp_path, ["go", "9", "2"], answers)
    assert "Permission Required: Bash\nrm -rf build\n1. Yes, once\n2. Yes, and allow Bash(rm -rf build)" in out
    assert "Type a number from 1 to 4" in out
    assert agent.sent(AnswerPermission) == [AnswerPermission("q1", "session")]


@pytest.mark.parametrize(
    ("typed", "answer"), [("y", "once"), ("Yes", "once"), ("n", "no"), ("no", "no"), ("", "no"), ("1", "once")]
)
def test_a_question_takes_yes_and_no_for_an_answer(tmp_path: Path, typed: str, answer: Literal["once", "no"]) -> None:
    asked = PermissionQuestion("Bash", "command", "rm -rf build", session_rule="Bash(rm -rf build)")

    def answers(command: Command) -> Sequence[Event]:
        match command:
            case SubmitPrompt():
                return [PermissionNeeded("q1", "t1", asked)]
            case AnswerPermission():
                return [PermissionSettled("q1", True), TurnFinished("end_turn", 1, 1.0)]
            case _:
                return []

    _, _, agent = run(tmp_path, ["go", typed], answers)
    assert agent.sent(AnswerPermission) == [AnswerPermission("q1", answer)]


def test_no_with_words_tells_the_model_what_to_do_instead(tmp_path: Path) -> None:
    asked = PermissionQuestion("Bash", "command", "rm -rf build")

    def answers(command: Command) -> Sequence[Event]:
        match command:
            case SubmitPrompt():
                return [PermissionNeeded("q1", "t1", asked)]
            case AnswerPermission():
                return [TurnFinished("end_turn", 1, 1.0)]
            case _:
                return []

    _, _, agent = run(tmp_path, ["go", "3", "use make clean"], answers)
    assert agent.sent(AnswerPermission) == [AnswerPermission("q1", "no", "use make clean")]


def test_without_a_person_a_question_is_answered_no(tmp_path: Path) -> None:
    asked = PermissionNeeded("q1", "t1", PermissionQuestion("Bash", "command", "rm x"))
    _, _, agent = run(tmp_path, ["go"], turn(asked), is_interactive=False)
    assert [command.answer for command in agent.sent(AnswerPermission) if isinstance(command, AnswerPermission)] == [
        "no"
    ]


def test_unknown_commands_are_answered_and_never_sent(tmp_path: Path) -> None:
    _, out, agent = run(tmp_path, ["/contxt"], turn())
    assert "did you mean /context?" in out
    assert agent.sent(SubmitPrompt) == []


def test_a_commands_answer_is_printed_before_the_next_line_is_read(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        return [Report("Cost", "Total: $1")] if command == RunCommand("cost") else []

    _, out, _ = run(tmp_path, ["/cost", "/help"], answers)
    assert out.index("Total: $1") < out.index("/compact")


def test_a_command_without_an_answer_keeps_nobody_waiting(tmp_path: Path) -> None:
    _, out, agent = run(tmp_path, ["/export", "/help"], lambda command: [])
    assert agent.sent(RunCommand) == [RunCommand("export")]
    assert "/compact" in out


def test_an_answer_in_parts_is_printed_whole_before_the_next_line_is_read(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        if not isinstance(command, RunCommand):
            return []
        return [Notice("First the one."), Notice("Then the other."), CommandFinished("add-dir")]

    _, out, _ = run(tmp_path, ["/add-dir x", "/help"], answers)
    assert out.index("Then the other.") < out.index("/compact")


@pytest.mark.parametrize("line", ["/init", "/plan look around"])
def test_what_a_command_has_the_model_do_is_printed_before_the_next_line_is_read(tmp_path: Path, line: str) -> None:
    r = Recorder()

    def answers(command: Command) -> Sequence[Event]:
        if not isinstance(command, RunCommand):
            return []
        carried_out = (SettingMoved("mode", "plan"), CommandFinished("mode")) if command.name == "plan" else ()
        turn_events = (TurnStarted("u1"), r.commit(answer(text("All done."))), TurnFinished("end_turn", 1, 1.0))
        return [CommandFinished(command.name), *carried_out, *turn_events]

    _, out, _ = run(tmp_path, [line, "/help"], answers)
    assert out.index("All done.") < out.index("/compact")


@pytest.mark.parametrize("name", ["clear", "resume", "branch", "view"])
def test_the_next_line_is_read_in_the_session_a_command_opens(tmp_path: Path, name: str) -> None:
    def answers(command: Command) -> Sequence[Event]:
        return [CommandFinished(name), opened(model="other-model")] if isinstance(command, RunCommand) else []

    _, out, _ = run(tmp_path, [f"/{name} it", "/help"], answers)
    assert out.index("other-model") < out.index("/compact")


def test_a_session_that_is_not_opened_keeps_nobody_waiting(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        is_command = isinstance(command, RunCommand)
        return [Notice("There is none.", "error"), CommandFinished("resume")] if is_command else []

    _, out, _ = run(tmp_path, ["/resume it", "/help"], answers)
    assert out.index("There is none.") < out.index("/compact")


def test_a_compaction_is_awaited_and_told_in_one_line(tmp_path: Path) -> None:
    r = Recorder()

    def answers(command: Command) -> Sequence[Event]:
        if not isinstance(command, RunCommand):
            return []
        boundary = Boundary((), "manual", "full", 167_000, 24_000, 40, receipt={"calls": 1, "duration_s": 9.0})
        return [
            CompactionStarted("manual", "full", 167_000),
            r.commit(boundary),
            CompactionFinished("manual", "full", 167_000, 24_000, 1, 9.0, 0.1),
        ]

    _, out, _ = run(tmp_path, ["/compact"], answers)
    assert "compacted: 167k → 24k tokens · summary · 1 API call · 9.0 s\n" in out


def test_failures_and_retries_are_labelled(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        retry = RetryScheduled(1, 10, 4.0, "overloaded", 529)
        return [retry, TurnFailed("X", "No key.", "Set one.")] if isinstance(command, SubmitPrompt) else []

    code, out, _ = run(tmp_path, ["go"], answers, is_interactive=False)
    assert code == 1
    assert "warning: Retrying in 4 s · overloaded · attempt 1 of 10\n" in out
    assert "error: No key. Set one.\n" in out


def test_a_silent_server_is_told_of_once_with_the_way_out(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        silence = [StreamSilent(10.0, 180.0), StreamSilent(0.0, 180.0)]
        return (
            [TurnStarted("p"), *silence, TurnFinished("end_turn", 1, 1.0)] if isinstance(command, SubmitPrompt) else []
        )

    _, out, _ = run(tmp_path, ["go"], answers)
    line = "warning: Waiting for the model · silent for 10 s, given up at 3 min 0 s. Ctrl+C stops the turn.\n"
    assert out.count(line) == 1
    assert out.count("silent for") == 1


def test_control_characters_of_outside_text_do_not_reach_the_terminal(tmp_path: Path) -> None:
    r = Recorder()
    nasty = "\x1b]52;c;ZXZpbA==\x07\x1b[2Jgone"
    events = (
        RequestStarted("x"),
        TextDelta(nasty),
        r.commit(answer(text(nasty), tool_use("t1", "Bash", command=nasty))),
        r.commit(tool_result("t1", nasty, is_error=True)),
        PermissionNeeded("q1", "t1", PermissionQuestion("Bash", "command", nasty, reason=nasty)),
    )
    _, out, _ = run(tmp_path, ["go"], turn(*events), is_interactive=False, is_verbose=True)
    assert "gone" in out
    assert not {char for char in out if ord(char) < 32} - {"\n", "\t"}


def test_screen_reader_mode_says_so_first(tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, [], turn(), screen_reader_via="flag")
    assert out.startswith("[Screen Reader Mode: on via flag]\n")


def test_a_session_that_cannot_open_is_a_failure(tmp_path: Path) -> None:
    first = (TurnFailed("SessionError", "No such session.", ""), ConversationClosed(""))
    code, out, _ = run(tmp_path, ["hi"], turn(), first=first)
    assert (code, out) == (1, "error: No such session.\n")


def test_what_is_typed_during_a_turn_is_queued_and_a_command_waits(tmp_path: Path) -> None:
    reader = ScriptedReader(["one"])
    reader.ahead = ["two", "/help"]
    written: list[str] = []
    inbox: SimpleQueue[Event] = SimpleQueue()
    finished = TurnFinished("end_turn", 1, 1.0, "")

    def answers(command: Command) -> Sequence[Event]:
        # The first turn ends once the second prompt is there.
        return [finished, finished] if command == SubmitPrompt("two") else []

    agent = FakeAgent([opened()], answers)
    agent(launch_options(tmp_path), lambda event: inbox.put(event))
    printer = PlainPrinter(written.append, is_verbose=False)
    session = PlainSession(Invocation(launch_options(tmp_path), FrontEnd.PLAIN), agent, inbox, reader, printer)
    assert session.run() == 0
    assert agent.sent(SubmitPrompt) == [SubmitPrompt("one"), SubmitPrompt("two")]
    text = "".join(written)
    assert text.index("queued: two") < text.index("/compact")


@pytest.mark.parametrize(("is_read_only", "words"), [(True, "read-only > "), (False, "plan > ")])
def test_the_prompt_says_that_a_session_is_only_looked_at_or_else_its_mode(
    tmp_path: Path, is_read_only: bool, words: str
) -> None:
    reader = ScriptedReader([])
    first = (opened(mode="plan", is_read_only=is_read_only), Notice(READING))
    run(tmp_path, [], lambda command: (), first=first, reader=reader)
    assert reader.prompts == [words]


def test_shift_tab_goes_to_the_next_mode_and_keeps_the_line(tmp_path: Path) -> None:
    def answers(command: Command) -> Sequence[Event]:
        return [SettingMoved("mode", command.argument)] if isinstance(command, RunCommand) else []

    _, text, agent = run(tmp_path, ["<shift+tab>", "/exit"], answers)
    assert agent.sent(RunCommand) == [RunCommand("mode", "acceptEdits")]
    assert "mode: acceptEdits" in text


@pytest.mark.parametrize("command", ["vim", "keybindings", "copy", "tui plain", "tui x", "tui fullscreen"])
def test_every_command_of_the_screen_is_answered_here_too(tmp_path: Path, command: str) -> None:
    _, text, agent = run(tmp_path, [f"/{command}"], lambda command: ())
    assert len(text.splitlines()) == 2
    assert agent.sent(RunCommand) == []


def test_costs_are_told_after_each_answer_where_that_is_wanted(tmp_path: Path) -> None:
    first = (opened(terminal=TerminalSettings(tells_cost=True)), CostMoved(0.02, True, 0.0, None))
    _, text, _ = run(tmp_path, ["hi"], turn(CostMoved(0.05, True, 0.0, None)), first=first)
    assert "Cost: $0.0500, $0.0500 in all" in text
    assert "Cost: $" not in run(tmp_path, ["hi"], turn())[1]


def test_a_screen_reader_hears_tables_as_pairs(tmp_path: Path) -> None:
    written: list[str] = []
    printer = PlainPrinter(written.append, is_verbose=False, is_spoken=True)
    printer.report("Status", "model         offline")
    assert "".join(written) == "Status\nmodel: offline\n"
