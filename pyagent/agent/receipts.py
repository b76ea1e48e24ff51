"""A compaction's receipt in words, for `/compactions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyagent.log import Boundary

LAYER_WORDS: Mapping[str, str] = {
    "full": "summary by the model",
    "session_memory": "from the session's notes",
    "draft": "summary prepared in the background",
    "reactive": "after a refusal",
    "extractive": "extract, without a model",
    "server": "by the server",
}


def receipt_lines(number: int, at: datetime, boundary: Boundary) -> list[str]:
    """The lines of one compaction: what it did, what it cost, what stands behind it, and what was checked."""
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
