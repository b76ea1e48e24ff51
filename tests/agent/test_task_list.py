"""The task list from the call to the screen, through compactions and a resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyagent.agent.restore_sources import current_tasks
from pyagent.events import CompactionFinished, ToolFinished
from tests.agent.support import launch_options, running_agent, state_on_disk
from tests.fakes.messages_server import FakeMessagesServer
from tests.fakes.recorded import Recorded
from tests.fakes.script import ToolRounds

TODOS = [
    {"content": "Count the lines", "status": "completed", "activeForm": "Counting"},
    {"content": "Report the sum", "status": "in_progress", "activeForm": "Reporting"},
]
LIST_TEXT = "- [x] Count the lines\n- [~] Report the sum"
SUMMARY = "<analysis>.</analysis><summary>" + "\n".join(f"{n}. Section" for n in range(1, 10)) + "</summary>"


def task_texts(request: Recorded) -> list[str]:
    """Texts of a request that hold the list."""
    return [
        str(block["text"])
        for message in request.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if LIST_TEXT in str(block.get("text"))
    ]


async def test_the_list_is_shown_and_stands_behind_each_compaction_although_the_call_is_gone(tmp_path: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("TodoWrite", {"todos": TODOS}),
        *[("Bash", {"command": "seq {round}00 2000"})] * 99,
    ]
    rounds = ToolRounds(
        calls, rounds=6, is_summary=lambda request: "<summary>" in request.last_text, summary_text=SUMMARY
    )
    async with FakeMessagesServer(rounds, window_tokens=60_000) as server:
        options = launch_options(tmp_path, server.url)
        async with running_agent(options) as agent:
            await agent.prompt("count")
            shown = [event.display for event in agent.all_of(ToolFinished) if event.name == "TodoWrite"]
            assert [display["tasks"] for display in shown] == [TODOS]
            await agent.command("compact", "", CompactionFinished)
            await agent.prompt("go on")
            first_after = next(r for r in server.message_requests if "go on" in str(r.body["messages"][-1]["content"]))
            await agent.command("compact", "", CompactionFinished)
        async with running_agent(replace(options, is_continued=True)) as agent:
            await agent.prompt("once more")
        last = server.message_requests[-1]
        server.assert_finished()
    assert [len(task_texts(request)) for request in (first_after, last)] == [1, 1]
    assert not any("tool_use" in str(m["content"]) and "TodoWrite" in str(m["content"]) for m in last.body["messages"])
    assert current_tasks(state_on_disk(options)) == TODOS
