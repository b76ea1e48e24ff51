"""The context pipeline: what happens to the conversation before a request, at `/compact`, and when a request overflows.

Every step is a pure decision over the view; the outcome is returned as records and written by the conversation. A
cancel at any await therefore leaves nothing behind.

Source: context pipeline design, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyagent.compaction import compactor, edits, reactive
from pyagent.compaction.auto import AutoDecision, should_auto_compact
from pyagent.compaction.cached import freed_by, queue_edits
from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.cleanup import is_main_thread
from pyagent.compaction.compactor import Preview
from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.count import Calibration, ContextCount, ContextCounter, Tokenizer
from pyagent.compaction.economy import CachePrices, Economy
from pyagent.compaction.economy import economy as project
from pyagent.compaction.outcome import Applied, Compacted, Declined, EditsQueued, LayerOutcome, NewRecord
from pyagent.compaction.plan import BUDGET_SHARE, SUMMARY_SHARE
from pyagent.compaction.ports import SessionNotes
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import PyagentError
from pyagent.log import AssistantEntry, Boundary, Record, TrackingSaved
from pyagent.view import View, ViewItem


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What one pass decided. Nothing stands in the log yet."""

    outcomes: tuple[tuple[str, LayerOutcome], ...]
    """(layer, outcome) of each layer that had a say, in order."""
    tracking: AutoCompactTracking
    records: tuple[NewRecord, ...]
    """Everything to write, in order, the changed tracking included."""
    count: ContextCount
    """Of the view as the pass found it."""
    cached_edits: CachedEdits | None = None
    """What the next request tells the server to drop; replaces the context's."""
    notices: tuple[str, ...] = ()
    """Lines for the person."""

    @property
    def outcome(self) -> LayerOutcome:
        """The last layer's: of `/compact` and of an overflow the only one."""
        return self.outcomes[-1][1]

    @property
    def compacted(self) -> Compacted | None:
        """The facts of the compaction, if one is to be committed: cleanup and PostCompact hooks follow it."""
        for _, outcome in self.outcomes:
            if isinstance(outcome, Applied) and isinstance(outcome.facts, Compacted):
                return outcome.facts
        return None


