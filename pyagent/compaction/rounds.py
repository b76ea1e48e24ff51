"""API rounds: the only places where a conversation may be cut.

A round is one response with all its blocks (one message id) and the results that answer it; what a person or pyagent
says before it opens it. A cut between rounds never parts a tool use from its result, nor a response from its thinking.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.log import AssistantEntry
from pyagent.messages import ToolResultBlock, ToolUseBlock
from pyagent.view import View, ViewItem


@dataclass(frozen=True, slots=True)
class Round:
    """The items from `start` to before `end`."""

    start: int
    end: int
    is_complete: bool
    """Whether a response came and each of its tool uses is answered."""


def api_rounds(view: View) -> tuple[Round, ...]:
    """The view's rounds, in order, without gaps."""
    items = view.items
    if not items:
        return ()
    inside = _positions_inside_a_pair(view)
    starts: list[int] = []
    has_response = False
    message_id = ""
    for position, item in enumerate(items):
        if item.is_user:
            opens = has_response and not _carries_results(item)
        else:
            own_id = _message_id(item)
            opens = has_response and (not own_id or own_id != message_id)
        if (opens or position == 0) and position not in inside:
            starts.append(position)
            has_response = False
        if not item.is_user:
            has_response, message_id = True, _message_id(item)
    return tuple(
        Round(start, end, _is_complete(view, start, end))
        for start, end in zip(starts, [*starts[1:], len(items)], strict=True)
    )


def complete_end(view: View) -> int:
    """Where the last complete round ends: what comes after (a prompt that waits, an open tool loop) stays behind."""
    rounds = api_rounds(view)
    end = len(view)
    for a_round in reversed(rounds):
        if a_round.is_complete:
            return end
        end = a_round.start
    return 0


def _is_complete(view: View, start: int, end: int) -> bool:
    has_response = False
    for item in view.items[start:end]:
        if item.is_user:
            continue
        has_response = True
        for block in item.blocks():
            if isinstance(block, ToolUseBlock) and view.result_position(block.id) is None:
                return False
    return has_response


def _positions_inside_a_pair(view: View) -> frozenset[int]:
    """Positions before which a cut would part a use from its result, or the entries of one response."""
    inside: set[int] = set()
    first_of_message: dict[str, int] = {}
    for position, item in enumerate(view.items):
        if item.is_user:
            for block in item.user_blocks():
                if isinstance(block, ToolResultBlock):
                    use = view.tool_use(block.tool_use_id)
                    if use is not None and use.position < position:
                        inside.update(range(use.position + 1, position + 1))
        elif message_id := _message_id(item):
            first = first_of_message.setdefault(message_id, position)
            if first < position:
                inside.update(range(first + 1, position + 1))
    return frozenset(inside)


def _carries_results(item: ViewItem) -> bool:
    return any(isinstance(block, ToolResultBlock) for block in item.user_blocks())


def _message_id(item: ViewItem) -> str:
    entry = item.record.payload
    return entry.message_id if isinstance(entry, AssistantEntry) else ""
