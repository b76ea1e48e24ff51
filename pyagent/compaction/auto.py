"""Layer 3's question: is it time to compact by itself?"""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.compaction.count import ContextCount
from pyagent.compaction.thresholds import MAX_OVERHEAD_SHARE, Thresholds
from pyagent.compaction.tracking import MAX_POOR_COMPACTIONS, AutoCompactTracking
from pyagent.settings import CompactionSettings

RECURSIVE_SOURCES = ("session_memory", "compact")
"""Requests that compactions themselves make: one that compacted would call itself."""


@dataclass(frozen=True, slots=True)
class AutoDecision:
    should_compact: bool
    reason: str
    """Why, or why not; a sentence."""
    is_worth_telling: bool = False
    """True if a person should know: it is time, yet nothing can be done automatically."""


def should_auto_compact(
    count: ContextCount,
    thresholds: Thresholds,
    settings: CompactionSettings,
    tracking: AutoCompactTracking,
    *,
    query_source: str,
    overhead_tokens: int,
    collapse_still_helps: bool = False,
) -> AutoDecision:
    """Whether an automatic compaction is due before the next request, with the reason.

    Source: context pipeline design, section 7.
    """
    if query_source in RECURSIVE_SOURCES:
        return AutoDecision(False, f"a {query_source} request never compacts")
    if settings.is_disabled:
        return AutoDecision(False, "compaction is switched off (DISABLE_COMPACT)")
    if settings.is_auto_disabled:
        return AutoDecision(False, "automatic compaction is switched off")
    if settings.gates.reactive_only and settings.gates.reactive_compact:
        return AutoDecision(False, "compaction waits for the server's refusal (reactive_only)")
    if settings.gates.context_collapse and collapse_still_helps and count.tokens < thresholds.blocking:
        return AutoDecision(False, "collapsing finished rounds still frees enough")
    if count.tokens < thresholds.trigger:
        return AutoDecision(False, f"{count.tokens:,} of {thresholds.trigger:,} tokens")
    if not count.is_exact_encoding:
        return AutoDecision(False, "the token encoding is still loading")
    if overhead_tokens > MAX_OVERHEAD_SHARE * thresholds.trigger:
        return AutoDecision(
            False,
            f"system prompt and tools alone take {overhead_tokens:,} of the {thresholds.trigger:,} tokens at which the "
            "conversation would be compacted, so compacting cannot help: use fewer tools or a larger window",
            is_worth_telling=True,
        )
    if tracking.is_refilling(thresholds.trigger):
        return AutoDecision(
            False,
            f"the last {MAX_POOR_COMPACTIONS} compactions each left the context almost full, so another would not help",
            is_worth_telling=True,
        )
    return AutoDecision(True, f"{count.tokens:,} tokens have reached the trigger of {thresholds.trigger:,}")
