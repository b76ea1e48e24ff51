"""Layer 1, cached: tell the server to drop old tool results while its cached prefix survives (gate
`cached_microcompact`).

This module decides *what* to drop, in batches; an adapter per provider says *how*. No public endpoint takes such an
instruction, so for the first-party API it becomes API-native clearing, and only a server declared to take
`cache_edits` ever sees that field. The state is a value: pending edits are consumed when a request was answered and
stay pending when it failed before a response.

Source: context pipeline design, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pyagent.compaction.cached_state import CachedEdits, EditBatch
from pyagent.compaction.context import Sizer
from pyagent.compaction.microcompact import clearable
from pyagent.compaction.rounds import api_rounds
from pyagent.messages import JsonObject
from pyagent.view import View

TRIGGER_COUNT = 40
"""Live results above which the oldest are dropped."""
KEEP_RECENT = 10
PROTECTED_TOKENS = 40_000
"""Of the newest tool results, never dropped."""
PROTECTED_ROUNDS = 2
MIN_BATCH_TOKENS = 20_000
"""A batch frees at least this: dropping one more result with each request would break the cache each time."""
TRIGGER_SHARE = 0.60
"""Of the auto-compact trigger: where a server that clears by itself begins, well before a compaction is due."""


class ClearingAdapter(Protocol):
    """How one provider is told to drop results."""

    def request_fields(self, edits: CachedEdits) -> JsonObject:
        """What to add to the request's body; empty for a provider that takes nothing."""
        ...

    def explanation(self) -> str:
        """One line for `/context`."""
        ...


@dataclass(frozen=True, slots=True)
class NativeClearing:
    """The first-party API: its own clearing, in steps as large as the batches."""

    trigger_tokens: int

    def request_fields(self, edits: CachedEdits) -> JsonObject:
        if not edits.dropped_ids:
            return {}
        edit = {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": self.trigger_tokens},
            "keep": {"type": "tool_uses", "value": KEEP_RECENT},
            "clear_at_least": {"type": "input_tokens", "value": MIN_BATCH_TOKENS},
            "clear_tool_inputs": False,
        }
        return {"context_management": {"edits": [edit]}}

    def explanation(self) -> str:
        return f"the server clears old results in steps of {MIN_BATCH_TOKENS:,} tokens (API-native)"


@dataclass(frozen=True, slots=True)
class CacheEditing:
    """A server declared to take `cache_edits`."""

    def request_fields(self, edits: CachedEdits) -> JsonObject:
        batches = [{"at": b.anchor_uuid, "drop": list(b.tool_use_ids), "new": False} for b in edits.sent]
        if edits.pending:
            batches.append({"at": edits.pending.anchor_uuid, "drop": list(edits.pending.tool_use_ids), "new": True})
        return {"cache_edits": batches} if batches else {}

    def explanation(self) -> str:
        return "the server drops old results from its cache on request"


@dataclass(frozen=True, slots=True)
class NoClearing:
    """Any other server."""

    def request_fields(self, edits: CachedEdits) -> JsonObject:
        return {}

    def explanation(self) -> str:
        return "this server takes no instruction to drop cached results"


def queue_edits(view: View, edits: CachedEdits, sizer: Sizer) -> CachedEdits | str:
    """The edits with a new pending batch, or why there is none."""
    if edits.pending is not None:
        return "a batch is waiting to be sent"
    dropped = edits.dropped_ids
    live = [use_id for use_id in clearable(view) if use_id not in dropped]
    if len(live) <= TRIGGER_COUNT:
        return f"{len(live)} live results, {TRIGGER_COUNT} allowed"
    rounds = api_rounds(view)
    protected_from = rounds[-PROTECTED_ROUNDS].start if len(rounds) >= PROTECTED_ROUNDS else 0
    sizes = {use_id: _result_tokens(view, use_id, sizer) for use_id in live}
    newest_tokens = 0
    candidates = live[:-KEEP_RECENT]
    for use_id in reversed(live):
        newest_tokens += sizes[use_id]
        position = view.result_position(use_id)
        is_protected = newest_tokens <= PROTECTED_TOKENS or position is None or position >= protected_from
        if is_protected and use_id in candidates:
            candidates.remove(use_id)
    freed = sum(sizes[use_id] for use_id in candidates)
    if freed < MIN_BATCH_TOKENS:
        return f"only {freed:,} tokens would come free, {MIN_BATCH_TOKENS:,} are worth a batch"
    last_prompt = view.last_prompt
    anchor = last_prompt.uuid if last_prompt else view.items[-1].uuid
    return replace(edits, pending=EditBatch(anchor, tuple(candidates)))


def freed_by(view: View, edits: CachedEdits, sizer: Sizer) -> int:
    """Tokens that all edits together keep out of the server's view."""
    return sum(_result_tokens(view, use_id, sizer) for use_id in edits.dropped_ids)


def _result_tokens(view: View, use_id: str, sizer: Sizer) -> int:
    block = view.result_block(use_id)
    return sizer.text(block.text) if block else 0
