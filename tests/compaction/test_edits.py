"""Snip, time-based and cached clearing, collapse, and the gate they share."""

from __future__ import annotations

import pytest

from pyagent.compaction.cached import (
    MIN_BATCH_TOKENS,
    CacheEditing,
    NativeClearing,
    NoClearing,
    queue_edits,
)
from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.collapse import collapse_finished
from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCounter
from pyagent.compaction.gate import may_edit_history
from pyagent.compaction.microcompact import CLEARED, Clearing, clear_cold_results, clearable
from pyagent.compaction.outcome import Applied, Declined, EditsQueued, ResultsCleared
from pyagent.compaction.snip import snip_superseded
from pyagent.log import Snip
from pyagent.settings import CompactionSettings
from tests.compaction.builder import Talk, WordTokenizer, with_usage, words
from tests.compaction.fakes import Bench


def new_sizer() -> Sizer:
    """A fresh one for each conversation: estimates are kept by entry id."""
    return Sizer(ContextCounter(WordTokenizer()), "claude_from_4_7")


def reading_talk(reads: int = 8, tokens: int = 200) -> Talk:
    talk = Talk()
    talk.prompt("look around")
    for number in range(reads):
        talk.call("Read", words(tokens), file_path=f"/p/{number}.py")
    talk.answer("seen")
    return talk


def cleared(talk: Talk, *, gap_minutes: float = 60, keep_recent: int = 5) -> Clearing | str:
    return clear_cold_results(talk.view, new_sizer(), now=talk.now, gap_minutes=gap_minutes, keep_recent=keep_recent)


def test_after_a_long_pause_all_but_the_newest_results_are_cleared() -> None:
    talk = reading_talk().wait(minutes=61)
    made = cleared(talk)
    assert isinstance(made, Clearing)
    assert len(made.op.placeholders) == 3
    assert made.op.freed_tokens > 600
    oldest = next(iter(made.op.placeholders.values()))
    assert oldest == f"{CLEARED} Read /p/0.py again if you need it."
    talk.write(made.op)
    assert cleared(talk) == "no old tool result is worth clearing"


def test_before_the_gap_nothing_is_cleared() -> None:
    assert isinstance(cleared(reading_talk().wait(minutes=59)), str)


def test_one_result_at_least_always_stays() -> None:
    made = cleared(reading_talk().wait(hours=2), keep_recent=0)
    assert isinstance(made, Clearing)
    assert len(made.op.placeholders) == 7


def test_errors_short_results_and_tools_that_cannot_be_asked_again_stay() -> None:
    talk = Talk()
    talk.prompt("go")
    talk.call("Bash", words(100), is_error=True)
    talk.call("Bash", "ok")
    talk.call("Bash", "")
    talk.call("mcp__notes__load", words(500))
    talk.call("Memory", words(500))
    talk.call("Read", words(500), file_path="/a")
    talk.call("Read", words(500), file_path="/b")
    talk.answer("done")
    talk.wait(hours=2)
    made = cleared(talk, keep_recent=1)
    assert isinstance(made, Clearing)
    assert len(made.op.placeholders) == 1
    assert "/a" in next(iter(made.op.placeholders.values()))


async def test_the_pipeline_clears_at_the_prompt_after_a_pause_and_says_how_long_it_was() -> None:
    talk = reading_talk(tokens=2_000).wait(hours=7)
    talk.prompt("hey")
    bench = Bench(talk)
    before = bench.tokens()
    result = await bench.before_request()
    layer, outcome = result.outcomes[0]
    assert layer == "microcompact"
    assert isinstance(outcome, Applied)
    assert isinstance(outcome.facts, ResultsCleared)
    assert outcome.facts.count == 3
    assert outcome.facts.idle_s == pytest.approx(7 * 3600, abs=10)
    assert bench.tokens() < before


