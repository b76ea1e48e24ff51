"""The shapes of a request: which fields exist where, and which beta header each needs."""

from collections.abc import Mapping
from typing import Any

from tests.fakes.refusal import Refusal

Json = dict[str, Any]

CONTEXT_MANAGEMENT_BETA = "context-management-2025-06-27"
THRESHOLD_COMPACTION_BETA = "compact-2026-01-12"
COMPACTION_BETA = "compact-2026-09-04"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
DISPLAY_UPDATES_BETA = "thinking-display-updates-2026-08-18"
TASK_BUDGET_BETA = "task-budgets-2026-03-13"
CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
MESSAGE_CONFIG_BETA = "mid-conversation-output-config-2026-07-01"
TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
FAST_MODE_BETA = "fast-mode-2026-02-01"

COUNT_FIELDS = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed"}
)
CREATE_FIELDS = COUNT_FIELDS | {
    "max_tokens",
    "stream",
    "stop_sequences",
    "metadata",
    "service_tier",
    "inference_geo",
    "container",
    "diagnostics",
}
BETA_FIELDS: Mapping[str, frozenset[str]] = {
    "context_management": frozenset({CONTEXT_MANAGEMENT_BETA, THRESHOLD_COMPACTION_BETA}),
    "compaction": frozenset({COMPACTION_BETA}),
}
"""Top-level fields that exist only with one of these `anthropic-beta` values."""
SAMPLING_FIELDS = frozenset({"temperature", "top_p", "top_k"})
"""Gone from API version 2026-10-21 on."""

