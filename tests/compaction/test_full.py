from __future__ import annotations

import pytest

from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCounter
from pyagent.compaction.full import MAX_SUMMARY_CALLS, TRUNCATION_MARKER, NoSummary, Summary, summarise
from pyagent.compaction.outcome import Compacted
from pyagent.compaction.plan import CompactionPlan, plan_compaction
from pyagent.compaction.thresholds import thresholds_for
from pyagent.errors import (
    BrokenStreamError,
    CredentialsError,
    ModelUnavailableError,
    PromptTooLongError,
    RequestRefusedError,
)
from pyagent.log import FileSeen
from pyagent.settings import CompactionSettings
from tests.compaction.builder import Talk, WordTokenizer, with_usage, words
from tests.compaction.fakes import Bench, FixedSources, Reply, ScriptedSummarizer, answer, summary
from tests.compaction.strategies import pairing_faults


def new_sizer() -> Sizer:
    """A fresh one for each conversation: estimates are kept by entry id."""
    return Sizer(ContextCounter(WordTokenizer()), "claude_from_4_7")


TEXT = {"type": "text", "text": ""}
TOOL_CALL = {"type": "tool_use", "id": "toolu_x", "name": "Read", "input": {"file_path": "/a"}}


def too_long(gap: int | None) -> PromptTooLongError:
    if gap is None:
        return PromptTooLongError("too long")
    return PromptTooLongError("too long", prompt_tokens=200_000 + gap, limit_tokens=200_000)


def plan_for(talk: Talk) -> CompactionPlan:
    plan = plan_compaction(
        talk.view,
        new_sizer(),
        thresholds_for(200_000, None, CompactionSettings()),
        trigger="auto",
        layer="full",
        before_tokens=170_000,
        overhead_tokens=2_000,
    )
    assert isinstance(plan, CompactionPlan)
    return plan


def talk() -> Talk:
    made = Talk()
    for number in range(20):
        made.task(f"request {number}", rounds=2, tokens=1_000)
    made.prompt("pending")
    return made


async def outcome(*replies: Reply, shares_prefix: bool = True) -> tuple[Summary | NoSummary, ScriptedSummarizer]:
    summarizer = ScriptedSummarizer(*replies)
    made = await summarise(
        plan_for(talk()), summarizer, new_sizer(), instructions=(), shares_prefix=shares_prefix, may_retry_streams=True
    )
    summarizer.assert_finished()
    return made, summarizer


async def test_the_first_attempt_is_the_view_to_its_last_complete_round_plus_one_message() -> None:
    made, summarizer = await outcome(summary("fine"))
    request = summarizer.requests[0]
    assert isinstance(made, Summary)
    assert made.text == "fine"
    assert request.view.items == talk().view.items[:-1]
    assert request.shares_prefix
    assert not request.strip_media
    assert request.max_output_tokens == 20_000


