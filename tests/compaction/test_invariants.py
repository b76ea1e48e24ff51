"""What holds of every layer, alone and chained, over random conversations.

One random conversation is played through a random chain of layers, and everything is looked at before and after each
step, so that every example counts for every invariant. The numbers are those of the design's list; what can only be
seen of an assembled agent is checked elsewhere:

0. A repairer stands before every send, and finds the same whether it looks at all or at what is new: `Scene.send`;
   `tests/agent/wire/test_repair.py`, and persisted: `tests/agent/test_log_to_request.py`.
1. Valid for the API: `Scene.send` asks the strict server's rules, cache marks included; `check_rounds`,
   `check_pairs_and_responses`.
2. No entry is lost, undo is exact: `check_nothing_is_lost`, `check_undo`; redo: `tests/test_state.py`.
3. Serialise, load, view: `check_resume`; torn and foreign lines: `tests/test_record_lines.py`,
   `tests/agent/test_session_store.py`.
4. Smaller, within the budget, deterministic: `check_size`, `check_budget`, `check_same_again`.
5. The user's messages stay: `check_prompts`.
6. What was sent stays until a record changes history: `check_prefix`; with marks and the server's cache:
   `tests/agent/test_frozen_prefix.py`.
7. A cancel at any await changes nothing: `test_a_cancel_at_any_await_leaves_everything_as_it_was`; of the whole agent:
   `tests/agent/test_conversation.py`.
8. Thinking goes out only behind the prefix it was sampled under: `Scene.send` checks each signature; random edits,
   rewinds and switches of models: `tests/agent/wire/test_thinking_property.py`.
9. A resumed session sends the same bytes, counts the same and compacts the same: `check_resume`, `check_same_again`;
   of the whole agent, forks included: `tests/agent/test_log_to_request.py`, `tests/agent/test_session_reader.py`.
10. Killed at any write: `check_kills`; of the whole agent: `tests/agent/test_killed_compaction.py`,
    `tests/agent/test_crashes.py`.
11. Counting, rendering and validating cost what is new: `check_costs_only_what_is_new`; as figures:
    `bench/pipeline.py`.

Source: context pipeline design, section 11.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.repair import find_repair
from pyagent.compaction.count import ContextCounter, family_of
from pyagent.compaction.outcome import Applied, Compacted
from pyagent.compaction.pipeline import PipelineResult
from pyagent.compaction.ports import PreCompactAnswer, RestorableState, SessionNotes
from pyagent.compaction.rounds import api_rounds
from pyagent.log import Boundary, Payload, Record, Revoke, UserEntry
from pyagent.messages import TextBlock
from pyagent.record_lines import record_to_line
from pyagent.state import ConversationState
from pyagent.view import View
from tests.compaction.builder import MODEL, START, Talk, WordTokenizer
from tests.compaction.fakes import Bench, FixedHooks, FixedNotes, FixedSources, ScriptedSummarizer, summary
from tests.compaction.play import (
    FILES,
    OVERHEAD_TOKENS,
    PROFILE,
    REPLIES,
    STATE,
    STEPS,
    Moment,
    Scene,
    Sent,
    Step,
    begin,
    items_of,
    run_now,
)
from tests.compaction.strategies import pairing_faults, response_runs, seeds, talks

CHANGES_OF_THE_VIEW = ("boundary", "clear_results", "snip", "fold", "repair")

chains = st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(tuple(REPLIES))), max_size=4)
windows = st.sampled_from((20_000, 8_000, 60_000))


@pytest.mark.parametrize("origin", ["held here", "imported"])
@settings(max_examples=settings().max_examples // 2)
@given(seeds, st.integers(0, 8), chains, windows)
def test_every_invariant_holds_before_and_after_each_layer_of_a_chain(
    origin: str, seed: int, turns: int, chain: list[tuple[Step, str]], window_tokens: int
) -> None:
    scene = begin(seed, turns, window_tokens, is_own=origin == "held here")
    check_rounds(scene.talk.view)
    sent = scene.send()
    begun, twin = scene.talk.state.next_seq, scene.reopened()
    for step, reply in chain:
        before = Moment(scene.talk.state)
        result = scene.play(step, reply)
        after = Moment(scene.talk.state)
        check_pairs_and_responses(before, after)
        check_nothing_is_lost(before, scene)
        check_undo(before, scene)
        check_size(before, after, scene)
        check_budget(result, scene)
        check_prompts(before, after, result, scene)
        check_kills(before, after, scene)
        check_prefix(sent, scene.send())
        sent = check_costs_only_what_is_new(scene)
        go_on(scene)
    check_prefix(sent, scene.send())
    check_resume(scene)
    for step, reply in chain:
        twin.play(step, reply)
        check_costs_only_what_is_new(twin)
        go_on(twin)
    twin.send()
    check_same_again(scene, twin, begun)


def go_on(scene: Scene) -> None:
    """Now and then a whole turn stands between two layers."""
    if scene.chance.random() < 0.3:
        scene.speaker.turn()


# ── 1: valid for the API ─────────────────────────────────────────────────────────────────────────────────────────


def check_rounds(view: View) -> None:
    """Rounds cover the view, and no cut between them parts a pair or a response."""
    rounds = api_rounds(view)
    assert [r.start for r in rounds[1:]] == [r.end for r in rounds[:-1]]
    assert (rounds[0].start, rounds[-1].end) == (0, len(view)) if rounds else len(view) == 0
    whole, faults = response_runs(view), pairing_faults(view)
    for a_round in rounds:
        head, tail = View(view.items[: a_round.end]), View(view.items[a_round.end :])
        assert pairing_faults(head) | pairing_faults(tail) == faults
        runs = response_runs(head), response_runs(tail)
        assert runs[0].keys().isdisjoint(runs[1].keys() - {""})
        assert sum(runs[0].values()) + sum(runs[1].values()) == sum(whole.values())


def check_pairs_and_responses(before: Moment, after: Moment) -> None:
    """No layer parts a pair that was whole; a response keeps all of its entries or none."""
    assert after.faults <= before.faults
    assert all(count == before.runs[message_id] for message_id, count in after.runs.items())
    if after.view.boundary is not before.view.boundary:
        assert after.view.items[0].is_user


# ── 0, 1, 6, 8: the request ──────────────────────────────────────────────────────────────────────────────────────


def check_prefix(before: Sent | None, sent: Sent | None) -> None:
    """What was sent before stays, byte for byte, unless a record says that history changed."""
    if before is not None and before.messages and sent is not None and before.epoch == sent.epoch:
        # The last message may still have been open: what came since stands in it too.
        assert sent.messages[: len(before.messages) - 1] == before.messages[:-1]
        assert sent.messages[len(before.messages) - 1].startswith(before.messages[-1][:-2])


# ── 2, 3, 9, 10: the log ─────────────────────────────────────────────────────────────────────────────────────────


def check_nothing_is_lost(before: Moment, scene: Scene) -> None:
    records = scene.talk.state.records
    assert [record.seq for record in records] == list(range(len(records)))
    for item in before.view.items:
        assert records[item.record.seq] is item.record
        assert scene.talk.state.entry(item.uuid) is item.record


def check_undo(before: Moment, scene: Scene) -> None:
    """Undoing what a layer did brings back the very view, same bytes; what was said since stays."""
    made = [r for r in scene.talk.state.records[before.seq :] if r.payload.kind in CHANGES_OF_THE_VIEW]
    if not made:
        return
    fork = ConversationState(scene.talk.state.records)
    _write(fork, UserEntry((TextBlock("said since"),)))
    for record in made:
        if not record.tx or record.payload.kind == "boundary":
            _write(fork, Revoke(record.seq))
    assert items_of(fork.view)[:-1] == before.items
    assert fork.view.items[-1].entry.text == "said since"
    if before.view.items and find_repair(before.view) is None:
        old = scene.renderer.render(before.view, PROFILE)
        again = scene.renderer.render(View(fork.view.items[:-1], fork.view.epoch, fork.view.boundary), PROFILE)
        assert again.messages == old.messages


def _write(state: ConversationState, payload: Payload) -> None:
    seq = state.next_seq
    state.apply(Record(seq, f"later-{seq}", START, payload))


def check_kills(before: Moment, after: Moment, scene: Scene) -> None:
    """A process killed at any record of a compaction is wholly before or wholly after it."""
    if after.view.boundary is before.view.boundary or after.view.boundary is None:
        return
    boundary, records = after.view.boundary, scene.talk.state.records
    killed = ConversationState(records[: before.seq])
    of_the_compaction = [r for r in records[before.seq :] if r.tx == boundary.tx]
    assert of_the_compaction[-1] is boundary, "the boundary is the commit"
    for record in records[before.seq :]:
        view_before = items_of(killed.view)
        killed.apply(record)
        if record is boundary:
            assert items_of(killed.view) == after.items
        elif record.tx == boundary.tx:
            assert items_of(killed.view) == view_before
            assert killed.open_transactions == (boundary.tx,)


def check_resume(scene: Scene) -> None:
    """The file gives the same view, the same request and the same count as the session that wrote it."""
    state, again = scene.talk.state, scene.resumed()
    assert [item.key for item in again.view.items] == [item.key for item in state.view.items]
    assert again.view.epoch == state.view.epoch
    assert again.tracking == state.tracking
    if len(state.view):
        running_body = RequestPlan.of(PROFILE, scene.renderer.render(state.view, PROFILE)).body()
        assert RequestPlan.of(PROFILE, Renderer().render(again.view, PROFILE)).body() == running_body
    context, running, resumed = scene.bench.context(), scene.bench.pipeline, scene.bench.resumed()
    assert resumed.count(context) == running.count(context)
    family = context.model.family
    assert resumed.counter.estimate(again.view, 0, family) == running.counter.estimate(state.view, 0, family)


# ── 4, 5: size and what stays ────────────────────────────────────────────────────────────────────────────────────


def check_size(before: Moment, after: Moment, scene: Scene) -> None:
    """By a ruler that has measured nothing yet, of the session's own scale."""
    ruler = ContextCounter(WordTokenizer(), scene.bench.pipeline.counter.calibration)
    size_before, size_after = (ruler.estimate(view, 0, family_of(MODEL)) for view in (before.view, after.view))
    assert size_after <= size_before


