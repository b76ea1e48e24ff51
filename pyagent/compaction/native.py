"""Layer 4, API-native context management (gate `api_context_management`): what a request asks the server to clear.

Source: context pipeline design, section 8; the shapes are the Messages API's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from pyagent.compaction.microcompact import COMPACTABLE_TOOLS
from pyagent.messages import JsonObject

KEEP_TOOL_USES = 5
TRIGGER_SHARE = 0.60
"""Of the auto-compact trigger: at or above the trigger itself, clearing could never happen before a compaction."""

ClearingMode: TypeAlias = Literal["results", "uses"]
_CHANGING_TOOLS = frozenset(("Edit", "Write"))


def context_management(
    *,
    api_trigger_tokens: int,
    api_target_tokens: int,
    auto_trigger_tokens: int,
    mode: ClearingMode,
    tool_names: Collection[str],
    is_cache_warm: bool,
    has_thinking: bool,
) -> JsonObject:
    """The request's `context_management` field.

    Mode `results` clears old results of the compactable tools; mode `uses` clears calls and results of all but the
    tools that change files. Thinking is kept whole while the cache is warm, and for one turn once it is cold.
    """
    trigger = min(api_trigger_tokens, int(auto_trigger_tokens * TRIGGER_SHARE))
    cleared = COMPACTABLE_TOOLS if mode == "results" else frozenset(tool_names) - _CHANGING_TOOLS
    edits: list[JsonObject] = []
    if has_thinking:
        keep: JsonObject | str = "all" if is_cache_warm else {"type": "thinking_turns", "value": 1}
        edits.append({"type": "clear_thinking_20251015", "keep": keep})
    edits.append(
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": trigger},
            "keep": {"type": "tool_uses", "value": KEEP_TOOL_USES},
            "clear_at_least": {"type": "input_tokens", "value": max(trigger - api_target_tokens, 1)},
            "exclude_tools": sorted(name for name in tool_names if name not in cleared),
            "clear_tool_inputs": mode == "uses",
        }
    )
    return {"edits": edits}
