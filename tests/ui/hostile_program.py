"""A front end with an agent in whose every word stand markup and control sequences: each must come out as text.

Each scene is a prompt; what it shows is its name, `»` and `HOSTILE`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pyagent.commands import Command, RunCommand, SubmitPrompt
from pyagent.events import (
    CommandFinished,
    Event,
    Notice,
    PermissionNeeded,
    PermissionQuestion,
    PromptReturned,
    Question,
    QuestionAsked,
    QuestionOption,
    QueueChanged,
    Report,
    RequestStarted,
    RetryScheduled,
    RewindFile,
    RewindOffered,
    RewindPlanned,
    RewindPoint,
    SettingMoved,
    StatusLineMoved,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)
from pyagent.pages import (
    AnswerPage,
    CompactionRow,
    CompactionsPage,
    CostPage,
    CostRow,
    CostTurn,
    DenialRow,
    DiffFile,
    DiffPage,
    DiffScope,
    MemoryPage,
    MemoryRow,
    PermissionsPage,
    RuleRow,
    SettingRow,
    SettingsPage,
    TaskRow,
    TasksPage,
)
from pyagent.ui.cli import build_invocation, dispatch, parse_arguments
from tests.ui.fake_agent import FakeAgent, opened
from tests.ui.records import Recorder, answer, prompt, text, thinking, tool_result, tool_use

NAME = "[bold]x[/]"
HOSTILE = (
    f"{NAME}[/no][link=http://a]l[/][@click=app.quit]q[/]"
    "\x1b[31m\x1b[2J\x1b[6n\x1bc\x1b]52;c;aGk=\x07\x1b]8;;http://b\x1b\\\x1b]0;owned\x07\x1bP+q\x1b\\"
    "\x9b31m\x9d0;owned\x9c\x07\x08\x7f\u202e\u2028!"
)

_RECORDER = Recorder()


def _turn(*events: Event) -> list[Event]:
    return [TurnStarted("u"), *events, TurnFinished("end_turn", 1, 0.1, "")]


def _tool(words: str, *, is_error: bool) -> list[Event]:
    return _turn(
        _RECORDER.commit(answer(tool_use("t", "Bash", command=words))),
        ToolStarted("t", "Bash", words, {"command": words}),
        ToolProgress("t", words),
        ToolFinished("t", "Bash", words, is_error, words, 0.1),
        _RECORDER.commit(tool_result("t", words, is_error=is_error)),
    )


def scene(name: str) -> Sequence[Event]:
    """What happens in a scene."""
    return _scenes(f"{name}»{HOSTILE}")[name]


def _scenes(words: str) -> Mapping[str, Sequence[Event]]:
    point = RewindPoint(1, 0, words, datetime(2026, 3, 1, tzinfo=UTC), has_files=True, is_in_view=True)
    file = RewindFile(words, "change", is_own_edit=False, diff=f"--- a\n+++ b\n@@ -1 +1 @@\n-{words}\n+{words}\n")
    options = (QuestionOption(words, words), QuestionOption("other"))
    row = CostRow(words, 1, 10, 5, 5, 10, 0.1)
    setting = SettingRow(words, "text", f'"{words}"', words, help=words, when=words)
    compaction = CompactionRow(1, point.at, words, 9, 1, (words,), words, is_undoable=True)
    denial = DenialRow(point.at, words, words, words)
    diff = DiffPage((DiffScope(words, words, words),), words, (DiffFile(words, "change", file.diff),), words)
    return {
        "prompt": [_RECORDER.commit(prompt(words))],
        "answer": _turn(_RECORDER.commit(answer(text(words)))),
        "markdown": _turn(
            _RECORDER.commit(
                answer(text(f"# {words}\n\n| {words} |\n|---|\n| {words} |\n\n```py\n{words}\n```\n\n- `{words}`"))
            )
        ),
        "streamed": [TurnStarted("u"), RequestStarted("repl_main_thread"), TextDelta(words)],
        "thinking": [TurnStarted("u"), RequestStarted("repl_main_thread"), ThinkingDelta(words)],
        "thought": _turn(_RECORDER.commit(answer(thinking(words), text("so")))),
        "output": _tool(words, is_error=False),
        "failure": _tool(words, is_error=True),
        "running": [TurnStarted("u"), ToolStarted("t", words, words, {"command": words}), ToolProgress("t", words)],
        "error": [TurnStarted("u"), TurnFailed("x", words, words)],
        "notice": [Notice(words, "warning", words)],
        "retry": [TurnStarted("u"), RetryScheduled(1, 10, 600.0, words)],
        "title": [SettingMoved("title", words)],
        "model": [SettingMoved("model", words)],
        "queue": [TurnStarted("u"), QueueChanged((("q", words),))],
        "returned": _turn(PromptReturned(words)),
        "report": [Report(words, words)],
        "points": [RewindOffered((point,), can_redo=False)],
        "ways": [RewindPlanned(point, (file,), (words,), words)],
        "command": [
            PermissionNeeded(
                "r",
                "t",
                PermissionQuestion(words, "command", words, words, session_rule=words, description=words),
            )
        ],
        "edit": [
            PermissionNeeded("r", "t", PermissionQuestion("Edit", "edit", words, old_text=words, new_text=words * 2))
        ],
        "status line": [StatusLineMoved((words,))],
        "costs": [Report("Cost", page=CostPage(1.0, True, 60.0, (row,), (row,), (CostTurn(1, words, row),), (words,)))],
        "compactions": [Report("Compactions", page=CompactionsPage((compaction,)))],
        "differences": [Report("Diff", page=diff)],
        "settings": [Report("Settings", page=SettingsPage((setting,), ((words, words),), (words,), words))],
        "permissions": [
            Report(
                "Permissions",
                page=PermissionsPage(
                    words,
                    (RuleRow("deny", words, words, is_removable=True, problem=words),),
                    ((words, words),),
                    (denial,),
                    is_trusted=True,
                    remark=words,
                ),
            )
        ],
        "tasks": [Report("Tasks", page=TasksPage((TaskRow(words, words, words, words),), words))],
        "memory": [Report("Memory", page=MemoryPage((MemoryRow(words, words, 1, is_loaded=True),), (words,)))],
        "aside": [Report("Answer", page=AnswerPage(words, words, 0.1, 0.5))],
        "question": [QuestionAsked("r", "t", (Question(words, words, options),))],
    }


SCENES = tuple(_scenes(""))


def _answers(command: Command) -> Sequence[Event]:
    match command:
        case SubmitPrompt(text=name) if name in SCENES:
            return scene(name)
        case RunCommand(name="rewind", argument=argument):
            return [*scene("ways" if argument else "points"), CommandFinished("rewind")]
        case _:
            return []


if __name__ == "__main__":
    first = opened(model=HOSTILE, git_branch=HOSTILE, cwd=os.getcwd(), context_files=(HOSTILE,))
    invocation = build_invocation(parse_arguments(sys.argv[1:]), os.environ)
    sys.exit(dispatch(invocation, FakeAgent([first], _answers)))
