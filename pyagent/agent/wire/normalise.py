"""What the API would refuse in any message, left out or put right: a pure look at one view item, never persisted.

The same item always gives the same blocks; a change here is a change of `RENDERER_VERSION`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pyagent.log import AssistantEntry, UserEntry
from pyagent.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    block_to_wire,
)
from pyagent.view import ViewItem

THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
_USER_ONLY = frozenset({"image", "document", "search_result", "tool_result", "container_upload"})
_ASSISTANT_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking", "compaction", "server_tool_use"})

OPENING_TEXT = "(The conversation before this point is not shown.)"
"""Stands first where the view begins with a response: the API wants a user message there."""
CONTINUE_TEXT = "Continue."
"""Stands last where the view ends with a finished response: the newer models refuse to go on from one."""
EMPTY_ERROR_TEXT = "(no output)"
"""Content of an error result that has none: only results that are no errors may be empty."""

_SAFE_ID = re.compile(r"[a-zA-Z0-9_-]+")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class NormalBlock:
    """A block as it may be sent."""

    wire: JsonObject
    index: int
    """Its place in the entry's content; -1 for blocks that are in no entry."""
    is_changed: bool = False
    """Whether it differs from what the entry holds."""
    pixels: tuple[int, int] = (0, 0)

    @property
    def kind(self) -> str:
        return str(self.wire.get("type", ""))

    @property
    def tool_id(self) -> str:
        """The id of a tool_use, or the one a tool_result answers; "" for other blocks."""
        value = self.wire.get("tool_use_id") if self.kind == "tool_result" else self.wire.get("id")
        return value if isinstance(value, str) and self.kind in ("tool_result", "tool_use") else ""


def safe_id(tool_id: str) -> str:
    """The id in the alphabet the API takes. Other servers number calls as they like (`functions.Bash:0`)."""
    if _SAFE_ID.fullmatch(tool_id):
        return tool_id
    mark = blake2b(tool_id.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_UNSAFE.sub('_', tool_id)}_{mark}"


def user_blocks(item: ViewItem) -> tuple[NormalBlock, ...]:
    """The blocks of a user item, in their order, as they may be sent."""
    blocks = item.user_blocks()
    entry = item.record.payload
    if item.overlay.folded_text is not None or not isinstance(entry, UserEntry):
        places = [-1] * len(blocks)
    else:
        places = [at for at in range(len(entry.content)) if at not in item.overlay.dropped_blocks]
    normal = (_user_block(block, at) for block, at in zip(blocks, places, strict=True))
    return tuple(block for block in normal if block is not None)


def answer_blocks(item: ViewItem) -> tuple[NormalBlock, ...]:
    """Results a repair made up for this assistant item."""
    return tuple(NormalBlock(_result(block), -1) for block in item.answer_blocks())


def assistant_blocks(item: ViewItem) -> tuple[NormalBlock, ...]:
    """The blocks of an assistant item as they may be sent, thinking included."""
    entry = item.record.payload
    assert isinstance(entry, AssistantEntry)
    normal = (
        _assistant_block(raw, at) for at, raw in enumerate(entry.content) if at not in item.overlay.dropped_blocks
    )
    return tuple(block for block in normal if block is not None)


def may_keep_thinking(item: ViewItem, blocks: tuple[NormalBlock, ...]) -> bool:
    """Whether the item's thinking could be sent at all: nothing before it in its own message was left out or changed,
    and something follows it (the API refuses a message that ends in thinking)."""
    if item.overlay.is_thinking_dropped or not blocks or blocks[-1].kind in THINKING_TYPES:
        return False
    last = max((position for position, block in enumerate(blocks) if block.kind in THINKING_TYPES), default=-1)
    return last >= 0 and all(
        block.index == position and not block.is_changed for position, block in enumerate(blocks[: last + 1])
    )


def is_blank(text: Any) -> bool:
    return not isinstance(text, str) or not text.strip()


def _user_block(block: Block, index: int) -> NormalBlock | None:
    match block:
        case TextBlock():
            return None if is_blank(block.text) else NormalBlock(block_to_wire(block), index)
        case ToolResultBlock():
            return NormalBlock(_result(block), index)
        case ImageBlock():
            return NormalBlock(block_to_wire(block), index, pixels=(block.width_px, block.height_px))
        case DocumentBlock():
            return NormalBlock(block_to_wire(block), index)
        case UnknownBlock():
            raw = {key: value for key, value in block.raw.items() if key != "cache_control"}
            is_out = not raw.get("type") or raw["type"] in _ASSISTANT_ONLY or _is_blank_text(raw)
            return None if is_out else NormalBlock(raw, index)
        case ToolUseBlock() | ThinkingBlock() | RedactedThinkingBlock():
            return None


def _result(block: ToolResultBlock) -> JsonObject:
    parts = [part for part in block.content if not (isinstance(part, TextBlock) and is_blank(part.text))]
    is_error = block.is_error
    if is_error and not parts:
        parts = [TextBlock(EMPTY_ERROR_TEXT)]
    elif is_error and not all(isinstance(part, TextBlock) for part in parts):
        # An error result may hold text only; what it shows matters more than the flag.
        is_error = False
    return block_to_wire(ToolResultBlock(safe_id(block.tool_use_id), tuple(parts), is_error))


def _assistant_block(raw: JsonObject, index: int) -> NormalBlock | None:
    kind = raw.get("type")
    if not isinstance(kind, str) or kind in _USER_ONLY or _is_blank_text(raw):
        return None
    wire = raw
    if "cache_control" in raw:
        wire = {key: value for key, value in raw.items() if key != "cache_control"}
    if kind == "tool_use":
        if not isinstance(raw.get("id"), str) or not isinstance(raw.get("name"), str):
            return None
        if safe_id(raw["id"]) != raw["id"]:
            wire = wire | {"id": safe_id(raw["id"])}
        if not isinstance(raw.get("input"), dict):
            wire = wire | {"input": {"INVALID_JSON": raw.get("input")}}
    return NormalBlock(wire, index, is_changed=wire is not raw)


def _is_blank_text(raw: JsonObject) -> bool:
    return raw.get("type") == "text" and is_blank(raw.get("text"))
