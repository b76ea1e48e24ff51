"""Images and documents that make a request too large in bytes leave the view, the oldest first."""

from __future__ import annotations

from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.outcome import Applied, Declined, LayerOutcome, MediaDropped, NewRecord
from pyagent.log import ClearResults, Fold, Repair
from pyagent.messages import DocumentBlock, ImageBlock, TextBlock, ToolResultBlock
from pyagent.view import View, ViewItem

DROP_SHARE = 0.5
"""Of the media, at least one: a refusal says that it is too much, not by how much."""

DROPPED_TEXT = "[An image or document stood here; it was dropped because the request had grown too large.]"


def drop_oldest_media(ctx: PipelineContext, sizer: Sizer) -> LayerOutcome:
    """Take the older half of all images and documents out of the view."""
    carriers = [item for item in ctx.view.items if item.is_user and _media_count(item)]
    total = sum(_media_count(item) for item in carriers)
    if not total:
        return Declined("the request is too large in bytes, and there is no image to drop", is_failure=True)
    goal = max(int(total * DROP_SHARE), 1)
    ops: list[ClearResults | Repair | Fold] = []
    dropped = 0
    for item in carriers:
        if dropped >= goal:
            break
        dropped += _media_count(item)
        ops.extend(_without_media(item))
    before = sizer.whole(ctx.view)
    view: View = ctx.view
    for op in ops:
        view = view.with_op(op)
    facts = MediaDropped(dropped, before - sizer.whole(view))
    return Applied(tuple(NewRecord(ctx.ports.new_uuid(), op) for op in ops), facts)


def _media_count(item: ViewItem) -> int:
    count = 0
    for block in item.user_blocks():
        if isinstance(block, ImageBlock | DocumentBlock):
            count += 1
        elif isinstance(block, ToolResultBlock):
            count += sum(isinstance(part, ImageBlock | DocumentBlock) for part in block.content)
    return count


def _without_media(item: ViewItem) -> list[ClearResults | Repair | Fold]:
    ops: list[ClearResults | Repair | Fold] = []
    results = {
        block.tool_use_id: "\n".join(part for part in (block.text, DROPPED_TEXT) if part)
        for block in item.user_blocks()
        if isinstance(block, ToolResultBlock) and any(isinstance(p, ImageBlock | DocumentBlock) for p in block.content)
    }
    if results:
        ops.append(ClearResults(results, reason="the request was too large"))
    entry = item.entry
    places = [
        f"{item.uuid}/{index}"
        for index, block in enumerate(entry.content)
        if isinstance(block, ImageBlock | DocumentBlock) and index not in item.overlay.dropped_blocks
    ]
    has_more = any(
        isinstance(block, ToolResultBlock) or (isinstance(block, TextBlock) and block.text.strip())
        for block in item.user_blocks()
    )
    if places and has_more:
        ops.append(Repair("the request was too large", dropped_blocks=tuple(places)))
    elif places:
        ops.append(Fold((item.uuid,), DROPPED_TEXT))
    return ops
