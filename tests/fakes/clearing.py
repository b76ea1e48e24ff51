"""The server-side edits: what `context_management` leaves of a request for the model to read."""

from typing import Any

from tests.fakes.binding import blocks_of
from tests.fakes.model_table import ModelSpec
from tests.fakes.tokens import TokenCounter

Json = dict[str, Any]

PLACEHOLDER = "[tool result cleared]"
DEFAULT_TRIGGER_TOKENS = 100_000
DEFAULT_KEEP_COUNT = 3


def cleared_view(
    body: Json, input_tokens: int, model: ModelSpec, counter: TokenCounter, dropped: frozenset[str]
) -> tuple[Json, list[Json]]:
    """The request after its `clear_tool_uses` edit, and `applied_edits`; `dropped` are paths the model never sees."""
    applied: list[Json] = []
    for edit in body["context_management"]["edits"]:
        if edit["type"] == "clear_tool_uses_20250919":
            body, report = _clear_tool_uses(body, edit, input_tokens, model, counter, dropped)
            if report:
                applied.append(report)
    return body, applied


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
