"""A compaction's receipt in words, for `/compactions`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pyagent.log import AssistantEntry, Boundary, FileSeen, Record
from pyagent.messages import ToolUseBlock

LAYER_WORDS: Mapping[str, str] = {
    "full": "summary by the model",
    "session_memory": "from the session's notes",
    "draft": "summary prepared in the background",
    "reactive": "after a refusal",
    "extractive": "extract, without a model",
    "server": "by the server",
}


REREADS_WITHIN_CALLS = 15
"""Tool calls behind a boundary that are looked at: a file read again later is wanted for something new."""


def rereads(branch: Iterable[Record], boundary_seq: int) -> tuple[int, int]:
    """(reads of a file that was known before, tool calls) among the first calls behind a boundary: what a compaction
    took away that was still needed."""
    known: set[str] = set()
    read_again = calls = 0
    for record in branch:
        match record.payload:
            case FileSeen(path=path) if record.seq < boundary_seq:
                known.add(path)
            case AssistantEntry() as entry if record.seq > boundary_seq:
                for block in entry.blocks:
                    if isinstance(block, ToolUseBlock) and calls < REREADS_WITHIN_CALLS:
                        calls += 1
                        read_again += block.name == "Read" and block.input.get("file_path") in known
            case _:
                pass
    return read_again, calls


def receipt_lines(number: int, at: datetime, boundary: Boundary, reads: tuple[int, int] = (0, 0)) -> list[str]:
    """The lines of one compaction: what it did, what it cost, what stands behind it, what was checked, and how many
    files were read again behind it (`reads`, as `rereads` gives them)."""
    receipt = boundary.receipt
    freed = 1 - boundary.post_tokens / boundary.pre_tokens if boundary.pre_tokens else 0.0
    how = "by hand" if boundary.trigger == "manual" else "automatic"
    layer = LAYER_WORDS.get(boundary.layer, boundary.layer)
    lines = [
        f"{number}. {at:%Y-%m-%d %H:%M} UTC · {layer}, {how} · "
        f"{boundary.pre_tokens:,} → {boundary.post_tokens:,} tokens (−{freed:.0%})"
    ]
    lines.append(f"   {_calls(receipt)} · {float(receipt.get('duration_s') or 0):,.1f} s")
    if reason := receipt.get("fallback_reason"):
        lines.append(f"   no model wrote it: {reason}")
    if parts := receipt.get("parts"):
        sizes = sorted(parts.items(), key=lambda part: -part[1])
        lines.append("   behind it: " + ", ".join(f"{name} {tokens:,}" for name, tokens in sizes if tokens))
    lines.append(
        f"   {boundary.messages_summarized:,} messages summarised, {receipt.get('messages_kept', 0):,} kept; of your "
        f"words {receipt.get('prompts_kept', 0):,} messages kept, {receipt.get('prompts_elided', 0):,} left out"
    )
    lines += _listed("files read again", receipt.get("files_restored"))
    lines += _listed("named only, or first page", receipt.get("referenced"))
    anchors = receipt.get("anchors") or {}
    if anchors.get("checked"):
        lines.append(f"   checked: {anchors.get('text')}")
        lines += _listed("noted because the summary left it out", anchors.get("missing"))
    if reads[1]:
        lines.append(f"   afterwards: {reads[0]} of the first {reads[1]} calls read a file again")
    lines += _listed("the budget was broken by", receipt.get("contributors"))
    return lines


def _calls(receipt: Mapping[str, object]) -> str:
    calls, cost, share = receipt.get("calls"), receipt.get("cost_usd"), receipt.get("cached_share")
    if not calls:
        return "no call"
    price = f"${cost:.4f}" if isinstance(cost, int | float) else "price unknown"
    cached = f", {share:.0%} of the prompt from the cache" if isinstance(share, int | float) and share else ""
    return f"{calls} call{'s' if calls != 1 else ''}, {price}{cached}"


def _listed(words: str, items: object) -> list[str]:
    if not isinstance(items, Sequence) or isinstance(items, str) or not items:
        return []
    return [f"   {words}: {', '.join(str(item) for item in items)}"]
