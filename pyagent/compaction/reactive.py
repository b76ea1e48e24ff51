"""Layer 5, reactive compact: the server refused the request as too long.

The first refusal of a turn summarises the older rounds, the second makes do without a model, the third is shown.

Source: context pipeline design, section 9.
"""

from __future__ import annotations

from dataclasses import replace

from pyagent.compaction.commit import Prepared
from pyagent.compaction.compactor import CompactionRun
from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.media import drop_oldest_media
from pyagent.compaction.outcome import Applied, Declined, LayerOutcome
from pyagent.compaction.plan import CompactionPlan
from pyagent.compaction.rounds import api_rounds
from pyagent.compaction.thresholds import thresholds_for
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import PromptTooLongError, PyagentError

LEARNED_SHARE = 0.85
"""Of the estimate, taken for the server's limit when the refusal names none."""
EXTRACT_SHARE = 0.60
"""Of the learned limit: a second refusal must not be followed by a third for want of margin."""
BYTE_OVERFLOW_SHARE = 0.5
"""Of the window: with fewer tokens than this a 413 is about bytes, which means images if there are any."""

GIVE_UP_HINT = "Use /compact or /rewind, or start over with /clear; the conversation is intact."


def learned_limit(error: PyagentError, tokens: int, window_tokens: int) -> int:
    """The server's real limit: as it named it, else a cautious guess from what was refused."""
    named = error.limit_tokens if isinstance(error, PromptTooLongError) else None
    return min(named or int(tokens * LEARNED_SHARE), window_tokens)


async def on_overflow(
    ctx: PipelineContext, sizer: Sizer, tokens: int, error: PyagentError, refusals_this_turn: int
) -> tuple[LayerOutcome, AutoCompactTracking]:
    """What to do about a refusal, the `refusals_this_turn`-th (from 1) of this turn. Declined: show the error."""
    settings = ctx.settings
    if settings.is_disabled or settings.is_auto_disabled or not settings.gates.reactive_compact:
        return Declined("compaction after a refusal is switched off"), ctx.tracking
    if refusals_this_turn > 2:
        return Declined(f"{error.message} {GIVE_UP_HINT}", is_failure=True), ctx.tracking
    is_bytes = isinstance(error, PromptTooLongError) and error.is_byte_limit
    if is_bytes and tokens < BYTE_OVERFLOW_SHARE * ctx.model.window_tokens:
        dropped = drop_oldest_media(ctx, sizer)
        # With no image to drop the limit is a small one of the server's own, and only less text passes it.
        if isinstance(dropped, Applied):
            return dropped, ctx.tracking
    limit = learned_limit(error, tokens, ctx.model.window_tokens)
    learned = replace(ctx, model=replace(ctx.model, window_tokens=limit))
    gap = (error.gap_tokens if isinstance(error, PromptTooLongError) else None) or max(tokens - limit, 1)
    run = CompactionRun(
        learned,
        sizer,
        "auto",
        tokens,
        layer="reactive",
        thresholds=thresholds_for(limit, ctx.model.max_output_tokens, settings),
    )
    run.announce("reactive")
    reason = error.message
    if refusals_this_turn == 1:
        run.upto = _older_part(run, sizer, gap)
        made = await run.by_model(())
        if isinstance(made, Prepared):
            return run.done(made)
        run.upto, reason = None, made.reason
    outcome, tracking = await run.extract(ctx.tracking, reason, limit_tokens=int(limit * EXTRACT_SHARE))
    run.tell_end(outcome)
    return outcome, tracking


def _older_part(run: CompactionRun, sizer: Sizer, gap_tokens: int) -> int | None:
    """Where the part ends that the summary request can hold: the newest rounds that make up the gap stay behind it."""
    plan = run.plan(is_forced=True)
    assert isinstance(plan, CompactionPlan)
    view, end = plan.view, plan.covered_end
    for a_round in reversed(api_rounds(view)):
        if a_round.end > plan.covered_end:
            continue
        if sizer.items(view, end, plan.covered_end) >= gap_tokens + plan.max_output_tokens:
            return end
        if sizer.items(view, a_round.start, len(view)) > plan.uncovered_room_tokens:
            break
        end = a_round.start
    return end if 0 < end < plan.covered_end else None
