"""The text and data of `/context`: what fills the window, where the lines are drawn, what each layer did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pyagent.compaction.context import Sizer
from pyagent.compaction.economy import Economy
from pyagent.compaction.thresholds import Thresholds
from pyagent.events import GaugeFacts, Report
from pyagent.log import Boundary, ClearResults, CompactionFailed, Fold, Record, Snip, UserEntry
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
    block_to_wire,
)
from pyagent.pages import CacheState
from pyagent.settings import Gates
from pyagent.view import View, ViewItem

GRID_CELLS = 60
"""Cells of the bar: one line at 80 columns, each a little under two percent."""


@dataclass(frozen=True, slots=True)
class ContextFacts:
    view: View
    gauge: GaugeFacts
    thresholds: Thresholds
    model: str
    system_tokens: int
    tool_tokens: Mapping[str, int]
    """Tokens of each tool's declaration."""
    branch: Sequence[Record]
    gates: Gates
    cache: CacheState
    is_disabled: bool = False
    """`DISABLE_COMPACT`: no gate has any effect."""
    economy: Economy | None = None
    policy: str = "window"
    failures: Sequence[CompactionFailed] = ()
    extra_lines: Sequence[str] = ()


def context_report(facts: ContextFacts, sizer: Sizer, *, is_full: bool) -> Report:
    """`is_full` lists the largest items one by one."""
    gauge, lines = facts.gauge, []
    overhead = {"system prompt": facts.system_tokens, "tool declarations": sum(facts.tool_tokens.values())}
    listed = shared_out(gauge.used_tokens, overhead | content_parts(facts.view, sizer))
    mark = "~" if gauge.is_estimate else ""
    lines.append(
        f"{facts.model} · {mark}{gauge.used_tokens:,} of {gauge.window_tokens:,} tokens "
        f"({gauge.used_tokens / gauge.window_tokens:.1%}) · {_left(gauge)} · {gauge.state}"
    )
    lines += [_bar(gauge), "", "By kind (estimated shares)"]
    total = max(gauge.used_tokens, 1)
    lines += [f"  {name:<22} {tokens:>9,}  {tokens / total:>6.1%}" for name, tokens in listed if tokens]
    lines += [f"  {'together':<22} {gauge.used_tokens:>9,}", ""]
    lines += _threshold_lines(facts)
    lines += _economy_lines(facts)
    lines += ["", f"Prompt cache: {_cache_text(facts.cache)}", ""]
    lines += _history_lines(facts)
    lines += [
        "",
        "Gates: " + ", ".join(f"{f.name} {'on' if getattr(facts.gates, f.name) else 'off'}" for f in fields(Gates)),
    ]
    lines += facts.extra_lines
    if is_full:
        lines += ["", "Largest items", *_largest_lines(facts.view, sizer)]
        lines += ["", "Tools", *(f"  {name:<22} {n:>7,}" for name, n in sorted(facts.tool_tokens.items()))]
    return Report("Context", "\n".join(lines), _data(facts, listed, sizer))


def shared_out(total: int, estimates: Mapping[str, int]) -> list[tuple[str, int]]:
    """The count that decides, shared out in proportion to the local estimates, so that the parts add up to it.

    System prompt and tools come first, then the rest, largest first.
    """
    whole = max(sum(estimates.values()), 1)
    shares: list[tuple[str, int]] = []
    given = estimated = 0
    for name, tokens in estimates.items():
        estimated += tokens
        share = total * estimated // whole - given
        given += share
        shares.append((name, share))
    return [*shares[:2], *sorted(shares[2:], key=lambda pair: -pair[1])]


def content_parts(view: View, sizer: Sizer) -> Counter[str]:
    """Tokens of the view's messages by kind."""
    parts: Counter[str] = Counter()
    for item in view:
        frame = sizer.item(view, item)
        for block in (*item.blocks(), *item.answer_blocks()):
            tokens = _block_tokens(block, sizer)
            parts[content_kind(item, block, view)] += tokens
            frame -= tokens
        parts[_unmeasured_kind(item)] += max(frame, 0)
    return parts


def _unmeasured_kind(item: ViewItem) -> str:
    """What an item's tokens are that its texts do not account for."""
    blocks = [
        part
        for block in (*item.blocks(), *item.answer_blocks())
        for part in (block.content if isinstance(block, ToolResultBlock) else (block,))
    ]
    if any(isinstance(block, ImageBlock | DocumentBlock) for block in blocks):
        return "images and documents"
    if any(isinstance(block, ThinkingBlock | RedactedThinkingBlock) for block in blocks):
        return "thinking"
    return "message frames"


def content_kind(item: ViewItem, block: Block, view: View) -> str:
    match block:
        case ToolResultBlock(tool_use_id=use_id):
            ref = view.tool_use(use_id)
            return f"{ref.block.name} results" if ref is not None else "tool results"
        case ToolUseBlock():
            return "tool calls"
        case ThinkingBlock() | RedactedThinkingBlock():
            return "thinking"
        case ImageBlock() | DocumentBlock():
            return "images and documents"
        case TextBlock() if isinstance(item.entry, UserEntry):
            names = {"prompt": "your messages", "summary": "summary", "attachment": "attachments"}
            if item.entry.label.startswith("memory"):
                return "memory files"
            return names.get(item.entry.origin, "notes to the model")
        case TextBlock():
            return "answers"
        case _:
            return "other"


def _block_tokens(block: Block, sizer: Sizer) -> int:
    match block:
        case TextBlock(text=text):
            return sizer.text(text)
        case ToolResultBlock(content=content):
            return sum(_block_tokens(part, sizer) for part in content)
        case ImageBlock() | DocumentBlock() | ThinkingBlock() | RedactedThinkingBlock():
            return 0
        case _:
            return sizer.text(str(block_to_wire(block)))


