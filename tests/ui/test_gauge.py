from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pyagent.compaction.count import ContextCount
from pyagent.compaction.thresholds import gauge as gauge_facts
from pyagent.compaction.thresholds import thresholds_for
from pyagent.settings import CompactionSettings
from pyagent.ui.gauge import CacheModel, GaugeLevel, GaugeModel, StatusModel, gauge_cells, short_tokens
from pyagent.ui.status import gauge_model
from pyagent.ui.statusbar import status_line


def gauge(used: int, **changes: object) -> GaugeModel:
    fields: dict[str, object] = {
        "used_tokens": used,
        "window_tokens": 200_000,
        "warning_tokens": 147_000,
        "error_tokens": 157_000,
        "trigger_tokens": 167_000,
        "blocking_tokens": 177_000,
        "percent_left": max(0, (167_000 - used) * 100 // 167_000),
    }
    return GaugeModel(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("used", "level"),
    [
        (0, GaugeLevel.OK),
        (146_999, GaugeLevel.OK),
        (147_000, GaugeLevel.WARN),
        (157_000, GaugeLevel.ERROR),
        (176_999, GaugeLevel.ERROR),
        (177_000, GaugeLevel.BLOCKED),
    ],
)
def test_the_level_is_the_most_severe_threshold_reached(used: int, level: GaugeLevel) -> None:
    assert gauge(used).level is level


def test_percent_left_counts_to_the_trigger() -> None:
    assert gauge(83_500, percent_left=50).remark() == "50% to compact"
    assert gauge(170_000).remark() == "compacting next"
    assert gauge(100_000, trigger_tokens=None).remark() == "50% used"


def test_the_bar_shows_the_agents_own_figure() -> None:
    lines = thresholds_for(200_000, 8_000, CompactionSettings())
    facts = gauge_facts(ContextCount(6_818, False), lines)
    assert gauge_model(facts).remark() == f"{facts.percent_left}% to compact" == "97% to compact"


def test_an_estimate_says_so() -> None:
    assert gauge(84_000, is_estimated=True).numbers() == "~84k/200k"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(0, "0"), (950, "950"), (8_400, "8.4k"), (167_000, "167k"), (999_600, "1M"), (1_200_000, "1.2M")],
)
def test_tokens_are_short(tokens: int, text: str) -> None:
    assert short_tokens(tokens) == text


@given(st.integers(0, 400_000), st.integers(4, 40))
def test_the_bar_has_its_width_and_a_tick_for_each_threshold_cell(used: int, width: int) -> None:
    cells = gauge_cells(gauge(used), width)
    assert len(cells) == width
    expected = {min(width - 1, int(tokens / 200_000 * width)) for tokens in (147_000, 157_000, 167_000, 177_000)}
    assert {index for index, (_, _, tick) in enumerate(cells) if tick} == expected
    filled = [is_filled for _, is_filled, _ in cells]
    assert filled == sorted(filled, reverse=True)


FULL = StatusModel(
    model="sonnet",
    mode="plan",
    cwd="~/project",
    branch="main",
    cost_usd=1.234,
    cache=CacheModel(warm_s=250),
    gauge=gauge(150_000),
)


@given(st.integers(20, 200))
def test_the_status_bar_never_exceeds_its_width(width: int) -> None:
    assert cell_len(status_line(FULL, width).text) <= max(width, 12)


def test_the_status_bar_shows_everything_when_there_is_room() -> None:
    text = status_line(FULL, 160).text
    for part in ("sonnet", "plan", "~/project (main)", "$1.23", "cache warm 4m", "150k/200k warn", "10% to compact"):
        assert part in text


def test_a_narrow_status_bar_keeps_mode_numbers_and_the_word() -> None:
    text = status_line(FULL, 30).text
    assert "150k/200k warn" in text
    assert "plan" in text
    assert "~/project" not in text


def test_a_session_that_is_only_looked_at_says_so_in_place_of_its_mode() -> None:
    for width in (30, 160):
        text = status_line(replace(FULL, is_read_only=True), width).text
        assert "read-only" in text
        assert "plan" not in text


def test_a_cold_cache_is_named() -> None:
    assert CacheModel().words() == "cache cold"
    assert CacheModel(warm_s=42).words() == "cache warm 42s"
