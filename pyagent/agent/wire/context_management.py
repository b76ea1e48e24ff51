"""Context management by the server: the edits asked for, what it reports to have done, and its signed summaries.

Edits are worked out anew by the server on every request and leave the history sent unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pyagent.agent.wire.stream import Response
from pyagent.messages import JsonObject

CONTEXT_MANAGEMENT_BETA = "context-management-2025-06-27"
CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"

READING_TOOLS = frozenset({"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"})
"""Their results can be had again: mode `results` clears these only."""
WRITING_TOOLS = frozenset({"Edit", "Write"})
"""Their inputs are the work itself: mode `uses` spares them."""
KEPT_TOOL_USES_COUNT = 5
TRIGGER_SHARE = 0.6
"""Of the auto-compact trigger: at or above the trigger itself the edit could never come first."""
KEPT_THINKING_TURNS_COLD_COUNT = 1


def context_edits(
    *,
    trigger_tokens: int,
    target_tokens: int,
    compact_trigger_tokens: int,
    mode: Literal["results", "uses"],
    tool_names: Iterable[str],
    supported: Iterable[str],
    is_cache_warm: bool,
    has_thinking: bool,
) -> JsonObject | None:
    """The `context_management` field, or None if the model supports none of it.

    `trigger_tokens` and `target_tokens` are the settings' figures, `compact_trigger_tokens` auto-compact's.
    """
    supported = frozenset(supported)
    edits: list[JsonObject] = []
    if has_thinking and CLEAR_THINKING in supported:
        kept: object = "all" if is_cache_warm else {"type": "thinking_turns", "value": KEPT_THINKING_TURNS_COLD_COUNT}
        edits.append({"type": CLEAR_THINKING, "keep": kept})
    if CLEAR_TOOL_USES in supported:
        trigger = min(trigger_tokens, int(TRIGGER_SHARE * compact_trigger_tokens))
        spared = [n for n in tool_names if (n not in READING_TOOLS if mode == "results" else n in WRITING_TOOLS)]
        clearing: JsonObject = {
            "type": CLEAR_TOOL_USES,
            "trigger": {"type": "input_tokens", "value": trigger},
            "keep": {"type": "tool_uses", "value": KEPT_TOOL_USES_COUNT},
            "clear_tool_inputs": mode == "uses",
        }
        least = trigger - target_tokens
        if least > 0:
            clearing["clear_at_least"] = {"type": "input_tokens", "value": least}
        if spared:
            clearing["exclude_tools"] = spared
        edits.append(clearing)
    return {"edits": edits} if edits else None


@dataclass(frozen=True, slots=True)
class AppliedEdits:
    """What the server left out of one request."""

    cleared_tool_uses_count: int = 0
    cleared_thinking_turns_count: int = 0
    cleared_tokens: int = 0

    @property
    def has_any(self) -> bool:
        return bool(self.cleared_tool_uses_count or self.cleared_thinking_turns_count or self.cleared_tokens)


def applied_edits(response: Response) -> AppliedEdits:
    """The edits a response reports, added up; unknown ones count by their tokens."""
    return AppliedEdits(
        sum(_count(edit, "cleared_tool_uses") for edit in response.applied_edits),
        sum(_count(edit, "cleared_thinking_turns") for edit in response.applied_edits),
        sum(_count(edit, "cleared_input_tokens") for edit in response.applied_edits),
    )


def compaction_field(instructions: str = "") -> JsonObject:
    """The `compaction` field asking for a summary of everything sent. Instructions replace the server's own."""
    return {"type": "summarize", "instructions": instructions} if instructions.strip() else {"type": "summarize"}


def summary_block(response: Response) -> JsonObject | None:
    """The signed summary a compaction request gave, to be sent back word for word as the first block; None if the
    server made none (its content is null then, mostly because the model called a tool)."""
    for raw in response.content:
        if raw.get("type") == "compaction" and raw.get("content"):
            return raw
    return None


def _count(edit: Mapping[str, object], name: str) -> int:
    value = edit.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
