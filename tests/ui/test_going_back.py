"""Going back on the full screen: the rewind dialogs, and older history that comes in at the top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pyagent.commands import Command, RunCommand
from pyagent.events import (
    Event,
    OlderRecords,
    PromptReturned,
    RecordCommitted,
    ReplayFinished,
    RewindFile,
    RewindOffered,
    RewindPlanned,
    RewindPoint,
)
from pyagent.log import Record
from pyagent.ui.dialogs.picker import PickerScreen
from pyagent.ui.prompt import Prompt
from pyagent.ui.reduce import TranscriptFold
from pyagent.ui.transcript import Transcript
from tests.ui.fake_agent import opened
from tests.ui.records import Recorder, answer, prompt, text
from tests.ui.test_app import session

POINT = RewindPoint(1, 7, "fix the parser", datetime(2026, 11, 30, tzinfo=UTC), has_files=True, is_in_view=True)


def conversation(turn_count: int) -> list[Record]:
    r = Recorder()
    payloads = [p for n in range(turn_count) for p in (prompt(f"question {n}"), answer(text(f"answer {n}\n\nmore")))]
    return [r.record(payload) for payload in payloads]


def rewinding(command: Command) -> Sequence[Event]:
    match command:
        case RunCommand("rewind", ""):
            return (RewindOffered((POINT,), can_redo=False),)
        case RunCommand("rewind", "1"):
            return (RewindPlanned(POINT, (RewindFile("a.py", "change", False, "-1\n+2\n"),), ()),)
        case RunCommand("rewind", "1 both"):
            return (PromptReturned("fix the parser"),)
        case _:
            return ()


async def test_a_rewind_asks_for_the_prompt_and_then_for_the_way(tmp_path: Path) -> None:
    async with session(tmp_path, [opened()], rewinding) as s:
        agent = s.agent
        await s.type("/rewind", "escape", "enter")
        await s.until(lambda: isinstance(s.app.screen, PickerScreen), "the prompts")
        await s.pilot.press("enter")
        await s.until(lambda: RunCommand("rewind", "1") in agent.commands and isinstance(s.app.screen, PickerScreen))
        await s.pilot.press("enter")
        await s.until(lambda: s.app.query_one(Prompt).text == "fix the parser", "the prompt's text is back")
    assert [c.argument for c in agent.commands if isinstance(c, RunCommand)] == ["", "1", "1 both"]


async def test_older_history_comes_when_the_top_is_reached_and_what_is_in_sight_stays(tmp_path: Path) -> None:
    records = conversation(60)
    first, last = records[:60], records[60:]

    def older(command: Command) -> Sequence[Event]:
        is_asked = isinstance(command, RunCommand) and command.name == "older"
        return (OlderRecords(tuple(first), has_more=False),) if is_asked else ()

    replayed = [RecordCommitted(record, is_replay=True) for record in last]
    first_events: list[Event] = [opened(is_resumed=True, has_older=True), *replayed, ReplayFinished()]
    async with session(tmp_path, first_events, older) as s:
        agent = s.agent
        transcript = s.app.query_one(Transcript)
        await s.until(lambda: len(transcript.blocks) > 50, "the newest is there")
        count = len(transcript.blocks)
        await s.pilot.press("ctrl+home")
        await s.until(lambda: len(transcript.blocks) > count, "the older came in")
        assert transcript.scroll_offset.y > 0
        assert [c.name for c in agent.commands if isinstance(c, RunCommand)] == ["older"]


def test_history_that_came_in_stretches_folds_to_the_blocks_of_the_whole() -> None:
    records = conversation(6)
    whole, pieces = TranscriptFold(), TranscriptFold()
    for record in records:
        whole.apply(RecordCommitted(record, is_replay=True))
    for record in records[8:]:
        pieces.apply(RecordCommitted(record, is_replay=True))
    pieces.apply(OlderRecords(tuple(records[4:8]), has_more=True))
    pieces.apply(OlderRecords(tuple(records[:4]), has_more=False))
    assert pieces.blocks == whole.blocks
    added = replace(records[-1], seq=99, uuid="new", payload=prompt("and now"))
    pieces.apply(RecordCommitted(added))
    assert pieces.blocks[-1].text == "and now"
