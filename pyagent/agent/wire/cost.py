"""What a response cost, to the cent the bill will show, or None where a price is not known."""

from __future__ import annotations

from pyagent.agent.wire.catalogue import ModelInfo, Price, known_model, model_info
from pyagent.messages import Usage

WRITE_5M_FACTOR = 1.25
WRITE_1H_FACTOR = 2.0
"""A cache write costs this many times the input price, by the entry's lifetime."""
US_ONLY_FACTOR = 1.1
"""Inference kept in the US costs this many times the price."""
WEB_SEARCH_USD = 0.01
"""One web search by the server's own tool."""
TOKENS_PER_PRICE = 1_000_000


def cost_usd(model: str, usage: Usage, info: ModelInfo | None = None) -> float | None:
    """Dollars for one response of `model`; `info` stands in where the table does not know it.

    Where the server sampled several times, the passes are added up: the top-level counters leave out a compaction.
    """
    if usage.raw.get("speed") == "fast":
        return None
    passes = usage.raw.get("iterations")
    parts: list[float | None]
    if isinstance(passes, list) and passes:
        parts = [
            _pass_usd(str(item.get("model") or model), Usage.from_wire(item), info)
            for item in passes
            if isinstance(item, dict)
        ]
    else:
        parts = [_pass_usd(model, usage, info)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    factor = US_ONLY_FACTOR if usage.raw.get("inference_geo") == "us" else 1.0
    return sum(known) * factor + _searches(usage) * WEB_SEARCH_USD


def price_of(info: ModelInfo, prompt_tokens: int) -> Price | None:
    """The price list that holds for a request with this many prompt tokens, cached ones counted."""
    if info.long_prompt_price is not None and prompt_tokens > info.long_prompt_tokens:
        return info.long_prompt_price
    return info.price


def _pass_usd(model: str, usage: Usage, info: ModelInfo | None) -> float | None:
    # A fallback model may have answered, so the table's word on the model that did comes first.
    price = price_of(known_model(model) or info or model_info(model), usage.prompt_tokens)
    if price is None:
        return None
    if price.cache_read_usd is None and usage.cache_read_input_tokens:
        return None
    long_writes = min(usage.cache_creation_1h_tokens, usage.cache_creation_input_tokens)
    short_writes = usage.cache_creation_input_tokens - long_writes
    input_equivalents = usage.input_tokens + short_writes * WRITE_5M_FACTOR + long_writes * WRITE_1H_FACTOR
    dollars = (
        input_equivalents * price.input_usd
        + usage.output_tokens * price.output_usd
        + usage.cache_read_input_tokens * (price.cache_read_usd or 0.0)
    )
    return dollars / TOKENS_PER_PRICE


def _searches(usage: Usage) -> int:
    server_tools = usage.raw.get("server_tool_use")
    count = server_tools.get("web_search_requests") if isinstance(server_tools, dict) else 0
    return count if isinstance(count, int) else 0
