from __future__ import annotations

import pytest

from pyagent.compaction.count import (
    INITIAL_FACTORS,
    Calibration,
    ContextCounter,
    Estimate,
    ModelFamily,
    TokenLedger,
    family_of,
)
from pyagent.log import Boundary, ClearResults, Snip, UserEntry
from pyagent.messages import ImageBlock, TextBlock, ToolResultBlock, Usage, image_tokens
from pyagent.view import View
from tests.compaction.builder import Talk, WordTokenizer, with_usage, words

FAMILY: ModelFamily = "claude_from_4_7"


class CountingTokenizer(WordTokenizer):
    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return super().count(text)


class LateTokenizer(WordTokenizer):
    is_ready = False


def count(view: View, overhead: int = 0, window: int | None = 200_000, counter: ContextCounter | None = None) -> int:
    counter = counter or ContextCounter(WordTokenizer())
    return counter.count(view, overhead, FAMILY, window_tokens=window).tokens


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-3-5-sonnet-20241022", "claude_to_4_6"),
        ("claude-sonnet-4-20250514", "claude_to_4_6"),
        ("claude-sonnet-4-5-20250929", "claude_to_4_6"),
        ("claude-opus-4-6", "claude_to_4_6"),
        ("claude-opus-4-7", "claude_from_4_7"),
        ("claude-haiku-5-5", "claude_from_4_7"),
        ("us.anthropic.claude-opus-5-v1:0", "claude_from_4_7"),
        ("claude-something-new", "claude_from_4_7"),
        ("qwen3-coder", "other"),
        ("", "other"),
    ],
)
def test_a_model_belongs_to_a_tokenizer_family(model: str, family: str) -> None:
    assert family_of(model) == family


def test_without_a_response_everything_is_an_estimate_with_caution() -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    counted = ContextCounter(WordTokenizer()).count(talk.view, 5_000, FAMILY)
    assert counted.is_estimate
    assert counted.tokens == 5_000 + 1_760 + 10


def test_the_newest_usage_is_the_truth_and_only_what_came_after_is_estimated() -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    talk.answer(words(100), usage=with_usage(2_000))
    assert count(talk.view) == 2_000
    talk.prompt(words(100))
    assert count(talk.view) == 2_000 + 176 + 10


def test_a_response_split_over_entries_with_its_results_between_counts_once() -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    usage = with_usage(2_500)
    for number in range(3):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
        talk.assistant([use], message_id="msg-parallel", usage=usage, stop_reason="tool_use")
        talk.results(ToolResultBlock(f"t{number}", (TextBlock(words(100)),)))
    # 2,500 as reported, and the three results: 300 tokens of text, three messages and three blocks of frame.
    assert count(talk.view) == 2_500 + 528 + 3 * 20


def test_a_clearing_lowers_the_count_at_once() -> None:
    talk = Talk()
    talk.prompt("start")
    use_id = talk.call("Read", words(1_000), file_path="/a")
    talk.answer("ok", usage=with_usage(2_500))
    counter = ContextCounter(WordTokenizer())
    assert count(talk.view, counter=counter) == 2_500
    talk.write(ClearResults({use_id: "[gone]"}))
    assert count(talk.view, counter=counter) == pytest.approx(2_500 - 1_600, abs=5)


def test_after_a_resume_the_remembered_anchor_still_lowers_the_count() -> None:
    talk = Talk()
    talk.prompt("start")
    use_id = talk.call("Read", words(1_000), file_path="/a")
    talk.answer("ok", usage=with_usage(2_500))
    first = ContextCounter(WordTokenizer())
    state = first.anchor_state(talk.view)
    talk.write(ClearResults({use_id: "[gone]"}))
    resumed = ContextCounter(WordTokenizer())
    resumed.remember_anchor(state)
    assert count(talk.view, counter=resumed) == pytest.approx(900, abs=5)
    resumed.remember_anchor({"uuid": 3})
    assert count(talk.view, counter=ContextCounter(WordTokenizer())) < 100, "without it, all is estimated"


def test_usage_from_before_a_boundary_never_anchors() -> None:
    talk = Talk()
    talk.prompt(words(100))
    kept = talk.answer("ok", usage=with_usage(150_000))
    summary = talk.write(UserEntry((TextBlock(words(50)),), origin="summary"), tx="t")
    talk.write(Boundary((summary.uuid, kept.uuid), "manual", "full", 150_000, 100, 1, kept=(kept.uuid,)), tx="t")
    counted = ContextCounter(WordTokenizer()).count(talk.view, 1_000, FAMILY)
    assert counted.is_estimate
    assert counted.tokens < 1_300