class Pipeline:
    """The pipeline of one conversation. Holds the token counter's caches, and no decision of its own."""

    def __init__(self, tokenizer: Tokenizer, calibration: Calibration | None = None) -> None:
        self.counter = ContextCounter(tokenizer, calibration)

    @classmethod
    def resumed(cls, tokenizer: Tokenizer, tracking: AutoCompactTracking) -> Pipeline:
        """A pipeline that goes on from the tracking a session file holds."""
        return cls(tokenizer, Calibration.from_json(tracking.calibration))

    def count(self, ctx: PipelineContext) -> ContextCount:
        """The context's size: the one number for gauge, trigger, `/context` and headless output."""
        return self.counter.count(
            ctx.view, ctx.overhead_tokens, ctx.model.family, window_tokens=ctx.model.window_tokens
        )

    def measured(self, view: View, entry: AssistantEntry, *, uuid: str, seq: int, at: datetime) -> AssistantEntry:
        """A response that is about to be written behind `view` as `uuid` and `seq`, with the estimate of both."""
        return self.counter.ended_by(view, ViewItem(Record(seq, uuid, at, entry)))

    def after_response(self, ctx: PipelineContext) -> AutoCompactTracking:
        """What there is to remember once the newest entry of the view, a response, is in: to be written at once, so
        that a resumed session counts what this one counts."""
        self.counter.calibrate(ctx.view, ctx.model.family, ctx.model.window_tokens)
        return replace(ctx.tracking.after_request(), calibration=self.counter.calibration.to_json())

    async def before_request(self, ctx: PipelineContext) -> PipelineResult:
        """Steps 3 to 6: edits of history behind their gate, then auto-compact if it is time."""
        count = self.count(ctx)
        lines = ctx.thresholds
        if lines.is_economy and lines.is_auto_on and count.tokens >= lines.trigger:
            ctx = replace(ctx, prefers_clearing=True)
        outcomes: list[tuple[str, LayerOutcome]] = list(edits.propose(ctx, self._sizer(ctx)))
        tracking, view = ctx.tracking, ctx.view
        for _, outcome in outcomes:
            if isinstance(outcome, Applied):
                view = edits.applied_to(view, outcome)
        cached = self._cached_edits(ctx, outcomes)
        now = replace(ctx, view=view, tracking=tracking, cached_edits=cached)
        decision = self._auto_decision(now)
        notices: tuple[str, ...] = ()
        if decision.should_compact:
            outcome, tracking = await compactor.auto_compact(now, self._sizer(ctx), self.count(now).tokens)
            outcomes.append(("auto_compact", outcome))
            tracking, notices = _circuit_notice(tracking)
        else:
            outcomes.append(("auto_compact", Declined(decision.reason)))
            if decision.is_worth_telling and not tracking.is_told:
                largest = ", ".join(compactor.largest_contributors(now, self._sizer(ctx)))
                notices, tracking = (f"Not compacting: {decision.reason}. Largest parts: {largest}.",), tracking.told()
        return self._result(now, outcomes, tracking, count, notices, before=ctx.tracking)

    def clear_old_results(self, ctx: PipelineContext) -> PipelineResult:
        """Layer 1 alone, because a person asked for it."""
        outcome = edits.clear_old_results(ctx, self._sizer(ctx))
        return self._result(ctx, [("microcompact", outcome)], ctx.tracking, self.count(ctx))

    async def compact(
        self, ctx: PipelineContext, instructions: str = "", *, upto: int | None = None, start: int = 0
    ) -> PipelineResult:
        """`/compact`: always tried, whatever the breakers say. `upto` limits it to the items before that position,
        `start` to those from it on."""
        count = self.count(ctx)
        outcome, tracking = await compactor.manual_compact(
            ctx, self._sizer(ctx), count.tokens, instructions=instructions, upto=upto, start=start
        )
        return self._result(ctx, [("compact", outcome)], tracking, count)

    async def on_overflow(self, ctx: PipelineContext, error: PyagentError, refusals_this_turn: int) -> PipelineResult:
        """The last line: the server refused the request as too long for the `refusals_this_turn`-th time (from 1)."""
        count = self.count(ctx)
        outcome, tracking = await reactive.on_overflow(ctx, self._sizer(ctx), count.tokens, error, refusals_this_turn)
        return self._result(ctx, [("reactive", outcome)], tracking, count)

    async def preview(self, ctx: PipelineContext, *, upto: int | None = None, start: int = 0) -> Preview | Declined:
        """What `/compact` would do now: no call, no change."""
        return await compactor.preview(ctx, self._sizer(ctx), self.count(ctx).tokens, upto=upto, start=start)

    async def draft(self, ctx: PipelineContext) -> SessionNotes | Declined:
        """A summary made ahead, in the background, while the cache is warm. Offered back through `NotesSource`."""
        if not ctx.thresholds.is_auto_on:
            return Declined("automatic compaction is switched off")
        return await compactor.draft(ctx, self._sizer(ctx), self.count(ctx).tokens)

    def economy(self, ctx: PipelineContext, prices: CachePrices) -> Economy | None:
        """The projected bill at today's trigger and at the cheapest; None until two responses have told their size."""
        added = self.counter.growth_per_call(ctx.view)
        if added is None:
            return None
        boundary = None if ctx.view.boundary is None else ctx.view.boundary.payload
        lines = ctx.thresholds
        typical = ctx.overhead_tokens + (lines.trigger - ctx.overhead_tokens) * BUDGET_SHARE * SUMMARY_SHARE
        kept = boundary.post_tokens if isinstance(boundary, Boundary) else typical
        prompts = [position for position in ctx.view.index.prompts if position < len(ctx.view)]
        task = self._sizer(ctx).items(ctx.view, prompts[-1], len(ctx.view)) if prompts else 0
        return project(lines.trigger, added, kept, round(kept + task), prices)

    def undo_forecast(self, ctx: PipelineContext, view_before: View) -> int:
        """Tokens the context would hold if the last compaction were undone."""
        return self.counter.estimate(view_before, ctx.overhead_tokens, ctx.model.family)

    def _cached_edits(self, ctx: PipelineContext, outcomes: list[tuple[str, LayerOutcome]]) -> CachedEdits | None:
        """The layer's other half: where no local clearing is due, the server may drop old results from its cache."""
        edits_so_far = ctx.cached_edits
        is_due = ctx.settings.gates.cached_microcompact and not ctx.settings.is_disabled
        if edits_so_far is None or not is_due or not is_main_thread(ctx.query_source):
            return edits_so_far
        if any(isinstance(outcome, Applied) for _, outcome in outcomes):
            return edits_so_far
        queued = queue_edits(ctx.view, edits_so_far, self._sizer(ctx))
        if isinstance(queued, str) or queued.pending is None:
            outcomes.append(("cached_microcompact", Declined(str(queued))))
            return edits_so_far
        freed = freed_by(ctx.view, CachedEdits(pending=queued.pending), self._sizer(ctx))
        facts = EditsQueued(queued.pending.tool_use_ids, freed)
        outcomes.append(("cached_microcompact", Applied((), facts)))
        return queued

    def _sizer(self, ctx: PipelineContext) -> Sizer:
        return Sizer(self.counter, ctx.model.family)

    def _auto_decision(self, ctx: PipelineContext) -> AutoDecision:
        return should_auto_compact(
            self.count(ctx),
            ctx.thresholds,
            ctx.settings,
            ctx.tracking,
            query_source=ctx.query_source,
            overhead_tokens=ctx.overhead_tokens,
            collapse_still_helps=edits.collapse_still_helps(ctx, self._sizer(ctx)),
        )

    def _result(
        self,
        ctx: PipelineContext,
        outcomes: Sequence[tuple[str, LayerOutcome]],
        tracking: AutoCompactTracking,
        count: ContextCount,
        notices: tuple[str, ...] = (),
        *,
        before: AutoCompactTracking | None = None,
    ) -> PipelineResult:
        records = [record for _, outcome in outcomes for record in outcome.records]
        if tracking != (before or ctx.tracking):
            records.append(NewRecord(ctx.ports.new_uuid(), TrackingSaved(tracking.to_json())))
        # A boundary or an edit of history leaves nothing for the server to drop.
        is_edited = any(isinstance(outcome, Applied) and outcome.records for _, outcome in outcomes)
        cached = CachedEdits() if is_edited and ctx.cached_edits is not None else ctx.cached_edits
        return PipelineResult(tuple(outcomes), tracking, tuple(records), count, cached, notices)


def _circuit_notice(tracking: AutoCompactTracking) -> tuple[AutoCompactTracking, tuple[str, ...]]:
    """Tell once that automatic compaction pauses, why, and when it tries again."""
    due = tracking.next_attempt_at
    if due is None or tracking.is_told:
        return tracking, ()
    line = (
        f"Automatic compaction failed {tracking.consecutive_failures} times in a row "
        f"({tracking.last_failure_reason.rstrip('.')}). Next try after {due:%H:%M} UTC; /compact tries at once."
    )
    return tracking.told(), (line,)