def check_budget(result: PipelineResult, scene: Scene) -> None:
    if result.compacted is None:
        return
    trigger = scene.bench.context().thresholds.trigger
    budget = (trigger - OVERHEAD_TOKENS) // 2
    # Frames of messages, headings and notes come on top of the parts that are budgeted.
    slack = 40 * len(scene.talk.view) + 600
    assert result.compacted.after_tokens < trigger
    if not result.compacted.receipt["contributors"]:
        assert result.compacted.after_tokens - OVERHEAD_TOKENS <= budget + slack


def check_prompts(before: Moment, after: Moment, result: PipelineResult, scene: Scene) -> None:
    """The last prompt stays; of those summarised, the receipt says how many the budget left out; those behind the
    boundary all stay."""
    texts = "\n".join(item.entry.text for item in after.view.items if item.is_user)
    last = before.view.last_prompt
    if last is not None:
        assert last.entry.text[:200] in texts
    # By their first words: a prompt too long for the window goes on as a copy that is cut in the middle.
    scene.typed |= {item.entry.text[:60] for item in before.view.items if item.is_prompt}
    missing = [text for text in scene.typed if text.strip() and text not in texts]
    boundaries = (record.payload for record in scene.talk.state.boundaries)
    assert len(missing) <= sum(b.receipt["prompts_elided"] for b in boundaries if isinstance(b, Boundary))
    if last is not None and any(isinstance(outcome, Applied) for _, outcome in result.outcomes):
        assert after.view.last_prompt is not None


