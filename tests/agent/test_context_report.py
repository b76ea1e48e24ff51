"""What `/context` says: its parts add up to the count that decides, and its figures are those of the bar."""

from __future__ import annotations

from pyagent.agent.context_report import ContextFacts, context_report
from pyagent.compaction.context import Sizer
from pyagent.compaction.count import ContextCount, ContextCounter
from pyagent.compaction.thresholds import gauge, thresholds_for
from pyagent.events import Report
from pyagent.log import UserEntry
from pyagent.messages import ImageBlock, JsonObject, TextBlock
from pyagent.pages import CacheState
from pyagent.settings import CompactionSettings, Gates
from tests.compaction.builder import Talk, WordTokenizer, words


def report_of(talk: Talk, used_tokens: int, *, is_full: bool = False) -> Report:
    lines = thresholds_for(200_000, 8_000, CompactionSettings())
    facts = ContextFacts(
        view=talk.view,
        gauge=gauge(ContextCount(used_tokens, False), lines),
        thresholds=lines,
        model="a-model",
        system_tokens=700,
        tool_tokens={"Read": 400, "Bash": 600},
        branch=(),
        gates=Gates(),
        cache=CacheState(None, 300, None),
    )
    return context_report(facts, Sizer(ContextCounter(WordTokenizer()), "claude_from_4_7"), is_full=is_full)


def used_categories(report: Report) -> dict[str, int]:
    categories: list[JsonObject] = report.data["categories"]
    return {part["name"]: part["tokens"] for part in categories if part["kind"] == "used"}


def worked() -> Talk:
    talk = Talk()
    talk.prompt("look")
    talk.call("Read", words(900), file_path="/a.py")
    talk.answer(words(300))
    return talk


def test_the_parts_add_up_to_what_the_server_counted() -> None:
    for used_tokens in (3_001, 6_818, 150_000):
        report = report_of(worked(), used_tokens)
        assert sum(used_categories(report).values()) == used_tokens
        assert f"together                 {used_tokens:>7,}" in report.text


def test_the_head_gives_the_figure_of_the_status_bar() -> None:
    assert "6,818 of 200,000 tokens (3.4%) · 97% to compact · ok" in report_of(worked(), 6_818).text


def test_an_image_counts_as_an_image() -> None:
    talk = worked()
    image = ImageBlock({"type": "base64", "media_type": "image/png", "data": "AA=="}, 1_000, 1_000)
    talk.write(UserEntry((TextBlock("see"), image), display="see"))
    parts = used_categories(report_of(talk, 6_000))
    assert parts["images and documents"] > 1_000
    assert parts["message frames"] < 100