@pytest.mark.parametrize("source", ["agent:explore", "session_memory", "compact"])
async def test_only_the_main_thread_s_results_are_cleared(source: str) -> None:
    talk = reading_talk(tokens=2_000).wait(hours=7)
    talk.prompt("hey")
    bench = Bench(talk, query_source=source)
    assert (await bench.before_request()).records == ()


async def test_a_command_of_seventy_minutes_clears_nothing_in_mid_loop() -> None:
    talk = reading_talk(tokens=2_000)
    talk.prompt("run the long one")
    talk.assistant([{"type": "tool_use", "id": "slow", "name": "Bash", "input": {"command": "sleep"}}])
    talk.wait(minutes=70)
    talk.results()
    bench = Bench(talk)
    assert (await bench.before_request()).records == ()


@pytest.mark.parametrize("settings", [CompactionSettings(is_disabled=True)])
async def test_the_kill_switch_holds_for_clearing_too(settings: CompactionSettings) -> None:
    talk = reading_talk(tokens=2_000).wait(hours=7)
    talk.prompt("hey")
    result = await Bench(talk, settings=settings).before_request()
    assert result.records == ()


async def test_with_automatic_compaction_off_clearing_still_works() -> None:
    talk = reading_talk(tokens=2_000).wait(hours=7)
    talk.prompt("hey")
    result = await Bench(talk, settings=CompactionSettings(is_auto_disabled=True)).before_request()
    assert isinstance(result.outcomes[0][1], Applied)


def test_the_gate_opens_for_a_cold_cache_or_much_room_and_never_in_a_tool_loop() -> None:
    view = reading_talk().view
    assert may_edit_history(view, is_cache_warm=False, freed_tokens=1).is_open
    assert may_edit_history(view, is_cache_warm=True, freed_tokens=20_000).is_open
    assert not may_edit_history(view, is_cache_warm=True, freed_tokens=19_999).is_open
    assert not may_edit_history(view, is_cache_warm=False, freed_tokens=0).is_open
    looping = Talk()
    looping.prompt("go")
    looping.call("Read", "x", file_path="/a")
    assert not may_edit_history(looping.view, is_cache_warm=False, freed_tokens=90_000).is_open


def test_an_earlier_identical_read_is_snipped_with_its_result() -> None:
    talk = Talk()
    talk.prompt("go")
    first = talk.call("Read", words(300), file_path="/a")
    other = talk.call("Read", words(300), file_path="/b")
    talk.call("Read", words(300), file_path="/a")
    talk.answer("done")
    snip = snip_superseded(talk.view, new_sizer())
    assert isinstance(snip, Snip)
    talk.write(snip)
    assert talk.view.tool_use(first) is None
    assert talk.view.result_position(first) is None
    assert talk.view.tool_use(other) is not None


def test_a_failed_attempt_is_snipped_once_the_same_call_has_succeeded() -> None:
    talk = Talk()
    talk.prompt("go")
    talk.call("Bash", words(300), is_error=True, command="make")
    failed_for_good = talk.call("Bash", words(300), is_error=True, command="lint")
    talk.call("Bash", "ok", command="make")
    talk.answer("done")
    snip = snip_superseded(talk.view, new_sizer())
    assert isinstance(snip, Snip)
    assert len(snip.uuids) == 2
    talk.write(snip)
    assert talk.view.tool_use(failed_for_good) is not None


def test_commands_that_succeeded_and_words_of_the_model_are_never_snipped() -> None:
    talk = Talk()
    talk.prompt("go")
    talk.call("Bash", words(300), command="date")
    talk.call("Bash", words(300), command="date")
    talk.call("Read", words(300), text="I will now read it.", file_path="/a")
    talk.call("Read", words(300), file_path="/a")
    talk.answer("done")
    assert isinstance(snip_superseded(talk.view, new_sizer()), str)


