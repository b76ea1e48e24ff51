from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pyagent.compaction.auto import should_auto_compact
from pyagent.compaction.count import ContextCount
from pyagent.compaction.thresholds import thresholds_for
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.settings import CompactionSettings, Gates
from tests.compaction.builder import START


def decide(tokens: int = 170_000, settings: CompactionSettings | None = None, **options: Any) -> tuple[bool, str]:
    settings = settings or CompactionSettings()
    given: dict[str, Any] = {"query_source": "repl_main_thread", "overhead_tokens": 1_000} | options
    tracking = given.pop("tracking", AutoCompactTracking())
    count = ContextCount(tokens, False, is_exact_encoding=given.pop("is_exact", True))
    decision = should_auto_compact(count, thresholds_for(200_000, None, settings), settings, tracking, **given)
    return decision.should_compact, decision.reason


def test_it_is_time_from_the_trigger_on() -> None:
    assert decide(167_000)[0] is True
    assert decide(166_999)[0] is False


@pytest.mark.parametrize(
    ("settings", "options", "word"),
    [
        (CompactionSettings(), {"query_source": "session_memory"}, "session_memory"),
        (CompactionSettings(), {"query_source": "compact"}, "compact request"),
        (CompactionSettings(is_disabled=True), {}, "DISABLE_COMPACT"),
        (CompactionSettings(is_auto_disabled=True), {}, "switched off"),
        (CompactionSettings(gates=Gates(reactive_only=True)), {}, "reactive_only"),
        (CompactionSettings(gates=Gates(context_collapse=True)), {"collapse_still_helps": True}, "collapsing"),
        (CompactionSettings(), {"is_exact": False}, "loading"),
        (CompactionSettings(), {"overhead_tokens": 120_000}, "system prompt and tools"),
    ],
)
def test_it_says_no_and_why(settings: CompactionSettings, options: dict[str, Any], word: str) -> None:
    should, reason = decide(settings=settings, **options)
    assert not should
    assert word in reason


def test_the_reasons_have_an_order() -> None:
    everything = CompactionSettings(is_disabled=True, is_auto_disabled=True, gates=Gates(reactive_only=True))
    assert "session_memory" in decide(settings=everything, query_source="session_memory")[1]
    assert "DISABLE_COMPACT" in decide(settings=everything)[1]
    assert "automatic" in decide(settings=replace(everything, is_disabled=False))[1]


def test_waiting_for_the_refusal_needs_the_layer_that_answers_it() -> None:
    gates = Gates(reactive_only=True, reactive_compact=False)
    assert decide(settings=CompactionSettings(gates=gates))[0] is True


def test_a_subagent_is_compacted_too() -> None:
    assert decide(query_source="agent:explore")[0] is True


def test_three_failures_open_the_circuit_and_one_attempt_is_let_through_after_five_minutes() -> None:
    tracking = AutoCompactTracking()
    for _ in range(2):
        tracking = tracking.failed(START, "down")
    assert tracking.may_attempt(START)
    tracking = tracking.failed(START, "down")
    assert not tracking.may_attempt(START + timedelta(seconds=299))
    assert tracking.may_attempt(START + timedelta(seconds=300))
    again = tracking.failed(START + timedelta(seconds=300), "still down")
    assert not again.may_attempt(START + timedelta(seconds=599))


def test_a_success_closes_the_circuit_and_an_extract_does_not() -> None:
    tracking = AutoCompactTracking(consecutive_failures=3, last_failure_at=START, is_told=True)
    closed = tracking.succeeded("tx", after_tokens=1, trigger_tokens=100, is_by_model=True)
    assert (closed.consecutive_failures, closed.is_told, closed.is_compacted) == (0, False, True)
    still_open = tracking.succeeded("tx", after_tokens=1, trigger_tokens=100, is_by_model=False)
    assert still_open.consecutive_failures == 3


def test_three_compactions_that_leave_the_context_almost_full_are_enough() -> None:
    tracking = AutoCompactTracking()
    for _ in range(3):
        assert decide(tracking=tracking)[0] is True
        tracking = tracking.succeeded("tx", after_tokens=150_000, trigger_tokens=167_000, is_by_model=True)
    should, reason = decide(tracking=tracking)
    assert not should
    assert "almost full" in reason
    assert tracking.is_refilling(967_000) is False, "a larger window is another chance"
    helped = tracking.succeeded("tx", after_tokens=20_000, trigger_tokens=167_000, is_by_model=True)
    assert decide(tracking=helped)[0] is True


def test_tracking_survives_the_session_file() -> None:
    tracking = AutoCompactTracking(True, 3, "tx", 2, START, "down", True, 1, 167_000, {"factors": {}})
    assert AutoCompactTracking.from_json(tracking.to_json()) == tracking
    assert tracking.after_request().turn_counter == 4


@pytest.mark.parametrize("raw", [{}, {"failures": "x", "failed_at": 3, "calibration": []}, {"failed_at": "2026-01-01"}])
def test_damaged_tracking_reads_as_a_fresh_start(raw: dict[str, Any]) -> None:
    assert AutoCompactTracking.from_json(raw) == AutoCompactTracking()
