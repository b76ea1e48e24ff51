from __future__ import annotations

import pytest

from pyagent.compaction.extractive import extractive_summary
from pyagent.compaction.outcome import Applied, Declined, MediaDropped
from pyagent.compaction.reactive import learned_limit
from pyagent.errors import ModelUnavailableError, PromptTooLongError, RequestRefusedError
from pyagent.log import Revoke, UserEntry
from pyagent.messages import ImageBlock, TextBlock, ToolResultBlock
from pyagent.settings import CompactionSettings, Gates
from tests.compaction.builder import Talk, words
from tests.compaction.fakes import Bench, ScriptedSummarizer, summary
from tests.compaction.strategies import PNG, pairing_faults
from tests.compaction.test_full import new_sizer

REFUSAL = PromptTooLongError("prompt is too long", prompt_tokens=212_230, limit_tokens=200_000)
BYTES = PromptTooLongError("request too large", is_byte_limit=True)


def full_talk() -> Talk:
    talk = Talk()
    for number in range(30):
        talk.task(f"request {number}", rounds=3, tokens=1_000)
    talk.prompt("go on")
    return talk


async def test_the_second_refusal_makes_do_without_a_model() -> None:
    bench = Bench(full_talk())
    result = await bench.overflow(REFUSAL, refusals=2)
    assert result.compacted is not None
    assert result.compacted.layer == "extractive"
    assert bench.tokens() <= 0.6 * 200_000
    assert result.tracking.consecutive_failures == 0


async def test_the_third_refusal_is_shown_with_what_to_do() -> None:
    bench = Bench(full_talk())
    result = await bench.overflow(REFUSAL, refusals=3)
    assert isinstance(result.outcome, Declined)
    assert "/compact" in result.outcome.reason
    assert result.records == ()


@pytest.mark.parametrize("error", [ModelUnavailableError("down"), RequestRefusedError("no"), REFUSAL])
async def test_without_a_summary_the_first_refusal_is_answered_by_an_extract(
    error: ModelUnavailableError | RequestRefusedError | PromptTooLongError,
) -> None:
    bench = Bench(full_talk(), ScriptedSummarizer(*[error] * 6))
    result = await bench.overflow(REFUSAL)
    assert result.compacted is not None
    assert bench.tokens() <= 0.6 * 200_000
    assert bench.talk.view.items[-1].entry.text == "go on"


@pytest.mark.parametrize(
    "settings",
    [
        CompactionSettings(is_disabled=True),
        CompactionSettings(is_auto_disabled=True),
        CompactionSettings(gates=Gates(reactive_compact=False)),
    ],
)
async def test_the_switches_hold_after_a_refusal_too(settings: CompactionSettings) -> None:
    bench = Bench(full_talk(), settings=settings)
    assert isinstance((await bench.overflow(REFUSAL)).outcome, Declined)
    assert bench.talk.state.boundaries == ()


def test_the_limit_is_learned_from_the_refusal_or_guessed_with_caution() -> None:
    assert learned_limit(REFUSAL, 212_230, 1_000_000) == 200_000
    assert learned_limit(PromptTooLongError("?"), 940_000, 1_000_000) == 799_000
    assert learned_limit(PromptTooLongError("?"), 940_000, 200_000) == 200_000


async def test_a_refusal_below_the_trigger_teaches_the_limit_and_is_compacted() -> None:
    bench = Bench(full_talk(), ScriptedSummarizer(summary()), window_tokens=1_000_000)
    result = await bench.overflow(PromptTooLongError("input length exceeds"))
    assert result.compacted is not None
    assert bench.tokens() < 0.6 * result.compacted.before_tokens


async def test_too_many_bytes_drop_the_oldest_images_and_keep_every_pair() -> None:
    talk = Talk()
    talk.write(UserEntry((TextBlock("look"), ImageBlock(PNG, 500, 500))))
    talk.write(UserEntry((ImageBlock(PNG, 500, 500),)))
    talk.assistant([{"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/a.png"}}])
    talk.results(ToolResultBlock("t", (TextBlock("picture"), ImageBlock(PNG, 500, 500))))
    talk.write(UserEntry((TextBlock("newest"), ImageBlock(PNG, 500, 500))))
    bench = Bench(talk)
    before = [item.blocks() for item in talk.view]
    result = await bench.overflow(BYTES)
    assert isinstance(result.outcome, Applied)
    assert result.outcome.facts == MediaDropped(2, getattr(result.outcome.facts, "freed_tokens", 0))
    images = [sum(isinstance(block, ImageBlock) for block in item.blocks()) for item in talk.view]
    assert images == [0, 0, 0, 0, 1]
    assert all(item.blocks() for item in talk.view)
    assert pairing_faults(talk.view) == set()
    await bench.overflow(BYTES)
    await bench.overflow(BYTES)
    assert not any(isinstance(b, ImageBlock) for item in talk.view for b in item.blocks())
    # With no image left to drop it is for the rounds to go, of which this talk has too few.
    bench.summarizer.replies.append(summary())
    assert isinstance((await bench.overflow(BYTES)).outcome, Declined)
    for record in tuple(talk.state.records):
        if record.payload.kind in ("repair", "fold", "clear_results"):
            talk.write(Revoke(record.seq))
    assert [item.blocks() for item in talk.view] == before


async def test_too_many_bytes_with_many_tokens_is_an_overflow() -> None:
    bench = Bench(full_talk(), ScriptedSummarizer(summary()))
    result = await bench.overflow(BYTES)
    assert result.compacted is not None


# ── the extract ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_extract_has_nine_sections_and_the_same_each_time() -> None:
    talk = Talk()
    talk.prompt("rename parse_date")
    talk.call("Edit", "ok", file_path="/p/parse.py")
    talk.call("Bash", "E   KeyError: 'x'", is_error=True, command="pytest -q")
    talk.call("Grep", "hit", pattern="parse_date")
    talk.answer("One test still fails.")
    text = extractive_summary(talk.view.items, 4_000, new_sizer(), tasks="[ ] fix the test")
    headings = [line for line in text.split("\n") if line.startswith("## ")]
    assert [heading[3] for heading in headings] == list("123456789")
    for part in (
        "rename parse_date",
        "/p/parse.py (changed 1 ×)",
        "KeyError",
        "pytest -q",
        "One test still fails.",
        "[ ] fix the test",
    ):
        assert part in text
    assert text == extractive_summary(talk.view.items, 4_000, new_sizer(), tasks="[ ] fix the test")


def test_the_extract_keeps_to_its_room_whatever_there_is() -> None:
    talk = Talk()
    for number in range(50):
        talk.task(words(300, f"word{number}"), rounds=2, tokens=300)
    sizer = new_sizer()
    for room in (50, 300, 2_000):
        assert sizer.text(extractive_summary(talk.view.items, room, sizer)) <= room


async def test_an_extract_after_an_extract_still_tells_of_the_beginning() -> None:
    bench = Bench(full_talk())
    await bench.overflow(REFUSAL, refusals=2)
    for number in range(20):
        bench.talk.task(f"second part {number}", rounds=3, tokens=1_000)
    await bench.overflow(REFUSAL, refusals=2)
    assert "request 0" in bench.talk.view.items[0].entry.text
    assert "Before that" in bench.talk.view.items[0].entry.text
