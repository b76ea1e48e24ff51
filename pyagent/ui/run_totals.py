"""What a headless run adds up for its result: usage, cost, time at the API, rounds, and the calls that were refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyagent.messages import JsonObject, ToolUseBlock, Usage

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage_fields(usage: Usage) -> JsonObject:
    """The four counts every response has."""
    return {name: getattr(usage, name) for name in _COUNTS}


class RunTotals:
    """Sums over the whole run; durations and rounds over the prompt that is being answered. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._turn_started_s = clock()
        self._request_started_s: float | None = None
        self._api_s = 0.0
        self._usage: dict[str, int] = dict.fromkeys(_COUNTS, 0)
        self._by_model: dict[str, JsonObject] = {}
        self._web_searches = 0
        self.cost_usd = 0.0
        self.rounds = 0
        self.denials: list[JsonObject] = []

    def begin_turn(self) -> None:
        """A prompt goes out now."""
        self._turn_started_s, self._api_s, self.rounds = self._clock(), 0.0, 0

    def begin_request(self) -> None:
        self._request_started_s = self._clock()

    def end_request(self) -> None:
        if self._request_started_s is not None:
            self._api_s += self._clock() - self._request_started_s
            self._request_started_s = None

    def since_request_ms(self) -> int | None:
        """Since the request under way was made; None if there is none."""
        return None if self._request_started_s is None else round((self._clock() - self._request_started_s) * 1_000)

    def count(self, model: str, usage: Usage, cost_usd: float | None) -> None:
        """Add what one call used."""
        for name in _COUNTS:
            self._usage[name] += getattr(usage, name)
        searches = _web_searches(usage)
        self._web_searches += searches
        self.cost_usd += cost_usd or 0.0
        total = self._by_model.setdefault(
            model,
            {
                "inputTokens": 0,
                "outputTokens": 0,
                "cacheReadInputTokens": 0,
                "cacheCreationInputTokens": 0,
                "webSearchRequests": 0,
                "costUSD": 0.0,
            },
        )
        total["inputTokens"] += usage.input_tokens
        total["outputTokens"] += usage.output_tokens
        total["cacheReadInputTokens"] += usage.cache_read_input_tokens
        total["cacheCreationInputTokens"] += usage.cache_creation_input_tokens
        total["webSearchRequests"] += searches
        total["costUSD"] += cost_usd or 0.0

    def deny(self, use_id: str, use: ToolUseBlock | None) -> JsonObject | None:
        """Note a refused call; None if it was noted before."""
        if any(denial["tool_use_id"] == use_id for denial in self.denials):
            return None
        denial: JsonObject = {
            "tool_name": use.name if use else "",
            "tool_use_id": use_id,
            "tool_input": use.input if use else {},
        }
        self.denials.append(denial)
        return denial

    def fields(self, *, window_tokens: int) -> JsonObject:
        """The fields of a result that are sums."""
        usage: JsonObject = dict(self._usage)
        if self._web_searches:
            usage["server_tool_use"] = {"web_search_requests": self._web_searches}
        return {
            "duration_ms": round((self._clock() - self._turn_started_s) * 1_000),
            "duration_api_ms": round(self._api_s * 1_000),
            "total_cost_usd": self.cost_usd,
            "usage": usage,
            "modelUsage": {model: {**total, "contextWindow": window_tokens} for model, total in self._by_model.items()},
            "permission_denials": list(self.denials),
        }


def _web_searches(usage: Usage) -> int:
    server: Any = usage.raw.get("server_tool_use")
    count = server.get("web_search_requests") if isinstance(server, dict) else 0
    return count if isinstance(count, int) else 0
