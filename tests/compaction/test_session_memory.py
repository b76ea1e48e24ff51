from __future__ import annotations

import pytest

from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCounter
from pyagent.compaction.outcome import Declined
from pyagent.compaction.ports import SessionNotes
from pyagent.compaction.session_memory import (
    NotesProgress,
    is_only_template,
    notes_as_summary,
    notes_instruction,
    notes_template,
    update_due,
)
from pyagent.compaction.thresholds import thresholds_for
from pyagent.settings import CompactionSettings
from tests.compaction.builder import Talk, WordTokenizer, with_usage, words
from tests.compaction.fakes import Bench, FixedNotes, ScriptedSummarizer, summary

NOTES = "# Title\nDates\n\n# Task\nRename parse_date.\n\n# Worklog\n- began"
LINES = thresholds_for(200_000, None, CompactionSettings())


def new_sizer() -> Sizer:
    return Sizer(ContextCounter(WordTokenizer()), "claude_from_4_7")


def talk_with_notes(tasks_after: int = 6) -> tuple[Talk, SessionNotes]:
    talk = Talk()
    for number in range(20):
        talk.task(f"early {number}", rounds=3, tokens=1_000)
    covered = talk.view.items[-1].uuid
    for number in range(tasks_after):
        talk.task(f"late {number}", rounds=2, tokens=800)
    talk.prompt("and now")
    return talk, SessionNotes(NOTES, covered)


async def test_the_notes_become_the_summary_without_an_api_call() -> None:
    talk, notes = talk_with_notes()
    bench = Bench(talk, ScriptedSummarizer(), notes=FixedNotes(notes), window_tokens=160_000)
    assert bench.tokens() > bench.context().thresholds.trigger
    result = await bench.before_request()
    assert result.compacted is not None
    assert result.compacted.layer == "session_memory"
    assert result.compacted.calls == 0
    assert bench.summarizer.requests == []
    texts = [item.entry.text for item in talk.view]
    assert "Rename parse_date." in texts[0]
    assert [text for text in texts if text.startswith("late ")] == [f"late {n}" for n in range(6)]
    assert texts[-1] == "and now"


async def test_at_least_ten_thousand_tokens_are_kept_by_reaching_back() -> None:
    talk, notes = talk_with_notes(tasks_after=0)
    bench = Bench(talk, notes=FixedNotes(notes), window_tokens=160_000)
    result = await bench.compact()
    assert result.compacted is not None
    kept = result.compacted.receipt["parts"]["newest rounds"]
    assert 10_000 <= kept <= 0.2 * 160_000


async def test_with_instructions_the_notes_are_not_used() -> None:
    talk, notes = talk_with_notes()
    bench = Bench(talk, ScriptedSummarizer(summary()), notes=FixedNotes(notes))
    result = await bench.compact("stress names")
    assert result.compacted is not None
    assert result.compacted.layer == "full"


@pytest.mark.parametrize("kind", ["off", "none", "template", "other branch", "too old"])
async def test_notes_that_cannot_serve_leave_it_to_the_full_compact(kind: str) -> None:
    talk, notes = talk_with_notes(tasks_after=60 if kind == "too old" else 6)
    unusable = {
        "none": None,
        "template": SessionNotes(notes_template(), notes.covered_uuid),
        "other branch": SessionNotes(NOTES, "nowhere"),
    }.get(kind, notes)
    bench = Bench(talk, ScriptedSummarizer(summary()), notes=FixedNotes(unusable)).set_gates(
        session_memory=kind != "off"
    )
    result = await bench.compact()
    assert result.compacted is not None
    assert result.compacted.layer == "full"


def test_updates_are_due_at_their_shares_of_the_trigger_and_after_some_tool_calls() -> None:
    talk = Talk().task("go", rounds=4, tokens=10)
    view = talk.view

    def due(tokens: int, last_tokens: int, *, is_warm: bool = True, covered: str = "") -> bool:
        return bool(update_due(view, tokens, LINES, NotesProgress(last_tokens, covered), is_cache_warm=is_warm))

    assert not due(66_000, 0)
    assert due(66_800, 0)
    assert not due(70_000, 66_800)
    assert due(108_550, 66_800)
    assert not due(140_000, 120_000)
    assert due(147_000, 120_000)
    assert not due(160_000, 147_000)
    assert not due(70_000, 68_000), "a step that a compaction left behind it is none"
    assert not due(66_800, 0, is_warm=False), "a cold cache makes an update cost a whole context"
    assert not due(66_800, 0, covered=view.items[-2].uuid), "nothing much has happened since"


