"""What a resumed session costs to go on with once its cache has gone cold, asked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.cost import TOKENS_PER_PRICE, WRITE_1H_FACTOR, WRITE_5M_FACTOR, price_of
from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.edits import clear_old_results, propose
from pyagent.compaction.outcome import Applied, ResultsCleared
from pyagent.events import Question, QuestionOption

ASK_FROM_TOKENS = 100_000
"""Below this, writing the cache anew costs less than a person's moment of thought."""

SUMMARY_TOKENS = 6_000
"""Length of a usual summary: its price is that of this much output."""

GO_ON, CLEAR, COMPACT = "Go on as is", "Clear old results", "Compact first"


@dataclass(frozen=True, slots=True)
class ColdStart:
    """What is known of a session before it goes on."""

    tokens: int
    clearable_tokens: int
    """Of old tool results that could be cleared; 0 if there are none."""
    is_cleared_by_itself: bool
    """Whether the next request clears them anyway, as the settings say."""
    idle_s: float
    is_cache_ttl_1h: bool


def cold_start_question(start: ColdStart, info: ModelInfo) -> Question:
    """The ways to go on, each with its price; the first is what happens without an answer."""
    write_factor = WRITE_1H_FACTOR if start.is_cache_ttl_1h else WRITE_5M_FACTOR
    tokens = start.tokens
    go_on = QuestionOption(GO_ON, f"sends about {tokens:,} tokens anew{_price(info, tokens * write_factor, tokens)}")
    compact_price = _price(info, tokens, tokens, SUMMARY_TOKENS)
    compact = QuestionOption(COMPACT, f"reads the conversation once and goes on with a summary{compact_price}")
    options = [go_on, compact]
    if start.clearable_tokens:
        left = max(tokens - start.clearable_tokens, 0)
        text = (
            f"{start.clearable_tokens:,} tokens of old tool results give way to markers; "
            f"sends about {left:,} tokens anew{_price(info, left * write_factor, left)}"
        )
        options.insert(0 if start.is_cleared_by_itself else 1, QuestionOption(CLEAR, text))
    return Question(
        "Cold cache",
        f"This session was idle for {_duration(start.idle_s)}: its cache is cold, and it holds about {tokens:,} "
        "tokens. Nothing is sent before your next prompt.",
        tuple(options),
    )


def clearable(context: PipelineContext, sizer: Sizer) -> tuple[int, bool]:
    """Tokens of old tool results that can be cleared, and whether the next request does so by itself."""
    for _, outcome in propose(context, sizer):
        if isinstance(outcome, Applied) and isinstance(outcome.facts, ResultsCleared):
            return outcome.facts.freed_tokens, True
    outcome = clear_old_results(context, sizer)
    if isinstance(outcome, Applied) and isinstance(outcome.facts, ResultsCleared):
        return outcome.facts.freed_tokens, False
    return 0, False


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
