"""A line of the context window that is crossed is told of once, and again only behind a compaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pyagent.agent.threshold_notices import ThresholdNotices
from pyagent.events import GaugeFacts
from pyagent.log import Boundary, NoticeShown
from tests.ui.records import Recorder

OK = GaugeFacts(84_000, False, 200_000, 180_000, 137_000, 147_000, 167_000, 177_000, True, 50, "ok")


def at(used_tokens: int, state: Literal["ok", "warning", "error", "compact", "blocked"]) -> GaugeFacts:
    percent_left = 100 * (OK.trigger_tokens - used_tokens) // OK.trigger_tokens
    return replace(OK, used_tokens=used_tokens, percent_left=percent_left, state=state)


def test_each_line_is_told_once_however_often_the_count_goes_back_and_forth() -> None:
    notices = ThresholdNotices(())
    states = [at(84_000, "ok"), at(140_000, "warning"), at(136_000, "ok"), at(141_000, "warning"), at(150_000, "error")]
    told = [line.text for gauge in states if (line := notices.line(gauge)) is not None]
    assert [text.split(":")[0] for text in told] == ["The context is filling up", "The context is nearly full"]
    assert "140,000 tokens, 16% left before it is compacted at 167,000" in told[0]


def test_it_is_a_warning_only_where_nothing_is_compacted_by_itself() -> None:
    gauge = at(140_000, "warning")
    levels = [ThresholdNotices(()).line(replace(gauge, is_auto_compact_on=is_on)) for is_on in (True, False)]
    assert [line and line.level for line in levels] == ["info", "warning"]


def test_a_line_far_below_the_trigger_of_a_small_window_is_told_once_the_trigger_is_near() -> None:
    notices = ThresholdNotices(())
    early = replace(at(3_516, "error"), window_tokens=30_000, error_tokens=3_500, trigger_tokens=13_500)
    assert notices.line(replace(early, percent_left=74)) is None
    line = notices.line(replace(early, used_tokens=11_000, percent_left=19))
    assert line is not None
    assert "11,000 tokens, 19% left" in line.text


def test_after_a_compaction_it_is_told_again() -> None:
    notices = ThresholdNotices(())
    assert notices.line(at(150_000, "error")) is not None
    notices.compacted()
    assert notices.line(at(140_000, "warning")) is not None


def test_what_was_told_before_a_resume_is_not_told_again() -> None:
    r = Recorder()
    line = ThresholdNotices(()).line(at(140_000, "warning"))
    assert line is not None
    told = [r.record(line)]
    assert ThresholdNotices(told).line(at(140_000, "warning")) is None
    assert ThresholdNotices(told).line(at(150_000, "error")) is not None
    behind = [*told, r.record(Boundary((), "auto", "full", 100, 10, 2))]
    assert ThresholdNotices(behind).line(at(140_000, "warning")) is not None


def test_with_automatic_compaction_off_it_says_where_prompts_are_refused() -> None:
    manual = replace(at(178_000, "blocked"), is_auto_compact_on=False)
    line = ThresholdNotices(()).line(manual)
    assert line is not None
    assert line.level == "error"
    assert "/compact or /clear" in line.text
    earlier = ThresholdNotices(()).line(replace(manual, state="warning", used_tokens=140_000))
    assert earlier == NoticeShown(
        "The context is filling up: 140,000 tokens of 200,000. Prompts are refused from 177,000 on; "
        "/compact makes room.",
        "warning",
    )