SERVER_RESULTS = (
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
)
_MARK = frozenset({"cache_control"})
BLOCK_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"text"}), _MARK | {"citations"}),
    "image": (frozenset({"source"}), _MARK | {"transformations"}),
    "document": (frozenset({"source"}), _MARK | {"citations", "context", "title"}),
    "search_result": (frozenset({"content", "source", "title"}), _MARK | {"citations"}),
    "tool_reference": (frozenset({"tool_name"}), _MARK),
    "container_upload": (frozenset({"file_id"}), _MARK),
    "tool_use": (frozenset({"id", "name", "input"}), _MARK | {"caller"}),
    "tool_result": (frozenset({"tool_use_id"}), _MARK | {"content", "is_error"}),
    "server_tool_use": (frozenset({"id", "name", "input"}), _MARK | {"caller"}),
    **dict.fromkeys(SERVER_RESULTS, (frozenset({"tool_use_id", "content"}), _MARK | {"caller"})),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
    "compaction": (frozenset(), _MARK | {"content", "encrypted_content", "signature", "tool_changes"}),
    "tool_addition": (frozenset({"tool"}), _MARK),
    "tool_removal": (frozenset({"tool"}), _MARK),
}
"""Block type: (required fields, optional fields), `type` apart."""
ROLES_OF_BLOCK: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("image", "document", "search_result", "container_upload", "tool_result"), frozenset({"user"})),
    **dict.fromkeys(
        ("tool_use", "server_tool_use", *SERVER_RESULTS, "thinking", "redacted_thinking", "compaction"),
        frozenset({"assistant"}),
    ),
    **dict.fromkeys(("tool_addition", "tool_removal"), frozenset({"system"})),
    "tool_reference": frozenset(),
    "text": frozenset({"user", "assistant", "system"}),
}
RESULT_PARTS = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""What the content list of a tool_result may hold."""

_TOOL_OPTIONAL = _MARK | {
    "type",
    "description",
    "strict",
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
    "allowed_callers",
}


def extra(path: str) -> Refusal:
    """The refusal of a field that does not exist."""
    return Refusal(f"{path}: Extra inputs are not permitted")


def required(path: str) -> Refusal:
    """The refusal of a field that is missing."""
    return Refusal(f"{path}: Field required")


def check_keys(value: Json, path: str, needed: frozenset[str], optional: frozenset[str]) -> None:
    """Every needed field is there and no field is unknown."""
    for name in sorted(needed - value.keys()):
        raise required(f"{path}.{name}")
    for name in value:
        if name != "type" and name not in needed and name not in optional:
            raise extra(f"{path}.{name}")


def check_string(value: object, path: str) -> str:
    """The value, if it is a string."""
    if not isinstance(value, str):
        raise Refusal(f"{path}: Input should be a valid string")
    return value


def check_block(block: object, path: str) -> Json:
    """One content block of a known type: fields, types of fields, and its cache mark."""
    if not isinstance(block, dict):
        raise Refusal(f"{path}: Input should be a valid dictionary or object to extract fields from")
    kind = block.get("type")
    if not isinstance(kind, str):
        raise required(f"{path}.type")
    if kind not in BLOCK_FIELDS:
        tags = ", ".join(f"'{name}'" for name in BLOCK_FIELDS)
        raise Refusal(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}")
    where = f"{path}.{kind}"
    check_keys(block, where, *BLOCK_FIELDS[kind])
    for name in ("text", "thinking", "signature", "data", "id", "name", "tool_use_id", "title"):
        if name in block and not (kind == "document" and block[name] is None):
            check_string(block[name], f"{where}.{name}")
    check_mark(block.get("cache_control"), f"{where}.cache_control")
    if kind == "tool_use" and not isinstance(block["input"], dict):
        raise Refusal(f"{where}.input: Input should be a valid dictionary")
    if kind == "text" and block.get("cache_control") and not block["text"].strip():
        raise Refusal(f"{where}: cache_control cannot be set for empty text blocks")
    if kind == "tool_result":
        _check_result(block, path)
    return block


def _check_result(block: Json, path: str) -> None:
    content = block.get("content")
    if "is_error" in block and not isinstance(block["is_error"], bool):
        raise Refusal(f"{path}.tool_result.is_error: Input should be a valid boolean")
    if content is None or isinstance(content, str):
        parts: list[Any] = []
    elif isinstance(content, list):
        parts = content
    else:
        raise Refusal(f"{path}.tool_result.content: Input should be a valid list")
    for at, part in enumerate(parts):
        checked = check_block(part, f"{path}.tool_result.content.{at}")
        if checked["type"] not in RESULT_PARTS:
            tags = ", ".join(f"'{name}'" for name in sorted(RESULT_PARTS))
            raise Refusal(
                f"{path}.tool_result.content.{at}: Input tag '{checked['type']}' found using 'type' does not match"
                f" any of the expected tags: {tags}"
            )
    if block.get("is_error"):
        if not content:
            raise Refusal(f"{path}.tool_result: content cannot be empty if `is_error` is true")
        if any(part["type"] != "text" for part in parts):
            raise Refusal(f"{path}.tool_result: all content must be type `text` if `is_error` is true")


def check_mark(mark: object, path: str) -> None:
    """A cache mark is absent, null, or of type ephemeral with a lifetime the API offers."""
    if mark is None:
        return
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral":
        raise Refusal(f"{path}.type: Input should be 'ephemeral'")
    for name in mark.keys() - {"type", "ttl"}:
        raise extra(f"{path}.{name}")
    if mark.get("ttl", "5m") not in ("5m", "1h"):
        raise Refusal(f"{path}.ttl: Input should be '5m' or '1h'")


def check_tool(tool: object, path: str) -> str:
    """One client tool; gives its name. Server tools (a versioned `type`) need only a name."""
    if not isinstance(tool, dict):
        raise Refusal(f"{path}: Input should be a valid dictionary or object to extract fields from")
    name = check_string(tool.get("name"), f"{path}.name")
    check_mark(tool.get("cache_control"), f"{path}.cache_control")
    if tool.get("type") not in (None, "custom"):
        return name
    where = f"{path}.custom"
    check_keys(tool, where, frozenset({"name", "input_schema"}), _TOOL_OPTIONAL)
    if not (1 <= len(name) <= 64 and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)):
        raise Refusal(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    schema = tool["input_schema"]
    if not isinstance(schema, dict):
        raise Refusal(f"{where}.input_schema: Input should be a valid dictionary")
    if "type" not in schema:
        raise required(f"{where}.input_schema.type")
    if schema["type"] != "object":
        raise Refusal(f"{where}.input_schema.type: Input should be 'object'")
    if "description" in tool:
        check_string(tool["description"], f"{where}.description")
    return name


def check_edits(value: object, betas: frozenset[str]) -> None:
    """The shape of `context_management`."""
    where = "context_management"
    if not isinstance(value, dict):
        raise Refusal(f"{where}: Input should be a valid dictionary")
    check_keys(value, where, frozenset(), frozenset({"edits"}))
    edits = value.get("edits") or []
    for at, edit in enumerate(edits):
        path = f"{where}.edits.{at}"
        kind = edit.get("type")
        if kind not in _EDITS:
            tags = ", ".join(f"'{name}'" for name in _EDITS)
            raise Refusal(
                f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
            )
        if _EDITS[kind][0] not in betas:
            raise extra(where)
        check_keys(edit, f"{path}.{kind}", frozenset(), frozenset(_EDITS[kind][1]))
        for name, units in _EDITS[kind][1].items():
            if units and edit.get(name) is not None:
                _check_amount(edit[name], f"{path}.{kind}.{name}", units)
        if kind == "clear_thinking_20251015" and at > 0:
            raise Refusal(f"{where}: `clear_thinking_20251015` strategy must be first in the list of edits")
        if kind == "compact_20260112" and (edit.get("trigger") or {}).get("value", 150_000) < 50_000:
            raise Refusal(f"{path}.{kind}.trigger.value: Input should be greater than or equal to 50000")


_EDITS: Mapping[str, tuple[str, Mapping[str, frozenset[str]]]] = {
    "clear_tool_uses_20250919": (
        CONTEXT_MANAGEMENT_BETA,
        {
            "trigger": frozenset({"input_tokens", "tool_uses"}),
            "keep": frozenset({"tool_uses"}),
            "clear_at_least": frozenset({"input_tokens"}),
            "exclude_tools": frozenset(),
            "clear_tool_inputs": frozenset(),
        },
    ),
    "clear_thinking_20251015": (CONTEXT_MANAGEMENT_BETA, {"keep": frozenset({"thinking_turns", "all"})}),
    "compact_20260112": (
        THRESHOLD_COMPACTION_BETA,
        {"trigger": frozenset({"input_tokens"}), "instructions": frozenset(), "pause_after_compaction": frozenset()},
    ),
}
"""Edit type: (beta it needs, field: units of its `{type, value}` shape, none for other shapes)."""


def _check_amount(value: object, path: str, units: frozenset[str]) -> None:
    if "all" in units and value in ("all", {"type": "all"}):
        return
    allowed = ", ".join(f"'{unit}'" for unit in sorted(units))
    if not isinstance(value, dict) or value.get("type") not in units:
        raise Refusal(f"{path}.type: Input should be one of {allowed}")
    check_keys(value, path, frozenset({"value"}), frozenset())
    least = 1 if "thinking_turns" in units else 0
    if not isinstance(value["value"], int) or isinstance(value["value"], bool) or value["value"] < least:
        raise Refusal(f"{path}.value: Input should be greater than or equal to {least}")