def test_finished_stretches_fold_to_a_line_and_prompts_stay() -> None:
    talk = Talk()
    for number in range(4):
        talk.task(f"request {number}", rounds=3, tokens=800)
    folds = collapse_finished(talk.view, new_sizer())
    assert not isinstance(folds, str)
    assert len(folds) == 2
    assert "Concluded: finished request 0" in folds[0].text
    assert "step 0" in folds[0].text
    for fold in folds:
        talk.write(fold)
    assert [item.entry.text for item in talk.view if item.is_prompt] == [f"request {n}" for n in range(4)]
    assert isinstance(collapse_finished(talk.view, new_sizer()), str), "a fold is not folded again"


async def test_collapse_holds_compaction_back_while_it_frees_enough() -> None:
    talk = Talk()
    for number in range(40):
        talk.task(f"request {number}", rounds=1, tokens=2_600)
    talk.prompt("next")
    bench = Bench(talk).set_gates(context_collapse=True)
    assert bench.tokens() > bench.context().thresholds.trigger
    result = await bench.before_request()
    assert result.compacted is None
    assert bench.tokens() < bench.context().thresholds.trigger


# ── cached ───────────────────────────────────────────────────────────────────────────────────────────────────────


def many_results(count: int = 80, tokens: int = 600) -> Talk:
    talk = Talk()
    talk.prompt("go")
    for number in range(count):
        talk.call("Bash", words(tokens), command=f"step {number}")
    talk.answer("done")
    return talk


def test_old_results_are_dropped_in_one_large_batch() -> None:
    talk = many_results()
    edits = queue_edits(talk.view, CachedEdits(), new_sizer())
    assert isinstance(edits, CachedEdits)
    assert edits.pending is not None
    dropped = edits.pending.tool_use_ids
    assert dropped == clearable(talk.view)[: len(dropped)], "the oldest go first"
    assert len(dropped) * 1_056 >= MIN_BATCH_TOKENS
    sent = edits.answered()
    assert sent.pending is None
    assert isinstance(queue_edits(talk.view, sent, new_sizer()), str), "no second batch for one more result"
    talk.call("Bash", words(600), command="more")
    assert isinstance(queue_edits(talk.view, sent, new_sizer()), str)
    assert CachedEdits.from_json(sent.to_json()) == sent


@pytest.mark.parametrize("talk", [many_results(40), many_results(60, tokens=20)])
def test_few_or_small_results_are_not_worth_a_batch(talk: Talk) -> None:
    assert isinstance(queue_edits(talk.view, CachedEdits(), new_sizer()), str)


def test_only_a_declared_server_sees_cache_edits() -> None:
    talk = many_results()
    edits = queue_edits(talk.view, CachedEdits(), new_sizer())
    assert isinstance(edits, CachedEdits)
    assert CacheEditing().request_fields(edits)["cache_edits"][0]["new"] is True
    assert CacheEditing().request_fields(edits.answered())["cache_edits"][0]["new"] is False
    native = NativeClearing(100_000).request_fields(edits)
    assert native["context_management"]["edits"][0]["clear_at_least"]["value"] == MIN_BATCH_TOKENS
    assert NoClearing().request_fields(edits) == {}
    assert all(adapter.request_fields(CachedEdits()) == {} for adapter in (CacheEditing(), NativeClearing(1)))


async def test_the_pipeline_queues_a_batch_only_where_gate_and_provider_allow_it() -> None:
    talk = many_results()
    talk.answer("cached", usage=with_usage(90_000, cached=80_000))
    talk.prompt("next")
    bench = Bench(talk).set_gates(cached_microcompact=True)
    assert (await bench.before_request()).cached_edits is None
    bench.cached_edits = CachedEdits()
    result = await bench.before_request()
    facts = [o.facts for _, o in result.outcomes if isinstance(o, Applied)]
    assert isinstance(facts[0], EditsQueued)
    assert result.cached_edits is not None
    assert result.cached_edits.pending is not None
    assert result.records == (), "the local transcript stays as it is"
    bench.set_gates(cached_microcompact=False)
    assert all(isinstance(o, Declined) for _, o in (await bench.before_request()).outcomes)
