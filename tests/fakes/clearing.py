"""The server-side edits: what `context_management` leaves of a request for the model to read."""

from dataclasses import dataclass
from typing import Any

from tests.fakes.binding import blocks_of
from tests.fakes.model_table import ModelSpec
from tests.fakes.tokens import TokenCounter

Json = dict[str, Any]

PLACEHOLDER = "[tool result cleared]"
DEFAULT_TRIGGER_TOKENS = 100_000
DEFAULT_KEEP_COUNT = 3


@dataclass(frozen=True, slots=True)
class ClearedView:
    """A request after its edits."""

    body: Json
    dropped: frozenset[str]
    """Paths of blocks the model never sees."""
    applied: list[Json]
    """`applied_edits` of the response."""


def cleared_view(
    body: Json, input_tokens: int, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]
) -> ClearedView:
    """The request after its clearing edits; `dropped` are paths left out already."""
    applied: list[Json] = []
    for edit in body["context_management"]["edits"]:
        report: Json | None = None
        if edit["type"] == "clear_tool_uses_20250919":
            body, report = _clear_tool_uses(body, edit, input_tokens, model, counter, dropped)
        elif edit["type"] == "clear_thinking_20251015":
            dropped, report = _clear_thinking(body, edit, model, counter, dropped)
        if report:
            applied.append(report)
    return ClearedView(body, dropped, applied)


def _clear_thinking(
    body: Json, edit: Json, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]
) -> tuple[frozenset[str], Json | None]:
    """Without `keep`, current models keep all thinking."""
    keep = edit.get("keep")
    if not isinstance(keep, dict) or keep["type"] != "thinking_turns":
        return dropped, None
    turns: list[dict[str, int]] = []
    for at, message in enumerate(body["messages"]):
        thinking = {
            path: counter.block(block, model)
            for position, block in enumerate(blocks_of(message["content"]))
            if block.get("type") in ("thinking", "redacted_thinking")
            and (path := f"messages.{at}.content.{position}") not in dropped
        }
        if thinking:
            turns.append(thinking)
    cleared = turns[: -keep["value"]]
    if not cleared:
        return dropped, None
    paths = {path: tokens for turn in cleared for path, tokens in turn.items()}
    report = {
        "type": edit["type"],
        "cleared_thinking_turns": len(cleared),
        "cleared_input_tokens": sum(paths.values()),
    }
    return dropped | paths.keys(), report


def _clear_tool_uses(
    body: Json, edit: Json, input_tokens: int, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]
) -> tuple[Json, Json | None]:
    names = {
        block["id"]: block["name"]
        for message in body["messages"]
        for block in blocks_of(message["content"])
        if block.get("type") == "tool_use"
    }
    trigger = edit.get("trigger") or {"type": "input_tokens", "value": DEFAULT_TRIGGER_TOKENS}
    reached = input_tokens if trigger["type"] == "input_tokens" else len(names)
    if reached <= trigger["value"]:
        return body, None
    keep = (edit.get("keep") or {}).get("value", DEFAULT_KEEP_COUNT)
    kept = set(list(names)[len(names) - keep :]) if keep else set()
    spared = set(edit.get("exclude_tools") or [])
    clearable = {tool_id for tool_id, name in names.items() if tool_id not in kept and name not in spared}
    inputs = edit.get("clear_tool_inputs") or []
    freed = cleared = 0
    messages: list[Json] = []
    for at, message in enumerate(body["messages"]):
        blocks = []
        for position, block in enumerate(blocks_of(message["content"])):
            smaller = block
            if block.get("tool_use_id") in clearable:
                smaller = {**block, "content": PLACEHOLDER}
                cleared += 1
            elif block.get("id") in clearable and (inputs is True or (inputs and block["name"] in inputs)):
                smaller = {**block, "input": {}}
            if f"messages.{at}.content.{position}" not in dropped:
                freed += counter.block(block, model) - counter.block(smaller, model)
            blocks.append(smaller)
        messages.append({**message, "content": blocks})
    least = (edit.get("clear_at_least") or {}).get("value", 0)
    if not cleared or freed < least:
        return body, None
    report = {"type": edit["type"], "cleared_tool_uses": cleared, "cleared_input_tokens": freed}
    return {**body, "messages": messages}, report
