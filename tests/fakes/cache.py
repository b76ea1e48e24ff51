"""The prompt cache: entries written at breakpoints, found by walking back from them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.binding import blocks_of, canonical, digest
from tests.fakes.model_table import ModelSpec
from tests.fakes.tokens import TokenCounter

Json = dict[str, Any]

LOOK_BACK_BLOCKS = 20
"""How many blocks, the breakpoint's own included, a read walks back looking for an entry."""
TTL_S = {"5m": 300.0, "1h": 3_600.0}


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """How a request's input splits: the parts add up to all its input tokens."""

    fresh_tokens: int = 0
    read_tokens: int = 0
    written_5m_tokens: int = 0
    written_1h_tokens: int = 0

    @property
    def written_tokens(self) -> int:
        return self.written_5m_tokens + self.written_1h_tokens

    @property
    def total_tokens(self) -> int:
        return self.fresh_tokens + self.read_tokens + self.written_tokens


@dataclass(slots=True)
class CachePlan:
    """What a request would read and write; nothing is stored before `PromptCache.commit`."""

    usage: CacheUsage
    writes: list[tuple[str, float]] = field(default_factory=list)
    """Digest and lifetime in seconds of each entry to write or refresh."""
    started_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Step:
    """The prefix up to and including one block."""

    digest: str
    end_tokens: int
    ttl: str | None


@dataclass(slots=True)
class _Entry:
    expires_at_s: float
    ttl_s: float


def _exact(value: object) -> str:
    return json.dumps(canonical(value), separators=(",", ":"))


class PromptCache:
    """Entries by digest of (model, speed, prefix); `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def clear(self) -> None:
        """Forget everything, as when all entries expire."""
        self._entries.clear()

    def plan(self, body: Json, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]) -> CachePlan:
        """Split a request's input into read, written and fresh tokens. `dropped` are paths of blocks left out."""
        now_s = self._clock()
        steps = _steps(body, model, counter, dropped)
        total = steps[-1].end_tokens if steps else 0
        marks = [at for at, step in enumerate(steps) if step.ttl and step.end_tokens >= model.cache_minimum_tokens]
        if not marks:
            return CachePlan(CacheUsage(fresh_tokens=total), [], now_s)
        hit = max((found for mark in marks if (found := self._walk_back(steps, mark, now_s)) is not None), default=None)
        writes: list[tuple[str, float]] = []
        if hit is not None:
            writes.append((steps[hit].digest, self._entries[steps[hit].digest].ttl_s))
        read = steps[hit].end_tokens if hit is not None else 0
        long_end = read
        for mark in marks:
            step = steps[mark]
            writes.append((step.digest, TTL_S[step.ttl or "5m"]))
            if step.ttl == "1h":
                long_end = max(long_end, step.end_tokens)
        last = max(read, steps[marks[-1]].end_tokens)
        usage = CacheUsage(total - last, read, last - long_end, long_end - read)
        return CachePlan(usage, writes, now_s)

    def _walk_back(self, steps: list[_Step], mark: int, now_s: float) -> int | None:
        for at in range(mark, max(-1, mark - LOOK_BACK_BLOCKS), -1):
            entry = self._entries.get(steps[at].digest)
            if entry and entry.expires_at_s > now_s:
                return at
        return None

    def commit(self, plan: CachePlan) -> None:
        """Store a plan's entries: called when the response begins, lifetimes counted from the request's start."""
        for key, ttl_s in plan.writes:
            known = self._entries.get(key)
            if known and known.expires_at_s > plan.started_at_s:
                ttl_s = max(ttl_s, known.ttl_s)
            self._entries[key] = _Entry(plan.started_at_s + ttl_s, ttl_s)


def _steps(body: Json, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]) -> list[_Step]:
    rolling = digest(body["model"])
    end = 0
    steps: list[_Step] = []

    def step(text: str, tokens: int, mark: Json | None) -> None:
        nonlocal rolling, end
        rolling = digest(rolling, text)
        end += tokens
        steps.append(_Step(rolling, end, mark.get("ttl") or "5m" if mark else None))

    for tool in body.get("tools") or []:
        bare = {key: value for key, value in tool.items() if key != "cache_control"}
        step(_exact(tool), 0 if tool.get("defer_loading") else counter.json(bare), tool.get("cache_control"))
    rolling = digest(rolling, body.get("speed") or "standard")
    for block in blocks_of(body["system"]) if body.get("system") else []:
        step(_exact(block), counter.block(block, model), block.get("cache_control"))
    rolling = digest(rolling, _message_settings(body))
    automatic = body.get("cache_control")
    for at, message in enumerate(body["messages"]):
        for position, block in enumerate(blocks_of(message["content"])):
            if f"messages.{at}.content.{position}" in dropped:
                continue
            step(message["role"] + _exact(block), counter.block(block, model), block.get("cache_control"))
    if automatic and steps:
        last = steps[-1]
        steps[-1] = _Step(last.digest, last.end_tokens, last.ttl or automatic.get("ttl") or "5m")
    return steps


def _message_settings(body: Json) -> str:
    """What invalidates the cached messages, but neither tools nor system, when it changes."""
    thinking = body.get("thinking") or {}
    effort = (body.get("output_config") or {}).get("effort")
    mode = {key: thinking.get(key) for key in ("type", "budget_tokens")}
    return _exact([body.get("tool_choice"), mode, effort, _has_images(body["messages"])])


def _has_images(messages: list[Json]) -> bool:
    for message in messages:
        for block in blocks_of(message["content"]):
            inner = block.get("content")
            parts = [block, *(inner if isinstance(inner, list) else [])]
            if any(part.get("type") == "image" for part in parts):
                return True
    return False
