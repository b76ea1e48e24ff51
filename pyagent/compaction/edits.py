"""Steps 3 to 5 of the pipeline: snip, clearing and collapse, proposed one after another and let through together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyagent.compaction.cleanup import is_main_thread
from pyagent.compaction.collapse import collapse_finished
from pyagent.compaction.context import PipelineContext, Sizer, is_cache_warm
from pyagent.compaction.gate import MIN_FREED_TOKENS, may_edit_history
from pyagent.compaction.microcompact import Clearing, clear_cold_results
from pyagent.compaction.outcome import (
    Applied,
    Declined,
    LayerFacts,
    LayerOutcome,
    NewRecord,
    ResultsCleared,
    RoundsFolded,
    RoundsSnipped,
)
from pyagent.compaction.snip import snip_superseded
from pyagent.log import ClearResults, Fold, Snip
from pyagent.view import View

ASKED_GAP_MINUTES = 5.0
"""The shortest lifetime of a prompt cache: within it nobody is asked whether old results shall go."""


def propose(ctx: PipelineContext, sizer: Sizer) -> tuple[tuple[str, LayerOutcome], ...]:
    """Each enabled layer's outcome; all are declined if the gate is shut for what they would free together."""
    if ctx.settings.is_disabled:
        return ()
    proposals = tuple(_proposals(ctx, sizer))
    freed = sum(op.freed_tokens for _, found, _ in proposals if not isinstance(found, str) for op in found)
    decision = may_edit_history(ctx.view, is_cache_warm=is_cache_warm(ctx.view, ctx.now), freed_tokens=freed)
    outcomes: list[tuple[str, LayerOutcome]] = []
    for layer, found, facts in proposals:
        if isinstance(found, str):
            outcomes.append((layer, Declined(found)))
        elif not decision.is_open or facts is None:
            outcomes.append((layer, Declined(decision.reason)))
        else:
            records = tuple(NewRecord(ctx.ports.new_uuid(), op) for op in found)
            outcomes.append((layer, Applied(records, facts)))
    return tuple(outcomes)


def clear_old_results(ctx: PipelineContext, sizer: Sizer) -> LayerOutcome:
    """Clear all old results but the newest because a person asked for it; the pause need not be long."""
    if ctx.settings.is_disabled:
        return Declined("compaction is switched off")
    cleared = clear_cold_results(
        ctx.view, sizer, now=ctx.now, gap_minutes=ASKED_GAP_MINUTES, keep_recent=ctx.settings.keep_recent
    )
    if not isinstance(cleared, Clearing):
        return Declined(cleared)
    op = cleared.op
    decision = may_edit_history(ctx.view, is_cache_warm=is_cache_warm(ctx.view, ctx.now), freed_tokens=op.freed_tokens)
    if not decision.is_open:
        return Declined(decision.reason)
    facts = ResultsCleared(len(op.placeholders), op.freed_tokens, cleared.idle_s, is_asked_for=True)
    return Applied((NewRecord(ctx.ports.new_uuid(), op),), facts)


def applied_to(view: View, outcome: Applied) -> View:
    """The view with an outcome's edits, as the fold will make it."""
    for record in outcome.records:
        if isinstance(record.payload, ClearResults | Snip | Fold):
            view = view.with_op(record.payload)
    return view


def collapse_still_helps(ctx: PipelineContext, sizer: Sizer) -> bool:
    """Whether collapsing would free so much that auto-compact can wait."""
    if not ctx.settings.gates.context_collapse or ctx.settings.is_disabled:
        return False
    folds = collapse_finished(ctx.view, sizer)
    return not isinstance(folds, str) and sum(fold.freed_tokens for fold in folds) >= MIN_FREED_TOKENS


_Edit: TypeAlias = ClearResults | Snip | Fold


def _proposals(ctx: PipelineContext, sizer: Sizer) -> Iterator[tuple[str, tuple[_Edit, ...] | str, LayerFacts | None]]:
    view, gates, settings = ctx.view, ctx.settings.gates, ctx.settings
    if gates.history_snip:
        snip = snip_superseded(view, sizer)
        if isinstance(snip, str):
            yield "snip", snip, None
        else:
            view = view.with_op(snip)
            yield "snip", (snip,), RoundsSnipped(len(snip.uuids), snip.freed_tokens, (snip.reason,))
    if gates.time_based_microcompact and is_main_thread(ctx.query_source):
        cleared = clear_cold_results(
            view,
            sizer,
            now=ctx.now,
            gap_minutes=0.0 if ctx.prefers_clearing else settings.gap_minutes,
            keep_recent=settings.keep_recent,
        )
        if isinstance(cleared, Clearing):
            op = cleared.op
            view = view.with_op(op)
            yield "microcompact", (op,), ResultsCleared(len(op.placeholders), op.freed_tokens, cleared.idle_s)
        else:
            yield "microcompact", cleared, None
    if gates.context_collapse and not settings.is_auto_disabled:
        folds = collapse_finished(view, sizer)
        if isinstance(folds, str):
            yield "collapse", folds, None
        else:
            yield "collapse", folds, RoundsFolded(len(folds), sum(fold.freed_tokens for fold in folds))
