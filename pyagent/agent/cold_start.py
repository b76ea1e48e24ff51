"""What a resumed session costs to go on with once its cache has gone cold, asked before anything is sent."""

from __future__ import annotations

from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.cost import TOKENS_PER_PRICE, WRITE_1H_FACTOR, WRITE_5M_FACTOR, price_of
from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.edits import propose
from pyagent.compaction.outcome import Applied, ResultsCleared
from pyagent.events import Question, QuestionOption

ASK_FROM_TOKENS = 100_000
"""Below this, writing the cache anew costs less than a person's moment of thought."""

SUMMARY_TOKENS = 6_000
"""Length of a usual summary: its price is that of this much output."""

GO_ON, COMPACT = "Go on", "Compact first"


def cold_start_question(
    tokens: int, cleared_tokens: int, info: ModelInfo, *, idle_s: float, is_cache_ttl_1h: bool
) -> Question:
    """`cleared_tokens` are those of old results that leave by themselves with the next request."""
    write_factor = WRITE_1H_FACTOR if is_cache_ttl_1h else WRITE_5M_FACTOR
    sent = max(tokens - cleared_tokens, 0)
    go_on = f"sends about {sent:,} tokens anew{_price(info, sent * write_factor, sent)}"
    if cleared_tokens:
        whole = _price(info, tokens * write_factor, tokens)
        go_on += f"; {cleared_tokens:,} tokens of old tool results are cleared first (all {tokens:,}{whole})"
    compact = f"reads the conversation once and goes on with a summary{_price(info, tokens, tokens, SUMMARY_TOKENS)}"
    return Question(
        "Cold cache",
        f"This session was idle for {_duration(idle_s)}: its cache is cold, and it holds about {tokens:,} tokens. "
        "Nothing is sent before your next prompt.",
        (QuestionOption(GO_ON, go_on), QuestionOption(COMPACT, compact)),
    )


def cleared_by_itself(context: PipelineContext, sizer: Sizer) -> int:
    """Tokens of old tool results that the next request would clear."""
    for _, outcome in propose(context, sizer):
        if isinstance(outcome, Applied) and isinstance(outcome.facts, ResultsCleared):
            return outcome.facts.freed_tokens
    return 0


def _price(info: ModelInfo, input_equivalents: float, prompt_tokens: int, output_tokens: int = 0) -> str:
    price = price_of(info, prompt_tokens)
    if price is None:
        return ""
    dollars = (input_equivalents * price.input_usd + output_tokens * price.output_usd) / TOKENS_PER_PRICE
    return f", ${dollars:.2f}"


def _duration(seconds: float) -> str:
    hours = seconds / 3_600
    return (
        f"{seconds / 60:.0f} minutes" if hours < 2 else f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
    )
