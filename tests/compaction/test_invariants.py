"""What holds of every layer, alone and chained, over random conversations.

Source: context pipeline design, section 11.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyagent.compaction.count import ContextCounter
from pyagent.compaction.outcome import Applied, Compacted
from pyagent.compaction.pipeline import Pipeline, PipelineResult
from pyagent.compaction.ports import PreCompactAnswer, RestorableState, RestoreText, SessionNotes
from pyagent.compaction.rounds import api_rounds, complete_end
from pyagent.errors import ModelError, ModelUnavailableError, PromptTooLongError
from pyagent.log import Revoke, record_from_json, record_to_line
from pyagent.state import ConversationState
from pyagent.view import View
from tests.compaction.builder import Talk, WordTokenizer, words
from tests.compaction.fakes import Bench, FixedHooks, FixedNotes, FixedSources, Reply, ScriptedSummarizer, summary
from tests.compaction.strategies import last_boundary, pairing_faults, response_runs, talks

Step: TypeAlias = Callable[[Bench], Awaitable[PipelineResult]]

OVERFLOW = PromptTooLongError("prompt is too long", prompt_tokens=40_000, limit_tokens=30_000)

STATE = RestorableState(
    memory=(RestoreText("memory:/p/CLAUDE.md", "Always run the linter.\n" * 30),),
    pins=(RestoreText("pins", "keep the API stable"),),
    plan=RestoreText("plan", "1. parse 2. test"),
    tasks=RestoreText("tasks", "[ ] tests"),
    skills=(RestoreText("skill:review", words(800)),),
)
FILES = {"/p/app.py": words(300), "/p/core/parse.py": words(30_000), "/p/README.md": "short"}


def bench_for(talk: Talk, window_tokens: int = 20_000) -> Bench:
    bench = Bench(talk, sources=FixedSources(STATE, FILES), window_tokens=window_tokens, overhead_tokens=800)
    return bench.set_gates(history_snip=True, context_collapse=True)


async def edit(bench: Bench) -> PipelineResult:
    return await bench.before_request()


async def compact(bench: Bench) -> PipelineResult:
    bench.notes.notes = None
    return await bench.compact("keep names")


async def compact_from_notes(bench: Bench) -> PipelineResult:
    view = bench.talk.view
    covered = complete_end(view) // 2
    if covered:
        bench.notes.notes = SessionNotes("# Title\nA task\n# Task\n" + words(60), view.items[covered].uuid)
    return await bench.compact()


async def overflow(bench: Bench) -> PipelineResult:
    return await bench.overflow(OVERFLOW)


async def overflow_again(bench: Bench) -> PipelineResult:
    return await bench.overflow(OVERFLOW, refusals=2)


async def too_many_bytes(bench: Bench) -> PipelineResult:
    return await bench.overflow(PromptTooLongError("413", is_byte_limit=True))


STEPS: tuple[Step, ...] = (edit, compact, compact_from_notes, overflow, overflow_again, too_many_bytes)
steps = st.sampled_from(STEPS)
replies = st.sampled_from(
    (summary("We renamed parse_date in /p/app.py."), summary(words(900)), ModelUnavailableError("down"), OVERFLOW)
)


def run(bench: Bench, step: Step, reply: Reply) -> PipelineResult:
    bench.summarizer = ScriptedSummarizer(*[reply] * 6)
    return asyncio.run(step(bench))  # type: ignore[arg-type]


def items_of(view: View) -> list[object]:
    return [(item.uuid, item.blocks(), item.is_user) for item in view.items]


@given(talks())
def test_rounds_cover_the_view_and_no_cut_between_them_parts_a_pair_or_a_response(talk: Talk) -> None:
    view = talk.view
    rounds = api_rounds(view)
    assert [r.start for r in rounds[1:]] == [r.end for r in rounds[:-1]]
    assert (rounds[0].start, rounds[-1].end) == (0, len(view)) if rounds else len(view) == 0
    whole, faults = response_runs(view), pairing_faults(view)
    for a_round in rounds:
        head, tail = View(view.items[: a_round.end]), View(view.items[a_round.end :])
        assert pairing_faults(head) | pairing_faults(tail) == faults
        assert response_runs(head).keys().isdisjoint(response_runs(tail).keys() - {""})
        assert sum(response_runs(head).values()) + sum(response_runs(tail).values()) == sum(whole.values())


@given(talks(), st.lists(st.tuples(steps, replies), min_size=1, max_size=4))
def test_no_chain_of_layers_breaks_a_pair_or_loses_what_must_stay(talk: Talk, chain: list[tuple[Step, Reply]]) -> None:
    bench = bench_for(talk)
    for step, reply in chain:
        before = talk.view
        known_faults = pairing_faults(before)
        last_prompt = before.last_prompt
        result = run(bench, step, reply)
        after = talk.view
        assert pairing_faults(after) <= known_faults
        if result.compacted is not None:
            assert after.items[0].is_user
            assert after.boundary is not None
        if last_prompt is not None and any(isinstance(o, Applied) for _, o in result.outcomes):
            newest = after.last_prompt
            assert newest is not None
            texts = "".join(item.entry.text for item in after.items if item.is_user)
            assert last_prompt.entry.text[:200] in texts
        # A response keeps all of its entries or none.
        whole = response_runs(before)
        assert all(count == whole[message_id] for message_id, count in response_runs(after).items())


@given(talks(min_turns=2), steps, replies)
def test_a_layer_never_makes_the_context_larger(talk: Talk, step: Step, reply: Reply) -> None:
    bench = bench_for(talk)
    # A ruler of its own: the pipeline's calibration moves with the responses it sees.
    counter, family = ContextCounter(WordTokenizer()), bench.context().model.family
    before = counter.estimate(talk.view, 0, family)
    run(bench, step, reply)
    assert counter.estimate(talk.view, 0, family) <= before


@given(talks(min_turns=2), steps, replies)
def test_undo_brings_back_the_very_view(talk: Talk, step: Step, reply: Reply) -> None:
    bench = bench_for(talk)
    before = items_of(talk.view)
    seq = talk.state.next_seq
    run(bench, step, reply)
    talk.prompt("said since")
    for record in [r for r in talk.state.records if r.seq >= seq]:
        if record.payload.kind in ("boundary", "clear_results", "snip", "fold", "repair") and not (
            record.tx and record.payload.kind != "boundary"
        ):
            talk.write(Revoke(record.seq))
    assert items_of(talk.view)[: len(before)] == before
    assert talk.view.items[-1].entry.text == "said since"


@given(talks(), st.lists(st.tuples(steps, replies), max_size=3))
def test_a_session_file_gives_the_same_view_again(talk: Talk, chain: list[tuple[Step, Reply]]) -> None:
    bench = bench_for(talk)
    for step, reply in chain:
        run(bench, step, reply)
    lines = b"".join(record_to_line(record) for record in talk.state.records)
    again = ConversationState(record_from_json(json.loads(line)) for line in lines.split(b"\n") if line)
    assert [item.key for item in again.view.items] == [item.key for item in talk.view.items]
    assert again.view.epoch == talk.view.epoch
    assert again.tracking == talk.state.tracking


@given(talks(min_turns=2), steps, replies)
def test_the_same_conversation_and_answers_give_the_same_outcome(talk: Talk, step: Step, reply: Reply) -> None:
    records = tuple(talk.state.records)
    results = []
    for _ in range(2):
        copy = Talk()
        copy.state, copy.now = ConversationState(records), talk.now
        bench = bench_for(copy)
        results.append(run(bench, step, reply).records)
    assert results[0] == results[1]


@given(talks(min_turns=3), steps, replies, st.sampled_from((8_000, 20_000, 60_000)))
def test_what_stands_behind_a_boundary_keeps_to_its_budget(talk: Talk, step: Step, reply: Reply, window: int) -> None:
    bench = bench_for(talk, window)
    result = run(bench, step, reply)
    if result.compacted is None:
        return
    lines = bench.context().thresholds
    budget = (lines.trigger - bench.overhead_tokens) // 2
    # Frames of messages, headings and notes come on top of the parts that are budgeted.
    slack = 40 * len(talk.view) + 600
    behind = result.compacted.after_tokens - bench.overhead_tokens
    assert result.compacted.after_tokens < lines.trigger
    if not result.compacted.receipt["contributors"]:
        assert behind <= budget + slack


@given(talks(min_turns=2), steps, replies)
def test_a_process_killed_at_any_record_is_wholly_before_or_wholly_after_a_compaction(
    talk: Talk, step: Step, reply: Reply
) -> None:
    bench = bench_for(talk)
    seq = talk.state.next_seq
    result = run(bench, step, reply)
    if result.compacted is None:
        return
    after = items_of(talk.view)
    boundary_seq = talk.state.boundaries[-1].seq
    tx = result.records[-2].tx
    before_tx = ConversationState(r for r in talk.state.records if r.seq < seq or (r.seq < boundary_seq and r.tx != tx))
    for end in range(seq, talk.state.next_seq):
        killed = ConversationState(r for r in talk.state.records if r.seq <= end)
        if end >= boundary_seq:
            assert items_of(killed.view) == after
        elif talk.state.records[end].tx == tx:
            assert items_of(killed.view) == items_of(before_tx.view)
            assert killed.open_transactions == (tx,)


@given(talks(min_turns=1), st.lists(st.tuples(steps, replies), max_size=2), talks(min_turns=1, max_turns=2))
def test_a_resumed_session_counts_what_the_running_one_counts(
    talk: Talk, chain: list[tuple[Step, Reply]], more: Talk
) -> None:
    bench = bench_for(talk, 60_000)
    for step, reply in chain:
        run(bench, step, reply)
    for item in more.view.items:
        bench.write(item.record.payload)
        bench.tokens()
    context = bench.context()
    assert bench.resumed().count(context) == bench.pipeline.count(context)


class Cancelling:
    """Lets a number of awaits pass and cancels at the next."""

    def __init__(self, after: int) -> None:
        self.left = after

    def check(self) -> None:
        if self.left == 0:
            raise asyncio.CancelledError
        self.left -= 1


@given(talks(min_turns=2), st.integers(0, 8))
def test_a_cancel_at_any_await_leaves_everything_as_it_was(talk: Talk, after: int) -> None:
    cancelling = Cancelling(after)

    class Sources(FixedSources):
        async def state(self) -> RestorableState:
            cancelling.check()
            return await super().state()

        async def read_file(self, path: str):  # type: ignore[no-untyped-def]
            cancelling.check()
            return await super().read_file(path)

    class Hooks(FixedHooks):
        async def pre_compact(self, trigger, instructions):  # type: ignore[no-untyped-def]
            cancelling.check()
            return PreCompactAnswer()

        async def session_start(self) -> tuple[str, ...]:
            cancelling.check()
            return ()

    class Notes(FixedNotes):
        async def current(self) -> SessionNotes | None:
            cancelling.check()
            return None

    def bench() -> Bench:
        made = bench_for(talk, 8_000)
        made.summarizer = ScriptedSummarizer(*[summary()] * 6)
        return made

    undisturbed = asyncio.run(bench().pipeline.before_request(bench().context()))
    disturbed = bench()
    disturbed.sources, disturbed.hooks, disturbed.notes = Sources(STATE, FILES), Hooks(), Notes()
    before = items_of(talk.view)
    try:
        asyncio.run(disturbed.pipeline.before_request(disturbed.context()))
    except asyncio.CancelledError:
        assert items_of(talk.view) == before
        disturbed.sources, disturbed.hooks, disturbed.notes = FixedSources(STATE, FILES), FixedHooks(), FixedNotes()
        disturbed.summarizer = ScriptedSummarizer(*[summary()] * 6)
        again = asyncio.run(disturbed.pipeline.before_request(disturbed.context()))
        assert [type(o) for _, o in again.outcomes] == [type(o) for _, o in undisturbed.outcomes]


@given(talks(), st.lists(st.tuples(steps, replies), max_size=2))
def test_counting_along_the_way_equals_counting_at_the_end(talk: Talk, chain: list[tuple[Step, Reply]]) -> None:
    bench = bench_for(talk)
    for step, reply in chain:
        run(bench, step, reply)
        bench.tokens()
    fresh = Pipeline(WordTokenizer(), bench.pipeline.counter.calibration)
    family = bench.context().model.family
    assert fresh.counter.estimate(talk.view, 0, family) == bench.pipeline.counter.estimate(talk.view, 0, family)


@pytest.mark.parametrize("reply", [summary(), ModelUnavailableError("down")])
def test_an_empty_conversation_is_left_alone(reply: ModelError) -> None:
    for step in STEPS:
        bench = bench_for(Talk())
        result = run(bench, step, reply)
        assert not any(isinstance(outcome, Applied) for _, outcome in result.outcomes)


@given(talks(min_turns=4, max_turns=10), replies)
def test_every_prompt_stays_within_its_budget_across_many_compactions(talk: Talk, reply: Reply) -> None:
    bench = bench_for(talk, 60_000)
    typed = [item.entry.text for item in talk.view.items if item.is_prompt]
    for _ in range(3):
        result = run(bench, compact, reply)
        if result.compacted is None:
            return
        boundary = last_boundary(talk)
        texts = "\n".join(item.entry.text for item in talk.view.items if item.is_user)
        missing = [text for text in typed if text.strip() and text[:60] not in texts]
        assert len(missing) <= boundary.receipt["prompts_elided"]
        talk.task("one more", rounds=6, tokens=900)
        typed.append("one more")


def test_facts_of_a_compaction_make_the_event() -> None:
    facts = Compacted("auto", "full", 100, 50, 1, 0.5, 0.01, {})
    assert facts.finished_event().after_tokens == 50