@pytest.mark.parametrize(
    "bad",
    [
        answer([]),
        answer([{"type": "text", "text": "\n \n"}]),
        answer([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        answer([{"type": "text", "text": "<analysis>only a draft</analysis>"}]),
        answer([{"type": "text", "text": "<summary>   </summary>"}]),
        answer([{"type": "text", "text": "<summary>cut o"}], "max_tokens"),
        answer([{"type": "text", "text": "API Error: 529 overloaded"}]),
        summary(words(50_000)),
        answer([TOOL_CALL], "tool_use"),
    ],
)
async def test_an_answer_that_is_no_summary_is_asked_for_again_and_twice_at_most(bad: Reply) -> None:
    made, summarizer = await outcome(bad, summary("second try"))
    assert isinstance(made, Summary)
    assert made.bill.calls == 2
    assert summarizer.requests[1].shares_prefix, "the retry reads the same cached prefix"
    never, _ = await outcome(bad, bad, bad)
    assert isinstance(never, NoSummary)
    assert not never.may_pass


async def test_a_tool_call_is_answered_with_a_refusal_of_each_use() -> None:
    second = {**TOOL_CALL, "id": "toolu_y"}
    _, summarizer = await outcome(answer([TOOL_CALL, second], "tool_use"), summary())
    refused = summarizer.requests[1].refused
    assert refused is not None
    assert [block["tool_use_id"] for block in refused.results] == ["toolu_x", "toolu_y"]
    assert all(block["is_error"] for block in refused.results)
    assert summarizer.requests[1].instruction == summarizer.requests[0].instruction


async def test_a_summary_beside_a_tool_call_is_good_enough() -> None:
    made, _ = await outcome(answer([{"type": "text", "text": "<summary>here</summary>"}, TOOL_CALL], "tool_use"))
    assert isinstance(made, Summary)


async def test_a_cut_off_summary_is_asked_for_shorter() -> None:
    _, summarizer = await outcome(answer([{"type": "text", "text": "<summary>…"}], "max_tokens"), summary())
    assert summarizer.requests[1].instruction != summarizer.requests[0].instruction
    assert "tighter" in summarizer.requests[1].instruction


@pytest.mark.parametrize("error", [CredentialsError("401"), RequestRefusedError("400"), ModelUnavailableError("529")])
async def test_what_the_client_gave_up_on_is_not_tried_again(
    error: CredentialsError | RequestRefusedError | ModelUnavailableError,
) -> None:
    made, _ = await outcome(error)
    assert isinstance(made, NoSummary)
    assert made.may_pass == isinstance(error, ModelUnavailableError)


async def test_a_refusal_is_not_tried_again() -> None:
    made, _ = await outcome(answer([], "refusal"))
    assert isinstance(made, NoSummary)


async def test_a_broken_stream_is_tried_twice_more() -> None:
    broken = BrokenStreamError("cut")
    made, _ = await outcome(broken, broken, summary())
    assert isinstance(made, Summary)
    never, _ = await outcome(broken, broken, broken)
    assert isinstance(never, NoSummary)
    assert never.may_pass


async def test_too_long_loses_the_newest_rounds_first_while_the_prefix_is_shared() -> None:
    made, summarizer = await outcome(too_long(5_000), summary())
    assert isinstance(made, Summary)
    first, second = summarizer.requests
    assert second.shares_prefix
    assert second.view.items == first.view.items[: len(second.view)], "the same prefix, only shorter"
    lost = new_sizer().items(talk().view, len(second.view), len(first.view))
    assert 5_000 <= lost < 10_000
    assert made.plan.keep_from == len(second.view), "what the summary does not tell stays word for word"


async def test_too_long_loses_the_oldest_rounds_when_no_prefix_is_shared() -> None:
    made, summarizer = await outcome(too_long(5_000), summary(), shares_prefix=False)
    assert isinstance(made, Summary)
    first, second = summarizer.requests
    assert second.strip_media
    assert second.view.items[-1] == first.view.items[-1]
    assert second.view.items[0].is_user
    assert pairing_faults(second.view) == set()


async def test_a_request_that_would_begin_with_the_assistant_is_opened_by_a_marker() -> None:
    made = Talk()
    made.prompt("one long task")
    for number in range(30):
        made.call("Bash", words(1_000), command=f"step {number}")
    made.answer("so far")
    summarizer = ScriptedSummarizer(too_long(3_000), summary())
    await summarise(
        plan_for(made), summarizer, new_sizer(), instructions=(), shares_prefix=False, may_retry_streams=True
    )
    assert summarizer.requests[1].view.items[0].entry.text == TRUNCATION_MARKER


async def test_an_unknown_gap_costs_a_fifth_of_the_rounds_and_three_retries_are_all() -> None:
    unknown = too_long(None)
    never, summarizer = await outcome(unknown, unknown, unknown, unknown, shares_prefix=False)
    assert isinstance(never, NoSummary)
    lengths = [len(request.view) for request in summarizer.requests]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[1] < lengths[0]


async def test_six_calls_are_the_most_whatever_goes_wrong() -> None:
    empty = answer([])
    broken = BrokenStreamError("cut")
    replies = (too_long(100), broken, empty, too_long(100), broken, empty)
    made, summarizer = await outcome(*replies)
    assert isinstance(made, NoSummary)
    assert len(summarizer.requests) == MAX_SUMMARY_CALLS


@pytest.mark.parametrize("bad", [answer([]), answer([TOOL_CALL], "tool_use"), summary(words(200_000))])
async def test_when_no_answer_is_a_summary_the_extract_stands_in(bad: Reply) -> None:
    bench = Bench(talk(), ScriptedSummarizer(bad, bad, bad), window_tokens=80_000)
    result = await bench.before_request()
    assert isinstance(result.compacted, Compacted)
    assert result.compacted.layer == "extractive"
    assert result.compacted.calls == 3
    assert result.tracking.consecutive_failures == 1
    assert bench.tokens() < bench.context().thresholds.trigger


async def test_the_output_is_clamped_to_the_model_s_own_maximum() -> None:
    bench = Bench(talk(), ScriptedSummarizer(summary()), max_output_tokens=8_192)
    await bench.compact()
    assert bench.summarizer.requests[0].max_output_tokens == 8_192


@pytest.mark.parametrize("is_cold", [True, False])
async def test_the_prefix_is_shared_only_while_the_cache_is_warm(is_cold: bool) -> None:
    made = talk()
    made.answer("cached", usage=with_usage(90_000, cached=80_000))
    if is_cold:
        made.wait(minutes=6)
    bench = Bench(made, ScriptedSummarizer(summary()))
    await bench.compact()
    assert bench.summarizer.requests[0].shares_prefix is not is_cold
    assert bench.summarizer.requests[0].strip_media is is_cold


async def test_a_short_conversation_that_read_files_comes_out_shorter() -> None:
    made = Talk()
    files = {f"/p/{number}.py": words(2_000) for number in range(4)}
    for path in files:
        made.prompt(f"show {path}")
        use_id = made.call("Read", words(1_500), file_path=path)
        made.write(FileSeen(path, "old", use_id, "read", is_partial=True))
        made.answer(words(200))
    bench = Bench(made, ScriptedSummarizer(summary(words(400))), FixedSources(files=files), overhead_tokens=4_000)
    result = await bench.compact()
    assert result.compacted is not None
    assert result.compacted.after_tokens < 0.8 * result.compacted.before_tokens
    assert result.compacted.receipt["files_restored"]


async def test_a_summary_nearly_as_long_as_the_history_is_turned_down() -> None:
    made = Talk()
    for number in range(10):
        made.task(f"request {number}", rounds=1, tokens=100)
    bench = Bench(made, ScriptedSummarizer(summary(words(1_000))), window_tokens=30_000, overhead_tokens=6_000)
    result = await bench.compact()
    assert result.compacted is None
    assert "smaller" in getattr(result.outcome, "reason", "")
    assert bench.talk.state.boundaries == ()
