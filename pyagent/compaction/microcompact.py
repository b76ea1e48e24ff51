"""Layer 1, time-based: after a long pause the cache is cold anyway, so old tool results are cleared.

The newest results stay word for word, and so do tool uses, error results, and results of tools whose output exists
nowhere else. What is cleared says how to get it back.

Source: context pipeline design, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyagent.compaction.context import Sizer
from pyagent.log import ClearResults
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock
from pyagent.view import View

COMPACTABLE_TOOLS = frozenset(("Read", "Bash", "PowerShell", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"))
"""Tools whose results can be had again. Memory, plan, skill and MCP results can not, so they are never cleared."""

CLEARED = "[Old tool result content cleared]"


@dataclass(frozen=True, slots=True)
class Clearing:
    """A proposed edit: which results, and what they will read as."""

    op: ClearResults
    idle_s: float


def clear_cold_results(
    view: View, sizer: Sizer, *, now: datetime, gap_minutes: float, keep_recent: int
) -> Clearing | str:
    """The old results to clear after a pause of at least `gap_minutes`, or why there is nothing to do.

    `keep_recent` (at least 1) counts the newest results that stay.
    """
    idle_s = view.idle_s(now)
    if idle_s < gap_minutes * 60:
        return f"the last response is {idle_s / 60:.0f} min old, less than {gap_minutes:g} min"
    placeholders = placeholders_for(view, clearable(view)[: -max(keep_recent, 1)])
    kept = {use_id: text for use_id, text in placeholders.items() if _saves(view, use_id, text, sizer)}
    if not kept:
        return "no old tool result is worth clearing"
    op = ClearResults(kept, reason=f"a pause of {idle_s / 60:.0f} min" if gap_minutes else "cheaper than a summary")
    freed = sizer.whole(view) - sizer.whole(view.with_op(op))
    if freed <= 0:
        return "no old tool result is worth clearing"
    return Clearing(ClearResults(kept, op.reason, freed), idle_s)


def clearable(view: View) -> tuple[str, ...]:
    """Ids of the tool uses whose results may be cleared, in the order the results came."""
    ids: list[str] = []
    for item in view.items:
        if not item.is_user:
            continue
        for block in item.user_blocks():
            if not isinstance(block, ToolResultBlock) or block.is_error or not block.content:
                continue
            use = view.tool_use(block.tool_use_id)
            if use is None or use.block.name not in COMPACTABLE_TOOLS or view.is_cleared(block.tool_use_id):
                continue
            ids.append(block.tool_use_id)
    return tuple(ids)


def placeholders_for(view: View, use_ids: tuple[str, ...]) -> dict[str, str]:
    """What the results of these uses read as once cleared."""
    uses = ((use_id, view.tool_use(use_id)) for use_id in use_ids)
    return {use_id: f"{CLEARED} {_way_back(use.block)}" for use_id, use in uses if use is not None}


def _way_back(use: ToolUseBlock) -> str:
    path = use.input.get("file_path") or use.input.get("path")
    match use.name:
        case "Read" if isinstance(path, str):
            return f"Read {path} again if you need it."
        case "Edit" | "Write" if isinstance(path, str):
            return f"The change to {path} was made; Read it to see the file as it is."
        case "Bash" | "PowerShell":
            return f"Recall gives its output back: id {use.id}."
        case _:
            return f"Recall gives it back: id {use.id}."


def _saves(view: View, use_id: str, placeholder: str, sizer: Sizer) -> bool:
    block = view.result_block(use_id)
    if block is None:
        return False
    if not all(isinstance(part, TextBlock) for part in block.content):
        return True
    return len(block.text) > len(placeholder) and sizer.text(block.text) > sizer.text(placeholder)
