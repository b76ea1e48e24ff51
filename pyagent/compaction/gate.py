"""One gate for all edits of history: snip, clearing and collapse change old messages together or not at all.

An edit costs the cached prefix and the signed thinking behind it, so it waits for a moment when that is cheap: the
cache is cold, or much comes free at once.

Source: architecture, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.messages import ToolResultBlock
from pyagent.view import View

MIN_FREED_TOKENS = 20_000
"""With a warm cache, an edit that frees less costs more than it saves for dozens of requests."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    is_open: bool
    reason: str


def may_edit_history(view: View, *, is_cache_warm: bool, freed_tokens: int) -> GateDecision:
    """Whether old messages may be edited now, given what all proposed edits together would free."""
    if view.open_tool_uses() or _is_in_tool_loop(view):
        return GateDecision(False, "a tool loop is open")
    if freed_tokens <= 0:
        return GateDecision(False, "nothing would come free")
    if not is_cache_warm:
        return GateDecision(True, "the prompt cache is cold")
    if freed_tokens >= MIN_FREED_TOKENS:
        return GateDecision(True, f"{freed_tokens:,} tokens come free at once")
    return GateDecision(False, f"the prompt cache is warm and only {freed_tokens:,} tokens would come free")


def _is_in_tool_loop(view: View) -> bool:
    """Whether the model has yet to see the results that stand last."""
    if not view.items or not view.items[-1].is_user:
        return False
    return any(isinstance(block, ToolResultBlock) for block in view.items[-1].user_blocks())