def test_in_a_small_window_and_under_economy_one_update_comes_late() -> None:
    view = Talk().task("go", rounds=4, tokens=10).view
    for lines in (thresholds_for(60_000, None, CompactionSettings()), LINES.lowered_to(60_000)):
        last = max(int(0.85 * lines.trigger), lines.warning)
        assert not update_due(view, last - 1, lines, NotesProgress(), is_cache_warm=True)
        assert update_due(view, last, lines, NotesProgress(), is_cache_warm=True)


def test_no_update_while_a_tool_call_is_in_flight() -> None:
    talk = Talk().task("go", rounds=4, tokens=10)
    talk.assistant([{"type": "tool_use", "id": "open", "name": "Bash", "input": {}}])
    assert update_due(talk.view, 100_000, LINES, NotesProgress(), is_cache_warm=True) == ""


def test_long_sections_are_named_in_the_instruction_and_cut_when_used() -> None:
    notes = f"# Task\n{words(3_000)}\n# Worklog\nshort"
    sizer = new_sizer()
    assert "Condense these sections, each to under 2,000 tokens: Task." in notes_instruction(notes, sizer)
    used = notes_as_summary(notes, sizer)
    assert "short" in used
    assert sizer.text(used) < 2_200
    whole = "\n".join(f"# S{n}\n{words(1_000)}" for n in range(20))
    assert sizer.text(notes_as_summary(whole, sizer)) <= 12_000


@pytest.mark.parametrize(
    ("notes", "expected"), [("", True), ("  \n", True), (notes_template() + "\n\n", True), (NOTES, False)]
)
def test_a_template_is_no_notes(notes: str, expected: bool) -> None:
    assert is_only_template(notes) is expected


async def test_a_draft_made_ahead_serves_like_notes() -> None:
    talk, _ = talk_with_notes(tasks_after=0)
    talk.answer("cached", usage=with_usage(120_000, cached=110_000))
    bench = Bench(talk, ScriptedSummarizer(summary("Made ahead.")))
    seq = talk.state.next_seq
    draft = await bench.pipeline.draft(bench.context())
    assert isinstance(draft, SessionNotes)
    assert talk.state.next_seq == seq
    assert bench.summarizer.requests[0].shares_prefix
    bench.notes.notes = draft
    talk.task("since then", rounds=2, tokens=100)
    result = await bench.compact()
    assert result.compacted is not None
    assert (result.compacted.layer, result.compacted.calls) == ("draft", 1)
    assert "Made ahead." in talk.view.items[0].entry.text
    assert "since then" in [item.entry.text for item in talk.view]


async def test_no_draft_is_made_on_a_cold_cache_or_with_automatic_compaction_off() -> None:
    talk, _ = talk_with_notes()
    assert isinstance(await Bench(talk).pipeline.draft(Bench(talk).context()), Declined)
    off = Bench(talk, settings=CompactionSettings(is_auto_disabled=True))
    assert isinstance(await off.pipeline.draft(off.context()), Declined)


def test_the_schedule_of_the_notes_is_a_matter_of_settings() -> None:
    chosen = CompactionSettings(notes_first_percent=20, notes_second_percent=30, notes_min_tool_calls=0)
    lines = thresholds_for(200_000, 20_000, chosen)
    talk = Talk()
    talk.task("small", rounds=1, tokens=100)
    assert update_due(talk.view, lines.trigger // 5 + 1, lines, NotesProgress(), is_cache_warm=True)
    assert not update_due(talk.view, lines.trigger // 5 - 1, lines, NotesProgress(), is_cache_warm=True)
    assert not update_due(talk.view, lines.trigger // 5 + 1, LINES, NotesProgress(), is_cache_warm=True)