def _cache_text(cache: CacheState) -> str:
    text = "cold" if cache.expires_in_s is None else f"warm for another {cache.expires_in_s / 60:.0f} min"
    return text + cache.remark


def _left(gauge: GaugeFacts) -> str:
    return f"{gauge.percent_left}% " + ("to compact" if gauge.is_auto_compact_on else "of the effective window left")


def _bar(gauge: GaugeFacts) -> str:
    filled = min(round(gauge.used_tokens / gauge.window_tokens * GRID_CELLS), GRID_CELLS)
    cells = ["█"] * filled + ["·"] * (GRID_CELLS - filled)
    for tokens, sign in ((gauge.warning_tokens, "w"), (gauge.error_tokens, "e"), (gauge.trigger_tokens, "|")):
        at = min(int(tokens / gauge.window_tokens * GRID_CELLS), GRID_CELLS - 1)
        if at >= filled:
            cells[at] = sign
    return "".join(cells)


def _threshold_lines(facts: ContextFacts) -> list[str]:
    lines = facts.thresholds
    return [
        "Lines",
        f"  {lines.explained()}",
        f"  warning {lines.warning:,} · error {lines.error:,} · "
        + (f"compacts at {lines.trigger:,}" if lines.is_auto_on else "does not compact by itself")
        + (f" · refuses prompts at {lines.blocking:,}" if lines.is_blocking_on else ""),
    ]


def _economy_lines(facts: ContextFacts) -> list[str]:
    found = facts.economy
    if found is None:
        return []
    now, best = found.usd_per_10_calls_at_trigger, found.usd_per_10_calls_at_best
    if now is None or best is None:
        return []
    if facts.policy == "economy":
        return [f"  policy economy: compacts at {found.best_trigger_tokens:,}, about ${best:.2f} per 10 calls"]
    return [
        f"  projected bill per 10 calls: ${now:.2f} when compacting at {facts.thresholds.trigger:,}, "
        f"${best:.2f} at {found.best_trigger_tokens:,} (policy economy)"
    ]


def _history_lines(facts: ContextFacts) -> list[str]:
    cleared = [r.payload for r in facts.branch if isinstance(r.payload, ClearResults) and not r.tx]
    snipped = [r.payload for r in facts.branch if isinstance(r.payload, Snip)]
    folded = [r.payload for r in facts.branch if isinstance(r.payload, Fold)]
    boundaries = [r.payload for r in facts.branch if isinstance(r.payload, Boundary)]
    lines = ["Layers"]
    for name, count, freed in (
        ("old results cleared", sum(len(op.placeholders) for op in cleared), sum(op.freed_tokens for op in cleared)),
        ("snipped", sum(len(op.uuids) for op in snipped), sum(op.freed_tokens for op in snipped)),
        ("folded", len(folded), sum(op.freed_tokens for op in folded)),
    ):
        if count:
            lines.append(f"  {name}: {count:,}, {freed:,} tokens freed")
    for boundary in boundaries:
        lines.append(
            f"  compacted ({boundary.layer}, {boundary.trigger}): "
            f"{boundary.pre_tokens:,} → {boundary.post_tokens:,} tokens"
        )
    reasons = Counter(failure.reason for failure in facts.failures if not failure.is_cancel)
    lines += [f"  failed {count}×: {reason}" for reason, count in reasons.most_common(3)]
    cancelled = sum(failure.is_cancel for failure in facts.failures)
    lines += [f"  cancelled: {cancelled}"] if cancelled else []
    return lines if len(lines) > 1 else ["Layers: none has done anything yet"]


def _largest_lines(view: View, sizer: Sizer) -> list[str]:
    sized = sorted(((sizer.item(view, item), item) for item in view), key=lambda pair: -pair[0])[:12]
    lines = []
    for tokens, item in sized:
        blocks = item.blocks()
        kind = content_kind(item, blocks[0], view) if blocks else "empty"
        words = " ".join(item.entry.text.split())[:50]
        lines.append(f"  {tokens:>7,}  {kind}{': ' + words if words else ''}")
    return lines


def _data(facts: ContextFacts, listed: Sequence[tuple[str, int]], sizer: Sizer) -> JsonObject:
    """In the field's common shape: categories with `used`, `free` and `buffer`."""
    gauge = facts.gauge
    categories: list[JsonObject] = [
        {"name": name, "tokens": tokens, "kind": "used"} for name, tokens in listed if tokens
    ]
    free = max(gauge.trigger_tokens - gauge.used_tokens, 0)
    categories.append({"name": "free space", "tokens": free, "kind": "free"})
    buffer = gauge.window_tokens - gauge.trigger_tokens
    categories.append({"name": "compaction buffer", "tokens": buffer, "kind": "buffer"})
    return {
        "model": facts.model,
        "total_tokens": gauge.used_tokens,
        "raw_max_tokens": gauge.window_tokens,
        "percentage": round(gauge.used_tokens / gauge.window_tokens * 100, 1),
        "over_limit": gauge.used_tokens > gauge.window_tokens,
        "categories": categories,
        "memory_files": _memory_files(facts.view, sizer),
        "mcp_tools": [
            {"name": name, "tokens": tokens} for name, tokens in facts.tool_tokens.items() if name.startswith("mcp__")
        ],
        "agents": [],
        "skills": [],
    }


def _memory_files(view: View, sizer: Sizer) -> list[JsonObject]:
    sizes: dict[str, int] = {}
    for item in view:
        if isinstance(item.entry, UserEntry) and item.entry.label.startswith("memory:"):
            sizes[item.entry.label.removeprefix("memory:")] = sizer.item(view, item)
    return [{"path": path, "tokens": tokens} for path, tokens in sizes.items()]