def check_same_again(scene: Scene, twin: Scene, begun: int) -> None:
    """The same conversation, clock and answers give the same records, also in a process that began in the middle."""
    lines, twin_lines = ([record_to_line(r) for r in s.talk.state.records[begun:]] for s in (scene, twin))
    assert twin_lines == lines


# ── 11: cost ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check_costs_only_what_is_new(scene: Scene) -> Sent | None:
    """A prompt more costs its own blocks to count and to render, however long the conversation is."""
    bench, state = scene.bench, scene.talk.state
    scene.rendered()
    bench.tokens()
    counted, rendered, records = bench.tokenizer.calls, scene.parts_rendered, len(state.records)
    scene.speaker.prompt()
    epoch = state.view.epoch
    bench.tokens()
    new = [record.payload for record in state.records[records:]]
    blocks = sum(len(entry.content) for entry in new if isinstance(entry, UserEntry))
    assert bench.tokenizer.calls - counted <= blocks
    sent = scene.rendered()
    if state.view.epoch == epoch:
        assert scene.parts_rendered - rendered <= blocks
    return sent


# ── beside the chain ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_random_conversations_reach_every_layer() -> None:
    """Guards the property above against a generator that has become too tame."""
    applied: Counter[str] = Counter()
    for step in STEPS:
        for seed in range(12):
            scene = begin(seed, 7, 8_000 if seed % 2 else 20_000, is_own=seed % 3 == 0)
            result = scene.play(step, tuple(REPLIES)[seed % 3])
            applied.update(
                getattr(outcome.facts, "layer", layer)
                for layer, outcome in result.outcomes
                if isinstance(outcome, Applied)
            )
    assert {"snip", "microcompact", "collapse", "full", "session_memory", "extractive", "reactive"} <= applied.keys()
    assert min(applied.values()) >= 3, applied


