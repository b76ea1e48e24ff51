from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.compaction.count import ContextCount
from pyagent.compaction.thresholds import gauge, thresholds_for, token_warning_state
from pyagent.settings import CompactionSettings

DEFAULTS = CompactionSettings()


@pytest.mark.parametrize(
    ("window", "effective", "trigger", "warning", "error", "blocking"),
    [
        (8_000, 5_334, 3_601, 935, 935, 4_934),
        (32_000, 21_334, 14_401, 3_735, 3_735, 19_734),
        (60_000, 40_000, 27_000, 7_000, 7_000, 37_000),
        (100_000, 80_000, 67_000, 47_000, 47_000, 77_000),
        (200_000, 180_000, 167_000, 147_000, 147_000, 177_000),
        (1_000_000, 980_000, 967_000, 947_000, 947_000, 977_000),
    ],
)
def test_lines_of_each_window(
    window: int, effective: int, trigger: int, warning: int, error: int, blocking: int
) -> None:
    lines = thresholds_for(window, None, DEFAULTS)
    assert (lines.effective_window, lines.trigger, lines.blocking) == (effective, trigger, blocking)
    assert (lines.warning, lines.error) == (warning, error)


def test_a_smaller_maximal_output_leaves_a_larger_effective_window() -> None:
    assert thresholds_for(200_000, 8_192, DEFAULTS).effective_window == 191_808


@given(
    st.integers(8_000, 2_000_000),
    st.one_of(st.none(), st.integers(1, 200_000)),
    st.one_of(st.none(), st.integers(8_000, 2_000_000)),
    st.one_of(st.none(), st.floats(1, 100)),
    st.integers(0, 300_000),
    st.integers(0, 300_000),
)
def test_the_lines_keep_their_order_whatever_is_set(
    window: int, output: int | None, assumed: int | None, percent: float | None, warning: int, error: int
) -> None:
    settings = CompactionSettings(
        window_tokens=assumed, trigger_percent=percent, warning_buffer_tokens=warning, error_buffer_tokens=error
    )
    lines = thresholds_for(window, output, settings)
    assert 0 < lines.warning <= lines.error <= lines.trigger < lines.blocking < lines.window <= window


def test_an_assumed_window_lowers_the_lines_and_never_raises_them() -> None:
    assert thresholds_for(1_000_000, None, CompactionSettings(window_tokens=150_000)).trigger == 117_000
    assert thresholds_for(200_000, None, CompactionSettings(window_tokens=900_000)).trigger == 167_000


def test_a_percentage_can_only_lower_the_trigger() -> None:
    assert thresholds_for(200_000, None, CompactionSettings(trigger_percent=50)).trigger == 90_000
    assert thresholds_for(200_000, None, CompactionSettings(trigger_percent=99)).trigger == 167_000


def test_with_automatic_compaction_off_the_lines_count_from_the_effective_window() -> None:
    lines = thresholds_for(200_000, None, CompactionSettings(is_auto_disabled=True))
    assert (lines.warning, lines.error) == (160_000, 160_000)
    assert token_warning_state(176_999, lines).is_at_blocking is False
    assert token_warning_state(177_000, lines).is_at_blocking is True
    assert token_warning_state(177_000, lines).is_above_auto_compact is False


def test_a_full_switch_off_leaves_the_refusal_to_the_server() -> None:
    lines = thresholds_for(200_000, None, CompactionSettings(is_disabled=True, is_auto_disabled=True))
    assert token_warning_state(199_000, lines).is_at_blocking is False


def test_the_blocking_limit_can_be_set() -> None:
    lines = thresholds_for(200_000, None, CompactionSettings(is_auto_disabled=True, blocking_tokens=90_000))
    assert token_warning_state(90_000, lines).is_at_blocking is True


def test_zero_percent_is_shown_at_the_trigger_and_not_before() -> None:
    lines = thresholds_for(200_000, None, DEFAULTS)
    assert token_warning_state(166_999, lines).percent_left == 1
    assert token_warning_state(167_000, lines).percent_left == 0
    assert token_warning_state(0, lines).percent_left == 100


@pytest.mark.parametrize(
    ("tokens", "state"), [(0, "ok"), (146_999, "ok"), (147_000, "error"), (167_000, "compact"), (500_000, "compact")]
)
def test_the_gauge_tells_the_state_by_the_lines_that_decide(tokens: int, state: str) -> None:
    lines = thresholds_for(200_000, None, DEFAULTS)
    facts = gauge(ContextCount(tokens, is_estimate=True), lines)
    assert facts.state == state
    assert facts.is_estimate
    assert (facts.state == "compact") == token_warning_state(tokens, lines).is_above_auto_compact


def test_warning_and_error_can_be_parted() -> None:
    lines = thresholds_for(200_000, None, CompactionSettings(warning_buffer_tokens=60_000))
    assert (lines.warning, lines.error) == (107_000, 147_000)
    assert gauge(ContextCount(110_000, is_estimate=False), lines).state == "warning"


def test_the_arithmetic_is_told_in_one_line() -> None:
    text = thresholds_for(200_000, None, DEFAULTS).explained()
    assert "200,000 window − 20,000 for the summary = 180,000 effective; − 13,000 buffer = 167,000 (83.5%" in text
    lowered = thresholds_for(200_000, None, CompactionSettings(trigger_percent=50)).explained()
    assert "lowered to 50% of effective = 90,000" in lowered
