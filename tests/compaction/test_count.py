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
from pyagent.log import Boundary, ClearResults, Payload, Revoke, SetHead, Snip, UserEntry
from pyagent.messages import ImageBlock, TextBlock, ToolResultBlock, Usage, image_tokens
from pyagent.view import View
from tests.compaction.builder import Talk, WordTokenizer, with_usage, words
from tests.compaction.fakes import Bench

FAMILY: ModelFamily = "claude_from_4_7"


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


def test_a_clearing_lowers_the_count_at_once_and_so_it_stays_after_a_resume() -> None:
    bench = Bench(Talk(), overhead_tokens=0)
    bench.talk.prompt("start")
    use_id = bench.talk.call("Read", words(1_000), file_path="/a")
    bench.answer("ok", usage=with_usage(2_500))
    assert bench.tokens() == 2_500
    bench.talk.write(ClearResults({use_id: "[gone]"}))
    assert bench.tokens() == pytest.approx(2_500 - 1_600, abs=5)
    assert bench.resumed().count(bench.context()) == bench.pipeline.count(bench.context())


def test_behind_an_edit_all_is_estimated_where_nothing_was_measured_with_the_response() -> None:
    talk = Talk()
    talk.prompt("start")
    use_id = talk.call("Read", words(1_000), file_path="/a")
    talk.answer("ok", usage=with_usage(2_500))
    talk.write(ClearResults({use_id: "[gone]"}))
    assert count(talk.view, counter=ContextCounter(WordTokenizer())) < 100


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
    bench = talk_with_a_ratio_of_one(20)
    calibration = bench.pipeline.counter.calibration
    assert calibration.factor("claude_from_4_7") == pytest.approx(1.0, abs=0.05)
    assert calibration.factor("other") == INITIAL_FACTORS["other"]
    assert Calibration.from_json(calibration.to_json()) == calibration


def test_counting_however_often_moves_no_factor() -> None:
    bench = talk_with_a_ratio_of_one(3)
    before = bench.pipeline.counter.calibration
    assert [bench.tokens() for _ in range(3)] == [bench.tokens()] * 3
    assert bench.pipeline.counter.calibration == before


def talk_with_a_ratio_of_one(rounds: int) -> Bench:
    bench = Bench(Talk(), overhead_tokens=0)
    bench.talk.prompt(words(1_000))
    tokens = 1_500
    bench.answer("ok", usage=with_usage(tokens))
    for number in range(rounds):
        bench.talk.prompt(words(2_000, f"w{number}"))
        tokens += 2_020
        bench.answer("ok", usage=with_usage(tokens))
    return bench


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_a_resumed_session_counts_what_the_running_one_counts_whatever_moved_in_between(extra: int) -> None:
    """A calibration that only the running session knew once parted the two: 6,192 tokens here, 7,441 there."""
    bench = talk_with_a_ratio_of_one(4)
    moves: tuple[Payload, ...] = (
        SetHead(bench.talk.state.records[6].seq),
        Revoke(0),
        Snip((bench.talk.view.items[2].uuid,)),
    )
    bench.talk.write(moves[extra])
    bench.talk.prompt(words(3_000))
    assert bench.resumed().count(bench.context()) == bench.pipeline.count(bench.context())


@pytest.mark.parametrize("raw", [None, 3, {"factors": {"claude_from_4_7": 99, "x": 1.5}}, {"factors": 3}])
def test_a_damaged_calibration_reads_as_none(raw: object) -> None:
    assert Calibration.from_json(raw) == Calibration()


def test_counting_again_after_one_more_entry_measures_that_entry_only() -> None:
    talk = Talk()
    for number in range(50):
        talk.task(f"request {number}", rounds=2, tokens=50)
    tokenizer = WordTokenizer()
    counter = ContextCounter(tokenizer)
    counter.count(talk.view, 0, FAMILY)
    tokenizer.calls = 0
    talk.prompt("one more")
    counter.count(talk.view, 0, FAMILY)
    assert tokenizer.calls == 1
    talk.write(Snip((talk.view.items[3].uuid,)))
    counter.count(talk.view, 0, FAMILY)
    assert tokenizer.calls == 1, "a change of history measures nothing again"


def test_what_left_the_view_can_be_forgotten_and_counts_the_same_when_it_comes_back() -> None:
    talk = Talk()
    for number in range(5):
        talk.task(f"request {number}", rounds=1, tokens=50)
    tokenizer = WordTokenizer()
    ledger = TokenLedger(tokenizer)
    whole, half = ledger.whole(talk.view), View(talk.view.items[10:], talk.view.epoch)
    ledger.keep_only(half)
    tokenizer.calls = 0
    ledger.whole(half)
    assert tokenizer.calls == 0
    assert ledger.whole(View(talk.view.items, talk.view.epoch)) == whole
    assert tokenizer.calls > 0


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
