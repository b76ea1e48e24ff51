"""Brings what the fold says has changed to a transcript on the screen."""

from __future__ import annotations

from collections.abc import Iterable

from pyagent.ui.reduce import AllReplaced, BlockGone, BlockPut, Change, TextGrown
from pyagent.ui.transcript import Transcript

_FIELDS = ("kind", "text", "title", "detail", "state", "facts", "diff", "elapsed_s")
"""What a block may change; whether it is folded belongs to the reader."""


def apply_changes(transcript: Transcript, changes: Iterable[Change]) -> None:
    """Make the changes, in order."""
    for change in changes:
        _apply(transcript, change)


def _apply(transcript: Transcript, change: Change) -> None:
    match change:
        case BlockPut(block=block) if block.id in transcript:
            shown = transcript.block(block.id)
            changed = {name: getattr(block, name) for name in _FIELDS if getattr(block, name) != getattr(shown, name)}
            if changed:
                transcript.update(block.id, **changed)
        case BlockPut(block=block):
            transcript.append(block)
        case TextGrown(block_id=block_id, delta=delta):
            transcript.append_text(block_id, delta)
        case BlockGone(block_id=block_id):
            transcript.remove_block(block_id)
        case AllReplaced(blocks=blocks):
            transcript.load(blocks)