@pytest.mark.parametrize("reported", [250_000, 9_000])
def test_usage_that_cannot_be_true_waits_for_a_second_that_agrees(reported: int) -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    talk.answer("one", usage=with_usage(2_000))
    talk.answer("two", usage=with_usage(reported))
    counter = ContextCounter(WordTokenizer())
    once = counter.count(talk.view, 0, FAMILY, window_tokens=200_000)
    assert once.is_suspicious
    assert once.tokens < 2_100
    talk.answer("three", usage=with_usage(reported + 10))
    twice = counter.count(talk.view, 0, FAMILY, window_tokens=200_000)
    assert not twice.is_suspicious
    assert twice.tokens == reported + 10


def test_a_doubled_first_report_falls_back_to_the_estimate() -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    talk.answer("one", usage=with_usage(4_000))
    counted = ContextCounter(WordTokenizer()).count(talk.view, 0, FAMILY)
    assert counted.is_estimate
    assert counted.is_suspicious


def test_the_factor_moves_towards_the_session_s_own_ratio_within_its_bounds() -> None:
    talk = Talk()
    talk.prompt(words(1_000))
    talk.answer("ok", usage=with_usage(1_500))
    tokens = 1_500
    for _ in range(20):
        talk.call("Read", words(2_000), usage=with_usage(tokens), file_path="/a")
        tokens += 2_040
    counter = ContextCounter(WordTokenizer())
    counter.count(talk.view, 0, FAMILY)
    assert counter.calibration.factor("claude_from_4_7") == pytest.approx(1.0, abs=0.05)
    assert counter.calibration.factor("other") == INITIAL_FACTORS["other"]
    assert Calibration.from_json(counter.calibration.to_json()).factor("claude_from_4_7") == pytest.approx(
        counter.calibration.factor("claude_from_4_7"), abs=1e-5
    )


@pytest.mark.parametrize("raw", [None, 3, {"factors": {"claude_from_4_7": 99, "x": 1.5}}, {"through": "no"}])
def test_a_damaged_calibration_reads_as_none(raw: object) -> None:
    assert Calibration.from_json(raw) == Calibration()


def test_counting_again_after_one_more_entry_measures_that_entry_only() -> None:
    talk = Talk()
    for number in range(50):
        talk.task(f"request {number}", rounds=2, tokens=50)
    tokenizer = CountingTokenizer()
    counter = ContextCounter(tokenizer)
    counter.count(talk.view, 0, FAMILY)
    tokenizer.calls = 0
    talk.prompt("one more")
    counter.count(talk.view, 0, FAMILY)
    assert tokenizer.calls == 1
    talk.write(Snip((talk.view.items[3].uuid,)))
    counter.count(talk.view, 0, FAMILY)
    assert tokenizer.calls == 1, "a change of history measures nothing again"


def test_a_view_that_was_only_tried_out_leaves_no_trace_in_the_count() -> None:
    talk = Talk()
    talk.prompt("go")
    use_id = talk.call("Read", words(500), file_path="/a")
    talk.answer("ok")
    ledger = TokenLedger(WordTokenizer())
    ledger.whole(talk.view.with_op(ClearResults({use_id: words(300)})))
    written = talk.view.with_op(ClearResults({use_id: "[gone]"}))
    assert ledger.whole(written) == TokenLedger(WordTokenizer()).whole(written)


def test_thinking_from_before_a_change_of_history_is_not_counted() -> None:
    talk = Talk()
    talk.prompt("go")
    use_id = talk.call("Read", "x y z " * 30, file_path="/a")
    talk.assistant([{"type": "thinking", "thinking": words(400), "signature": "s"}, {"type": "text", "text": "ok"}])
    ledger = TokenLedger(WordTokenizer())
    assert ledger.whole(talk.view).text > 400
    talk.write(ClearResults({use_id: "[gone]"}))
    assert ledger.whole(talk.view).text < 100


def test_thinking_that_was_not_shown_counts_by_what_was_reported() -> None:
    talk = Talk()
    talk.assistant([{"type": "thinking", "thinking": "", "signature": "s"}], usage=Usage(thinking_tokens=700))
    assert TokenLedger(WordTokenizer()).whole(talk.view) == Estimate(0, 710)


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(0, 0, 2_000), (28, 28, 1), (29, 28, 2), (1_000, 1_000, 1_296), (9_000, 9_000, 4_784)],
)
def test_an_image_counts_by_its_patches(width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height) == tokens
    talk = Talk()
    talk.write(UserEntry((ImageBlock({}, width, height),)))
    assert TokenLedger(WordTokenizer()).whole(talk.view).fixed == 10 + tokens


def test_until_the_encoding_is_loaded_bytes_are_counted_and_marked() -> None:
    tokenizer = LateTokenizer()
    talk = Talk()
    talk.prompt("x" * 2_300 + "\ud83d")
    counter = ContextCounter(tokenizer)
    guess = counter.count(talk.view, 0, FAMILY)
    assert not guess.is_exact_encoding
    assert guess.tokens == pytest.approx(1_011, abs=3)
    tokenizer.is_ready = True
    assert counter.count(talk.view, 0, FAMILY).is_exact_encoding
