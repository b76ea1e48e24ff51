"""The cheapest point to compact at, computed from the provider's cache prices; and the bill it leads to.

With a tokens added per call, K tokens kept by a compaction, and r and w the prices of a cache read and a cache write as
multiples of the input price, and S the price of writing a summary, a call costs on average
r·(K+T)/2 + a·(w·K + S)/(T−K) + a·w when the context is compacted at T. That is least at T* = K + √(2·a·(w·K + S)/r).

Source: context pipeline design, section 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CALLS_PER_PROJECTION = 10
SUMMARY_OUTPUT_TOKENS = 3_000
"""Length of a summary with its draft: the middle of what real sessions were measured to need."""


@dataclass(frozen=True, slots=True)
class CachePrices:
    """Multiples of the input price."""

    read: float
    write: float
    input_usd_per_mtok: float = 0.0
    summary_tokens: float = 0.0
    """What writing one summary costs beside reading the context, in input tokens."""


@dataclass(frozen=True, slots=True)
class Economy:
    """What compacting at one point costs against another. Tokens, and dollars where the price is known."""

    best_trigger_tokens: int
    tokens_per_call_at_trigger: float
    tokens_per_call_at_best: float
    usd_per_10_calls_at_trigger: float | None
    usd_per_10_calls_at_best: float | None


def best_trigger(added_tokens: float, kept_tokens: float, prices: CachePrices) -> int:
    """T*: the context size at which compacting costs least in the long run."""
    if prices.read <= 0:
        raise ValueError(f"the price of a cache read must be above 0, got {prices.read}")
    once = prices.write * kept_tokens + prices.summary_tokens
    return round(kept_tokens + math.sqrt(2 * added_tokens * once / prices.read))


def cost_per_call(trigger_tokens: float, added_tokens: float, kept_tokens: float, prices: CachePrices) -> float:
    """Average price of a call, in input tokens, when the context is compacted at `trigger_tokens`."""
    if trigger_tokens <= kept_tokens:
        raise ValueError("a trigger must lie above what a compaction keeps")
    read = prices.read * (kept_tokens + trigger_tokens) / 2
    once = prices.write * kept_tokens + prices.summary_tokens
    rebuilt = added_tokens * once / (trigger_tokens - kept_tokens)
    return read + rebuilt + added_tokens * prices.write


def economy(
    trigger_tokens: int, added_tokens: float, kept_tokens: float, floor_tokens: int, prices: CachePrices
) -> Economy:
    """Today's trigger against the cheapest. `floor_tokens` is what keeps the current task whole."""
    best = min(trigger_tokens, max(best_trigger(added_tokens, kept_tokens, prices), floor_tokens))
    best = max(best, round(kept_tokens) + 1)
    now = cost_per_call(max(trigger_tokens, round(kept_tokens) + 1), added_tokens, kept_tokens, prices)
    then = cost_per_call(best, added_tokens, kept_tokens, prices)
    return Economy(best, now, then, _usd(now, prices), _usd(then, prices))


def calls_to_pay_back(cleared_tokens: int, tokens_behind: int, prices: CachePrices) -> float:
    """After how many requests clearing from a warm cache pays: what follows the edit must be written anew once."""
    if cleared_tokens <= 0:
        return math.inf
    return (prices.write - prices.read) / prices.read * tokens_behind / cleared_tokens


def _usd(tokens_per_call: float, prices: CachePrices) -> float | None:
    if not prices.input_usd_per_mtok:
        return None
    return tokens_per_call * CALLS_PER_PROJECTION * prices.input_usd_per_mtok / 1_000_000