@pytest.mark.parametrize("reply", ["short", "unavailable"])
def test_an_empty_conversation_is_left_alone(reply: str) -> None:
    for step in STEPS:
        scene = next(empty for seed in range(20) if not len((empty := begin(seed, 0, 20_000, is_own=True)).talk.view))
        result = scene.play(step, reply)
        assert not any(isinstance(outcome, Applied) for _, outcome in result.outcomes)


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
        made = Bench(talk, sources=FixedSources(STATE, FILES), window_tokens=8_000, overhead_tokens=OVERHEAD_TOKENS)
        made.summarizer = ScriptedSummarizer(*[summary()] * 6)
        return made.set_gates(history_snip=True, context_collapse=True)

    disturbed = bench()
    disturbed.sources, disturbed.hooks, disturbed.notes = Sources(STATE, FILES), Hooks(), Notes()
    before, seq = items_of(talk.view), talk.state.next_seq
    try:
        run_now(disturbed.pipeline.before_request(disturbed.context()))
    except asyncio.CancelledError:
        assert items_of(talk.view) == before
        assert talk.state.next_seq == seq
        disturbed.sources, disturbed.hooks, disturbed.notes = FixedSources(STATE, FILES), FixedHooks(), FixedNotes()
        disturbed.summarizer = ScriptedSummarizer(*[summary()] * 6)
        again = run_now(disturbed.pipeline.before_request(disturbed.context()))
        undisturbed = run_now(bench().pipeline.before_request(bench().context()))
        assert [type(o) for _, o in again.outcomes] == [type(o) for _, o in undisturbed.outcomes]


def test_facts_of_a_compaction_make_the_event() -> None:
    facts = Compacted("auto", "full", 100, 50, 1, 0.5, 0.01, {})
    assert facts.finished_event().after_tokens == 50
