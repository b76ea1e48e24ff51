"""The facts of `/context` for a screen: parts, items, how the lines are drawn, gates, layers, cache, bill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields

from pyagent.agent.context_report import ContextFacts, content_kind, content_parts, shared_out
from pyagent.compaction.context import Sizer
from pyagent.compaction.thresholds import Thresholds
from pyagent.log import Boundary, ClearResults, Fold, Snip
from pyagent.messages import ToolResultBlock, ToolUseBlock
from pyagent.pages import (
    Bill,
    ContextItem,
    ContextLine,
    ContextPage,
    ContextPart,
    GateState,
    LayerWork,
)
from pyagent.settings import Gates
from pyagent.view import View, ViewItem

LARGEST_COUNT = 8
"""Results and messages named one by one; `/context all` names `LARGEST_COUNT_FULL` of them."""
LARGEST_COUNT_FULL = 40

_GROUPS: Mapping[str, str] = {
    "system prompt": "system",
    "tool declarations": "tools",
    "memory files": "memory",
    "your messages": "prompts",
    "answers": "answers",
    "tool calls": "calls",
    "thinking": "thinking",
    "summary": "summary",
    "images and documents": "media",
    "message frames": "frames",
}
"""Kind of content → what it is drawn as. Results end in `results`; everything else is a note to the model."""


def group_of(kind: str) -> str:
    return "results" if kind.endswith("results") else _GROUPS.get(kind, "notes")


def context_page(facts: ContextFacts, sizer: Sizer, *, is_full: bool, origins: Mapping[str, str]) -> ContextPage:
    """`is_full` names more single items. `origins`: setting → where its value comes from."""
    gauge = facts.gauge
    overhead = {"system prompt": facts.system_tokens, "tool declarations": sum(facts.tool_tokens.values())}
    listed = shared_out(gauge.used_tokens, overhead | content_parts(facts.view, sizer))
    return ContextPage(
        model=facts.model,
        used_tokens=gauge.used_tokens,
        is_estimate=gauge.is_estimate,
        window_tokens=gauge.window_tokens,
        trigger_tokens=gauge.trigger_tokens,
        is_auto_compact_on=gauge.is_auto_compact_on,
        percent_left=gauge.percent_left,
        state=gauge.state,
        parts=tuple(ContextPart(name, group_of(name), tokens) for name, tokens in listed if tokens),
        items=(
            *_memory_items(facts.view, sizer),
            *_tool_items(facts.tool_tokens, is_full=is_full),
            *_large_items(facts.view, sizer, LARGEST_COUNT_FULL if is_full else LARGEST_COUNT),
        ),
        arithmetic=_arithmetic(facts.thresholds),
        marks=_marks(facts.thresholds),
        gates=tuple(_gate(facts, gate.name, origins) for gate in fields(Gates)),
        layers=_layers(facts),
        cache=facts.cache,
        bill=_bill(facts),
        remarks=tuple(facts.extra_lines),
        is_full=is_full,
    )


def _memory_items(view: View, sizer: Sizer) -> Sequence[ContextItem]:
    sizes: dict[str, int] = {}
    for item in view:
        label = getattr(item.entry, "label", "")
        if label.startswith("memory:"):
            sizes[label.removeprefix("memory:")] = sizer.item(view, item)
    return [ContextItem("memory", path, tokens) for path, tokens in sizes.items()]


def _tool_items(tool_tokens: Mapping[str, int], *, is_full: bool) -> Sequence[ContextItem]:
    largest = sorted(tool_tokens.items(), key=lambda pair: -pair[1])
    shown = largest if is_full else largest[:5]
    items = [ContextItem("tools", name, tokens) for name, tokens in shown]
    left = largest[len(shown) :]
    if left:
        items.append(ContextItem("tools", f"{len(left)} more tools", sum(tokens for _, tokens in left)))
    return items


def _large_items(view: View, sizer: Sizer, count: int) -> Sequence[ContextItem]:
    sized = sorted(((sizer.item(view, item), item) for item in view), key=lambda pair: -pair[0])
    found = []
    for tokens, item in sized:
        blocks = item.blocks()
        kind = content_kind(item, blocks[0], view) if blocks else "message frames"
        if kind != "memory files":
            found.append(ContextItem(group_of(kind), kind, tokens, _words_of(item, view)))
    return found[:count]


def _words_of(item: ViewItem, view: View) -> str:
    """What tells the item apart: the call that a result answers, else the beginning of the text."""
    for block in item.blocks():
        if isinstance(block, ToolResultBlock) and (ref := view.tool_use(block.tool_use_id)) is not None:
            return _call_words(ref.block)
    return " ".join(item.entry.text.split())[:80]


def _call_words(use: ToolUseBlock) -> str:
    for name in ("file_path", "command", "pattern", "url", "notebook_path", "path"):
        if isinstance(value := use.input.get(name), str):
            return " ".join(value.split())[:80]
    return ""


def _arithmetic(lines: Thresholds) -> tuple[ContextLine, ...]:
    steps = [
        ContextLine("context window", lines.window),
        ContextLine("reserved for the summary's output", -lines.summary_reserve),
        ContextLine("effective window", lines.effective_window),
        ContextLine("buffer, so that the round in flight can finish", -lines.buffer),
    ]
    if lines.trigger_percent is not None:
        steps.append(ContextLine(f"lowered to {lines.trigger_percent:g}% of the effective window", lines.trigger))
    if lines.is_economy:
        steps.append(ContextLine("lowered to the cheapest point (policy economy)", lines.trigger))
    steps.append(
        ContextLine("compacts at" if lines.is_auto_on else "would compact at; automatic is off", lines.trigger)
    )
    return tuple(steps)


def _marks(lines: Thresholds) -> tuple[ContextLine, ...]:
    marks = [ContextLine("warning", lines.warning), ContextLine("error", lines.error)]
    if lines.is_auto_on:
        marks.append(ContextLine("trigger", lines.trigger))
    if lines.is_blocking_on:
        marks.append(ContextLine("blocking", lines.blocking))
    return tuple(sorted(marks, key=lambda mark: mark.tokens))


def _gate(facts: ContextFacts, name: str, origins: Mapping[str, str]) -> GateState:
    is_on = bool(getattr(facts.gates, name))
    why = origins.get(f"compaction.gates.{name}", "default")
    if is_on and facts.is_disabled:
        return GateState(name, False, f"all compaction is off ({origins.get('compaction.is_disabled', 'setting')})")
    if is_on and name == "reactive_only" and not facts.gates.reactive_compact:
        return GateState(name, False, "needs reactive_compact")
    return GateState(name, is_on, why)


def _layers(facts: ContextFacts) -> tuple[LayerWork, ...]:
    payloads = [
        record.payload for record in facts.branch if not isinstance(record.payload, ClearResults) or not record.tx
    ]
    cleared = [op for op in payloads if isinstance(op, ClearResults)]
    snipped = [op for op in payloads if isinstance(op, Snip)]
    folded = [op for op in payloads if isinstance(op, Fold)]
    layers = [
        LayerWork(
            "old results cleared",
            sum(len(op.placeholders) for op in cleared),
            sum(op.freed_tokens for op in cleared),
            cleared[-1].reason if cleared else "",
        ),
        LayerWork(
            "superseded rounds snipped", sum(len(op.uuids) for op in snipped), sum(op.freed_tokens for op in snipped)
        ),
        LayerWork("finished stretches folded", len(folded), sum(op.freed_tokens for op in folded)),
    ]
    layers += [
        LayerWork(
            f"compacted: {boundary.layer}, {boundary.trigger}",
            1,
            boundary.pre_tokens - boundary.post_tokens,
            f"{boundary.pre_tokens:,} → {boundary.post_tokens:,}",
        )
        for boundary in payloads
        if isinstance(boundary, Boundary)
    ]
    reasons = Counter(failure.reason for failure in facts.failures if not failure.is_cancel)
    layers += [LayerWork("compaction failed", count, 0, reason) for reason, count in reasons.most_common(3)]
    cancelled = sum(failure.is_cancel for failure in facts.failures)
    layers.append(LayerWork("compaction cancelled", cancelled, 0))
    return tuple(layer for layer in layers if layer.count)


def _bill(facts: ContextFacts) -> Bill | None:
    found = facts.economy
    if found is None or found.usd_per_10_calls_at_trigger is None or found.usd_per_10_calls_at_best is None:
        return None
    return Bill(
        found.usd_per_10_calls_at_trigger,
        found.best_trigger_tokens,
        found.usd_per_10_calls_at_best,
        facts.policy == "economy",
    )
