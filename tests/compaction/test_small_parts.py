"""Prompt, economy, pins, cleanup: the parts with little state of their own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.compaction.cleanup import cleanup_after, is_main_thread
from pyagent.compaction.economy import CachePrices, best_trigger, calls_to_pay_back, cost_per_call, economy
from pyagent.compaction.pins import Pin, rendered
from pyagent.compaction.prompt import Unusable, parse_summary, summary_instruction
from tests.compaction.builder import Talk, with_usage
from tests.compaction.fakes import Bench, answer


def text_answer(text: str, stop_reason: str = "end_turn") -> str | Unusable:
    return parse_summary(answer([{"type": "text", "text": text}], stop_reason))


def test_the_instruction_forbids_tools_first_and_last_and_has_nine_sections() -> None:
    text = summary_instruction(4_000)
    assert "Do not call any tool" in text.split("\n")[0]
    assert "no tool call" in text.split("\n\n")[-1]
    assert [line[3] for line in text.split("\n") if line.startswith("## ")] == list("123456789")
    assert "about 4,000 tokens" in text


def test_blank_instructions_leave_no_trace() -> None:
    assert summary_instruction(4_000, ("", " \n")) == summary_instruction(4_000)
    assert "keep {braces} as they are" in summary_instruction(4_000, ("keep {braces} as they are",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<analysis>a</analysis><summary>\nS\n</summary>", "S"),
        ("<summary>first</summary> no: <summary>second</summary>", "second"),
        ("<analysis>a</analysis>\n## 1. Primary\nwithout tags", "## 1. Primary\nwithout tags"),
        ("<summary>never closed", "never closed"),
        ("<analysis>never closed <summary>S</summary>", "S"),
        ("<SUMMARY>S</SUMMARY>", "S"),
    ],
)
def test_the_summary_is_found_without_its_draft(text: str, expected: str) -> None:
    assert text_answer(text) == expected


@given(st.text(max_size=200), st.sampled_from(("end_turn", "max_tokens", "tool_use", "new_reason")))
def test_any_answer_is_a_summary_with_text_or_a_fault(text: str, stop_reason: str) -> None:
    parsed = text_answer(text, stop_reason)
    assert isinstance(parsed, Unusable) or parsed.strip()


@pytest.mark.parametrize(("read", "expected"), [(0.1, 60_250), (0.05, 76_180), (0.025, 98_710)])
def test_cheaper_cache_reads_make_later_compactions_cheaper(read: float, expected: int) -> None:
    assert best_trigger(2_400, 27_700, CachePrices(read, 1.25)) == pytest.approx(expected, rel=0.15)


@given(st.integers(100, 20_000), st.integers(5_000, 100_000), st.sampled_from((0.025, 0.05, 0.1)))
def test_no_trigger_is_cheaper_than_the_best(added: int, kept: int, read: float) -> None:
    prices = CachePrices(read, 1.25)
    best = best_trigger(added, kept, prices)
    least = cost_per_call(best, added, kept, prices)
    for factor in (0.9, 1.1, 2.0):
        other = kept + (best - kept) * factor
        assert least <= cost_per_call(other, added, kept, prices) + 1


def test_the_policy_keeps_to_the_trigger_and_to_the_floor() -> None:
    prices = CachePrices(0.1, 1.25, input_usd_per_mtok=2.0)
    at_million = economy(967_000, 2_400, 27_700, 30_000, prices)
    assert at_million.best_trigger_tokens < 100_000
    assert at_million.usd_per_10_calls_at_best is not None
    assert at_million.usd_per_10_calls_at_trigger is not None
    assert at_million.usd_per_10_calls_at_best < at_million.usd_per_10_calls_at_trigger
    assert economy(50_000, 2_400, 27_700, 0, prices).best_trigger_tokens == 50_000
    assert economy(967_000, 2_400, 27_700, 200_000, prices).best_trigger_tokens == 200_000
    assert economy(967_000, 1, 1, 0, CachePrices(0.1, 1.25)).usd_per_10_calls_at_best is None


def test_the_bill_is_projected_from_the_conversation_s_own_growth() -> None:
    talk = Talk()
    talk.prompt("go")
    bench = Bench(talk, window_tokens=1_000_000)
    prices = CachePrices(0.1, 1.25, input_usd_per_mtok=2.0)
    talk.answer("one", usage=with_usage(30_000))
    assert bench.pipeline.economy(bench.context(), prices) is None
    talk.answer("two", usage=with_usage(32_400))
    talk.answer("three", usage=with_usage(34_800))
    projected = bench.pipeline.economy(bench.context(), prices)
    assert projected is not None
    assert projected.best_trigger_tokens < bench.context().thresholds.trigger
    assert projected.tokens_per_call_at_best < projected.tokens_per_call_at_trigger


def test_clearing_from_a_warm_cache_takes_long_to_pay() -> None:
    assert calls_to_pay_back(10_000, 10_000, CachePrices(0.1, 1.25)) == pytest.approx(11.5)
    assert calls_to_pay_back(10_000, 10_000, CachePrices(0.05, 1.25)) == pytest.approx(24)
    assert calls_to_pay_back(0, 10, CachePrices(0.1, 1.25)) == math.inf
    with pytest.raises(ValueError, match="cache read"):
        best_trigger(1, 1, CachePrices(0, 1))
    with pytest.raises(ValueError, match="above what"):
        cost_per_call(1, 1, 1, CachePrices(0.1, 1))


def test_pins_are_rendered_rules_first_and_word_for_word() -> None:
    pins = (Pin("1", "file", "x = 1", "/a.py"), Pin("2", "rule", "never push"), Pin("3", "line", "  "))
    texts = rendered(pins)
    assert [text.label for text in texts] == ["pin:2", "pin:1"]
    assert texts[1].text == "A file the user pinned (/a.py):\nx = 1"


@pytest.mark.parametrize(
    ("source", "is_main"),
    [
        (None, True),
        ("sdk", True),
        ("repl_main_thread", True),
        ("repl_main_thread:x", True),
        ("agent:a", False),
        ("compact", False),
    ],
)
def test_only_the_main_thread_resets_what_is_shared(source: str | None, is_main: bool) -> None:
    assert is_main_thread(source) is is_main
    cleanup = cleanup_after(source, has_commit_attribution=True)
    assert cleanup.resets_memory_files is is_main
    assert cleanup.resets_notes is is_main
    assert cleanup.forgets_measures
    assert cleanup.sweeps_file_contents
    assert not cleanup_after(source, has_commit_attribution=False).sweeps_file_contents
