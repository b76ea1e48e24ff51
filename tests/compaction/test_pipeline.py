from __future__ import annotations

import pytest

from pyagent.compaction.outcome import Applied, Compacted, Declined
from pyagent.compaction.ports import RestorableState, RestoreText
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import ModelUnavailableError, PromptTooLongError
from pyagent.events import CompactionEnded, CompactionStarted
from pyagent.log import Boundary, CompactionFailed, Revoke, UserEntry
from pyagent.settings import CompactionSettings
from tests.compaction.builder import Talk, words
from tests.compaction.fakes import Bench, FixedHooks, FixedSources, ScriptedSummarizer, summary


def long_talk(rounds: int = 60, tokens: int = 2_000) -> Talk:
    talk = Talk()
    talk.task("never touch the vendor folder", rounds=rounds // 2, tokens=tokens)
    talk.task("rename the function parse_date", rounds=rounds // 2, tokens=tokens)
    talk.prompt("and now the tests")
    return talk


async def test_nothing_is_written_below_the_trigger() -> None:
    bench = Bench(long_talk(rounds=10))
    result = await bench.before_request()
    assert result.records == ()
    assert bench.events == []


async def test_at_the_trigger_a_model_summarises_and_the_prompt_that_waits_stays_last() -> None:
    bench = Bench(long_talk(), ScriptedSummarizer(summary("We renamed parse_date.")))
    before = bench.tokens()
    assert before >= bench.context().thresholds.trigger
    result = await bench.before_request()
    bench.summarizer.assert_finished()
    assert isinstance(result.compacted, Compacted)
    assert result.compacted.layer == "full"
    assert isinstance(bench.events[0], CompactionStarted)
    view = bench.talk.view
    first = view.items[0].entry
    assert isinstance(first, UserEntry)
    assert first.origin == "summary"
    assert "We renamed parse_date." in first.text
    assert "never touch the vendor folder" in first.text
    assert view.items[-1].entry.text == "and now the tests"
    assert bench.tokens() < 0.5 * bench.context().thresholds.trigger + bench.overhead_tokens
    assert bench.tokens() == result.compacted.after_tokens


async def test_the_task_list_and_memory_stand_behind_the_summary() -> None:
    state = RestorableState(
        memory=(RestoreText("memory:/p/CLAUDE.md", "Never add Co-Authored-By."),),
        tasks=RestoreText("tasks", "1. tests"),
    )
    bench = Bench(long_talk(), ScriptedSummarizer(summary()), FixedSources(state))
    await bench.before_request()
    texts = [item.entry.text for item in bench.talk.view]
    assert texts.index("Never add Co-Authored-By.") > 0
    assert "1. tests" in texts


async def test_an_unreachable_model_is_retried_at_the_next_requests_and_then_done_without() -> None:
    down = ModelUnavailableError("The server is down.")
    bench = Bench(long_talk(rounds=48), ScriptedSummarizer(down, down, down))
    first = await bench.before_request()
    assert isinstance(first.outcomes[-1][1], Declined)
    assert isinstance(first.records[0].payload, CompactionFailed)
    assert [type(event) for event in bench.events] == [CompactionStarted, CompactionEnded]
    await bench.before_request()
    third = await bench.before_request()
    assert third.compacted is not None
    assert third.compacted.layer == "extractive"
    assert "3 times in a row" in third.notices[0]
    assert bench.tokens() < bench.context().thresholds.trigger
    bench.summarizer.assert_finished()


async def test_an_open_circuit_makes_no_call_and_still_brings_the_view_below_the_trigger() -> None:
    talk = long_talk()
    tracking = AutoCompactTracking(consecutive_failures=3, last_failure_at=talk.now, last_failure_reason="down")
    bench = Bench(talk, tracking=tracking)
    result = await bench.before_request()
    assert result.compacted is not None
    assert bench.tokens() < bench.context().thresholds.trigger
    assert result.tracking.consecutive_failures == 3


async def test_a_short_chat_is_refused_without_a_call_and_without_a_hook() -> None:
    talk = Talk()
    talk.prompt("hi")
    talk.answer("hello")
    hooks = FixedHooks()
    bench = Bench(talk, hooks=hooks)
    result = await bench.compact()
    assert isinstance(result.outcome, Declined)
    assert result.records == ()
    assert hooks.calls == []


async def test_the_instruction_to_compact_never_reaches_the_conversation() -> None:
    bench = Bench(long_talk(), ScriptedSummarizer(summary()))
    await bench.compact("write a handoff file")
    assert "write a handoff file" in bench.summarizer.requests[0].instruction
    assert all("handoff" not in item.entry.text for item in bench.talk.view)


async def test_an_overflow_summarises_the_older_part_and_keeps_the_newest_rounds() -> None:
    bench = Bench(long_talk(), ScriptedSummarizer(summary()))
    error = PromptTooLongError("prompt is too long", prompt_tokens=212_000, limit_tokens=200_000)
    result = await bench.overflow(error)
    assert isinstance(result.outcome, Applied)
    assert result.compacted is not None
    assert result.compacted.layer == "reactive"
    assert len(bench.summarizer.requests[0].view) < len(long_talk().view)
    boundary = bench.talk.state.boundaries[-1].payload
    assert isinstance(boundary, Boundary)
    assert len(boundary.kept) > 2


@pytest.mark.parametrize("window", [8_000, 32_000, 60_000, 100_000, 200_000, 1_000_000])
async def test_every_window_is_compacted_below_its_trigger(window: int) -> None:
    talk = Talk()
    size = window // 60
    for number in range(40):
        talk.task(f"request {number}", rounds=1, tokens=size)
    talk.prompt("last request")
    bench = Bench(talk, ScriptedSummarizer(summary()), window_tokens=window, overhead_tokens=window // 20)
    assert bench.tokens() > bench.context().thresholds.trigger
    result = await bench.before_request()
    assert result.compacted is not None
    assert result.compacted.layer == "full"
    assert bench.tokens() < bench.context().thresholds.trigger
    assert bench.talk.view.items[-1].entry.text == "last request"


async def test_a_plan_that_fills_the_context_ends_the_spiral_after_three_compactions() -> None:
    state = RestorableState(plan=RestoreText("plan", words(81_000)))
    bench = Bench(long_talk(), ScriptedSummarizer(summary(), summary(), summary()), FixedSources(state))
    for _ in range(3):
        result = await bench.before_request()
        assert result.compacted is not None
        assert "plan" in result.compacted.receipt["contributors"][0]
        assert bench.tokens() < bench.context().thresholds.trigger
        bench.talk.task("more", rounds=2, tokens=20_000)
    result = await bench.before_request()
    assert result.compacted is None
    assert "Largest parts: " in result.notices[0]
    bench.summarizer.assert_finished()
    again = await bench.before_request()
    assert (again.records, again.notices) == ((), ()), "told once, and not tried again"
    bench.window_tokens = 1_000_000
    assert (await bench.before_request()).notices == ()


async def test_one_huge_round_without_anything_before_it_is_still_cut_to_size() -> None:
    talk = Talk()
    talk.prompt("read it all")
    talk.call("Read", words(110_000), file_path="/p/huge.log")
    bench = Bench(talk)
    result = await bench.before_request()
    assert result.compacted is not None
    assert result.compacted.layer == "extractive"
    assert result.tracking.consecutive_failures == 0
    assert bench.tokens() < bench.context().thresholds.trigger
    assert talk.view.last_prompt is not None


@pytest.mark.parametrize("is_auto_disabled", [True, False])
async def test_the_switches_hold_at_the_trigger(is_auto_disabled: bool) -> None:
    settings = CompactionSettings(is_disabled=not is_auto_disabled, is_auto_disabled=is_auto_disabled)
    bench = Bench(long_talk(), settings=settings)
    assert (await bench.before_request()).records == ()
    assert bench.events == []


async def test_manual_compaction_works_with_automatic_off_and_not_with_everything_off() -> None:
    bench = Bench(long_talk(), ScriptedSummarizer(summary()), settings=CompactionSettings(is_auto_disabled=True))
    assert (await bench.compact()).compacted is not None
    off = await Bench(long_talk(), settings=CompactionSettings(is_disabled=True)).compact()
    assert isinstance(off.outcome, Declined)
    assert "DISABLE_COMPACT" in off.outcome.reason
    assert off.records == ()


async def test_a_manual_compaction_is_tried_while_the_circuit_is_open_and_closes_it() -> None:
    talk = long_talk(rounds=20)
    tracking = AutoCompactTracking(consecutive_failures=3, last_failure_at=talk.now)
    bench = Bench(talk, ScriptedSummarizer(summary()), tracking=tracking)
    result = await bench.compact()
    assert result.compacted is not None
    assert result.compacted.layer == "full"
    assert result.tracking.consecutive_failures == 0


async def test_undo_restores_the_view_and_the_forecast_tells_its_size() -> None:
    bench = Bench(long_talk(rounds=20), ScriptedSummarizer(summary()))
    before = bench.talk.view
    await bench.compact()
    forecast = bench.pipeline.undo_forecast(bench.context(), before)
    bench.talk.write(Revoke(bench.talk.state.boundaries[-1].seq))
    assert [item.key for item in bench.talk.view] == [item.key for item in before]
    assert bench.tokens() == forecast
