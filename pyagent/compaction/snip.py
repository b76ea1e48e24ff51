"""Snip (gate `history_snip`): rounds whose results a later identical call has made worthless leave the view.

A Read, Grep or Glob that was made again with the same input is superseded; so is a call that failed once the same call
has succeeded. Only rounds that hold nothing else go: words the model wrote, and prompts, always stay.
"""

from __future__ import annotations

import json

from pyagent.compaction.context import Sizer
from pyagent.compaction.rounds import api_rounds
from pyagent.log import Snip
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock, UnknownBlock
from pyagent.view import View

REPEATABLE_TOOLS = frozenset(("Read", "Grep", "Glob"))
"""Tools that change nothing, so that the newest answer stands for all before it."""


def snip_superseded(view: View, sizer: Sizer) -> Snip | str:
    """The entries that leave, always whole pairs, or why none do."""
    latest_success, latest_any = _latest_calls(view)
    gone: list[str] = []
    for a_round in api_rounds(view):
        if not a_round.is_complete:
            continue
        members = [
            item
            for item in view.items[a_round.start : a_round.end]
            if not item.is_user or any(isinstance(block, ToolResultBlock) for block in item.user_blocks())
        ]
        uses = [
            block for item in members if not item.is_user for block in item.blocks() if isinstance(block, ToolUseBlock)
        ]
        has_words = any(
            (isinstance(block, TextBlock) and block.text.strip()) or isinstance(block, UnknownBlock)
            for item in members
            for block in item.blocks()
        )
        superseded = all(_is_superseded(view, use, a_round.end, latest_success, latest_any) for use in uses)
        if uses and not has_words and superseded:
            gone.extend(item.uuid for item in members)
    if not gone:
        return "nothing is superseded"
    op = Snip(tuple(gone), reason="superseded by a later identical call")
    freed = sizer.whole(view) - sizer.whole(view.with_op(op))
    return Snip(op.uuids, op.reason, freed) if freed > 0 else "nothing would come free"


def _is_superseded(
    view: View, use: ToolUseBlock, end: int, latest_success: dict[str, int], latest_any: dict[str, int]
) -> bool:
    result = view.result_block(use.id)
    key = _call_key(use)
    if result is not None and result.is_error:
        return latest_success.get(key, -1) >= end
    return use.name in REPEATABLE_TOOLS and latest_success.get(key, -1) >= end and latest_any.get(key, -1) >= end


def _latest_calls(view: View) -> tuple[dict[str, int], dict[str, int]]:
    """Position of the last successful, and the last answered, call of each kind."""
    success: dict[str, int] = {}
    answered: dict[str, int] = {}
    for position, item in enumerate(view.items):
        if item.is_user:
            continue
        for block in item.blocks():
            if isinstance(block, ToolUseBlock) and (result := view.result_block(block.id)) is not None:
                answered[_call_key(block)] = position
                if not result.is_error and not view.is_cleared(block.id):
                    success[_call_key(block)] = position
    return success, answered


def _call_key(use: ToolUseBlock) -> str:
    return use.name + json.dumps(use.input, sort_keys=True, default=str)
