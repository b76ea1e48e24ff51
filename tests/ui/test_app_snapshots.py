"""What the states of the screen look like: dark, light and without colour, at three sizes. Clock, agent and folder are
fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from pyagent.events import (
    CompactionProgress,
    CompactionStarted,
    CostMoved,
    Event,
    GaugeFacts,
    GaugeMoved,
    PermissionNeeded,
    PermissionQuestion,
    Question,
    QuestionAsked,
    QuestionOption,
    QueueChanged,
    RequestStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolStarted,
    TurnFailed,
    TurnStarted,
)
from pyagent.log import Boundary, ClearResults, UserEntry
from pyagent.messages import TextBlock
from pyagent.ui.app import PyagentApp
from pyagent.ui.cli import FrontEnd, Invocation
from pyagent.ui.dialogs.approval import ApprovalScreen
from pyagent.ui.dialogs.help import HelpScreen
from pyagent.ui.dialogs.question import QuestionScreen
from pyagent.ui.dialogs.transcript_view import TranscriptScreen
from pyagent.ui.prompt import Prompt
from tests.ui.fake_agent import FakeAgent, launch_options, opened
from tests.ui.records import PATCH, Recorder, answer, prompt, text, thinking, tool_ran, tool_result, tool_use

SIZES = [(120, 40), (80, 24), (60, 15)]
GAUGE = GaugeFacts(84_200, False, 200_000, 180_000, 147_000, 147_000, 167_000, 177_000, True, 50, "ok")
DONE = """## Done

The area is exact now:

- `area` uses `math.pi`
- two tests compared with the **rounded** value

```python
def area(r: float) -> float:
    return math.pi * r ** 2
```
"""


def conversation(r: Recorder, theme: str) -> list[Event]:
    return [
        opened(theme=theme),
        GaugeMoved(GAUGE),
        CostMoved(0.42, True, 0.93, 240.0),
        r.commit(prompt("The area function is imprecise. Make it exact.")),
        r.commit(
            answer(thinking("use math.pi"), text("I'll look first."), tool_use("t1", "Read", file_path="shapes.py"))
        ),
        r.commit(tool_result("t1", "1\timport math")),
        r.commit(tool_ran("t1", "Read shapes.py", 0.01, lines=42)),
        r.commit(answer(tool_use("t2", "Edit", file_path="shapes.py"), tool_use("t3", "Bash", command="pytest -q"))),
        r.commit(tool_result("t2", "ok")),
        r.commit(tool_ran("t2", "Edit shapes.py", 0.02, patch=PATCH)),
        r.commit(tool_result("t3", "2 failed", is_error=True)),
        r.commit(tool_ran("t3", "pytest -q", 2.1, exit_code=1)),
        r.commit(answer(text(DONE))),
    ]


def busy(r: Recorder) -> list[Event]:
    return [
        r.commit(prompt("Now the volume.")),
        TurnStarted("u"),
        RequestStarted("repl_main_thread"),
        ThinkingDelta("a sphere"),
        TextDelta("The volume has the same constant"),
        QueueChanged((("q", "then write the changelog"),)),
    ]


def asking(r: Recorder) -> list[Event]:
    question = PermissionQuestion(
        "Edit",
        "edit",
        "/repo/engine/shapes.py",
        reason="Edits ask in this mode",
        old_text="import math\n\ndef area(r): return 3.14 * r ** 2\n",
        new_text="import math\n\ndef area(r): return math.pi * r ** 2\n",
        session_rule="Edit(/repo/engine/**)",
    )
    return [TurnStarted("u"), PermissionNeeded("q1", "t9", question)]


def compacted(r: Recorder) -> list[Event]:
    receipt = {"calls": 0, "duration_s": 0.3}
    return [
        r.commit(UserEntry((TextBlock("exact area"),), origin="summary"), tx="t"),
        r.commit(Boundary((), "auto", "session_memory", 167_000, 24_000, 40, receipt=receipt), tx="t"),
        r.commit(ClearResults({"t1": "[cleared]"}, "idle for 70 min", 8_400)),
    ]


def questioning(r: Recorder) -> list[Event]:
    options = (QuestionOption("metres", "as in the tests"), QuestionOption("feet"))
    return [TurnStarted("u"), QuestionAsked("q1", "t9", (Question("Units", "Which unit do we use?", options),))]


def compacting(r: Recorder) -> list[Event]:
    return [TurnStarted("u"), CompactionStarted("auto", "full", 167_000), CompactionProgress(1_234, 0.0)]


def running(r: Recorder) -> list[Event]:
    return [TurnStarted("u"), RequestStarted("x"), ToolStarted("t9", "Bash", "pytest -q", {"command": "pytest -q"})]


def retrying(r: Recorder) -> list[Event]:
    return [TurnStarted("u"), RequestStarted("x"), RetryScheduled(2, 10, 4.0, "The server is overloaded.", 529)]


def failed(r: Recorder) -> list[Event]:
    return [TurnStarted("u"), TurnFailed("authentication", "The server does not know this key.", "See pyagent doctor.")]


STATES: Mapping[str, Callable[[Recorder], list[Event]]] = {
    "idle": lambda r: [],
    "busy": busy,
    "asking": asking,
    "compacted": compacted,
    "questioning": questioning,
    "compacting": compacting,
    "running": running,
    "retrying": retrying,
    "failed": failed,
    "transcript": lambda r: [],
    "searching": lambda r: [],
    "help": lambda r: [],
    "menu": lambda r: [],
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "transcript": ("ctrl+o",),
    "searching": ("ctrl+f", "a", "r", "e", "a"),
    "help": ("question_mark",),
    "menu": ("slash", "c", "o"),
}
"""Pressed once the conversation stands."""
DIALOGS: Mapping[str, type[Screen[Any]]] = {
    "asking": ApprovalScreen,
    "questioning": QuestionScreen,
    "transcript": TranscriptScreen,
    "help": HelpScreen,
}
LOOKS = ("dark", "light", "no colour")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", STATES)
def test_the_screen_looks_like_this(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, look: str, size: tuple[int, int]
) -> None:
    if look == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    r = Recorder()
    shown: Sequence[Event] = [*conversation(r, "light" if look == "light" else "dark"), *STATES[state](r)]
    app = PyagentApp(
        Invocation(launch_options(tmp_path, cwd=Path("/")), FrontEnd.SCREEN),
        FakeAgent(shown),
        clock=lambda: 100.0,
        version="0.1.0",
    )

    async def settle(pilot: Any) -> None:
        app.query_one(Prompt).cursor_blink = False
        for _ in range(300):
            is_taken = app.view is not None and app.view.take_count > 0
            if is_taken:
                break
            await pilot.pause(0.01)
        await pilot.press(*KEYS.get(state, ()))
        for _ in range(300):
            if state not in DIALOGS or isinstance(app.screen, DIALOGS[state]):
                break
            await pilot.pause(0.01)
        await pilot.pause()

    assert snap_compare(app, run_before=settle, terminal_size=size)
