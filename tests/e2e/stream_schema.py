"""JSON Schemas of every line a headless run writes. Fields may be added, so none forbids others."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

TEXT: dict[str, Any] = {"type": "string"}
NAME: dict[str, Any] = {"type": "string", "minLength": 1}
FLAG: dict[str, Any] = {"type": "boolean"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": "number", "minimum": 0}
OBJECT: dict[str, Any] = {"type": "object"}
PARENT: dict[str, Any] = {"type": ["string", "null"]}
UUID: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
MODES: dict[str, Any] = {"enum": ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]}


def constant(value: str) -> dict[str, Any]:
    return {"const": value}


def array(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def shape(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def line(kind: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """A line of that type; every line says whose it is."""
    return shape({"type": constant(kind), **required, "session_id": UUID, "uuid": UUID}, optional)


def system(subtype: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return line("system", {"subtype": constant(subtype), **required}, optional)


USAGE = shape(
    {
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "cache_creation_input_tokens": COUNT,
        "cache_read_input_tokens": COUNT,
    }
)
BLOCK = {
    "type": "object",
    "required": ["type"],
    "oneOf": [
        shape({"type": constant("text"), "text": TEXT}),
        shape({"type": constant("thinking"), "thinking": TEXT, "signature": TEXT}),
        shape({"type": constant("tool_use"), "id": NAME, "name": NAME, "input": OBJECT}),
        shape({"type": constant("server_tool_use"), "id": NAME, "name": NAME, "input": OBJECT}),
        shape({"type": constant("redacted_thinking"), "data": TEXT}),
    ],
}
USER_BLOCK = {
    "type": "object",
    "oneOf": [
        shape({"type": constant("text"), "text": TEXT}),
        shape({"type": constant("image"), "source": OBJECT}),
        shape(
            {"type": constant("tool_result"), "tool_use_id": NAME},
            {"content": {"type": ["string", "array"]}, "is_error": FLAG},
        ),
    ],
}
ASSISTANT_MESSAGE = shape(
    {
        "id": TEXT,
        "type": constant("message"),
        "role": constant("assistant"),
        "model": NAME,
        "content": array(BLOCK),
        "stop_reason": {"type": ["string", "null"]},
        "stop_sequence": {"type": ["string", "null"]},
        "usage": USAGE,
    }
)
USER_MESSAGE = shape({"role": constant("user"), "content": array(USER_BLOCK)})
DENIAL = {"tool_name": NAME, "tool_use_id": NAME, "tool_input": OBJECT}
MODEL_USAGE = shape(
    {
        "inputTokens": COUNT,
        "outputTokens": COUNT,
        "cacheReadInputTokens": COUNT,
        "cacheCreationInputTokens": COUNT,
        "webSearchRequests": COUNT,
        "costUSD": NUMBER,
        "contextWindow": COUNT,
    }
)
SUMS = {
    "is_error": FLAG,
    "duration_ms": COUNT,
    "duration_api_ms": COUNT,
    "num_turns": COUNT,
    "stop_reason": {"type": ["string", "null"]},
    "total_cost_usd": NUMBER,
    "usage": USAGE,
    "modelUsage": {"type": "object", "additionalProperties": MODEL_USAGE},
    "permission_denials": array(shape(DENIAL)),
}
TERMINAL_REASON = {
    "enum": [
        "completed",
        "max_turns",
        "max_budget_usd",
        "max_structured_output_retries",
        "prompt_too_long",
        "blocking_limit",
        "aborted_streaming",
        "aborted_tools",
        "loop",
        "model_error",
        "api_error",
    ]
}
API_ERRORS = ["authentication_failed", "billing_error", "rate_limit", "invalid_request", "server_error", "unknown"]

LINES: dict[tuple[str, str | None], dict[str, Any]] = {
    ("system", "init"): system(
        "init",
        {
            "cwd": NAME,
            "tools": array(NAME),
            "mcp_servers": array(shape({"name": NAME, "status": NAME})),
            "model": NAME,
            "permissionMode": MODES,
            "slash_commands": array(NAME),
            "agents": array(NAME),
            "skills": array(NAME),
            "plugins": array(OBJECT),
            "apiKeySource": NAME,
            "output_style": NAME,
            "claude_code_version": NAME,
            "capabilities": array(NAME),
        },
    ),
    ("system", "status"): system("status", {"status": {"enum": ["compacting", None]}}, {"permissionMode": MODES}),
    ("system", "compact_boundary"): system(
        "compact_boundary",
        {
            "compact_metadata": shape(
                {
                    "trigger": {"enum": ["manual", "auto"]},
                    "pre_tokens": COUNT,
                    "post_tokens": COUNT,
                    "messages_summarized": COUNT,
                    "layer": NAME,
                    "summary_chars": COUNT,
                }
            )
        },
    ),
    ("system", "microcompact_boundary"): system(
        "microcompact_boundary",
        {
            "microcompact_metadata": shape(
                {"trigger": {"enum": ["auto"]}, "tokensSaved": COUNT, "compactedToolIds": array(NAME), "reason": NAME}
            )
        },
    ),
    ("system", "api_retry"): system(
        "api_retry",
        {
            "attempt": COUNT,
            "max_retries": COUNT,
            "retry_delay_ms": COUNT,
            "error_status": {"type": ["integer", "null"]},
            "error": NAME,
        },
    ),
    ("system", "permission_denied"): system("permission_denied", DENIAL),
    ("system", "informational"): system(
        "informational", {"content": NAME, "level": {"enum": ["info", "warning", "error"]}}
    ),
    ("assistant", None): line(
        "assistant", {"message": ASSISTANT_MESSAGE, "parent_tool_use_id": PARENT}, {"error": {"enum": API_ERRORS}}
    ),
    ("user", None): line(
        "user",
        {"message": USER_MESSAGE, "parent_tool_use_id": PARENT},
        {"tool_use_result": OBJECT, "isSynthetic": FLAG, "isReplay": FLAG},
    ),
    ("stream_event", None): line(
        "stream_event", {"event": shape({"type": NAME}), "parent_tool_use_id": PARENT}, {"ttft_ms": COUNT}
    ),
    ("tool_progress", None): line(
        "tool_progress",
        {"tool_use_id": NAME, "tool_name": NAME, "parent_tool_use_id": PARENT, "elapsed_time_seconds": NUMBER},
    ),
    ("control_request", None): line(
        "control_request",
        {
            "request_id": NAME,
            "request": shape(
                {"subtype": constant("can_use_tool"), "tool_name": NAME, "input": OBJECT, "tool_use_id": NAME},
                {"permission_suggestions": array(OBJECT)},
            ),
        },
    ),
    ("control_cancel_request", None): line("control_cancel_request", {"request_id": NAME}),
    ("control_response", None): line(
        "control_response",
        {
            "response": {
                "oneOf": [
                    shape({"subtype": constant("success"), "request_id": NAME}, {"response": OBJECT}),
                    shape({"subtype": constant("error"), "request_id": NAME, "error": NAME}),
                ]
            }
        },
    ),
    ("result", "success"): line(
        "result",
        {"subtype": constant("success"), "result": TEXT, **SUMS, "is_error": {"const": False}},
        {"terminal_reason": TERMINAL_REASON, "structured_output": {}},
    ),
} | {
    ("result", subtype): line(
        "result",
        {"subtype": constant(subtype), "errors": {**array(NAME), "minItems": 1}, **SUMS, "is_error": {"const": True}},
        {"terminal_reason": TERMINAL_REASON},
    )
    for subtype in (
        "error_max_turns",
        "error_during_execution",
        "error_max_budget_usd",
        "error_max_structured_output_retries",
    )
}
"""(type, subtype) → schema. `subtype` is None for lines that have none."""

_VALIDATORS = {key: Draft202012Validator(schema) for key, schema in LINES.items()}


def kind_of(written: dict[str, Any]) -> tuple[str, str | None]:
    return written["type"], written.get("subtype")


def faults(lines: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a run's lines: an unknown kind, a field that does not fit, an order that cannot be."""
    found = []
    for number, written in enumerate(lines, start=1):
        validator = _VALIDATORS.get(kind_of(written))
        if validator is None:
            found.append(f"line {number}: there is no line of kind {kind_of(written)}")
            continue
        found += [
            f"line {number} {kind_of(written)} {e.json_path}: {e.message}" for e in validator.iter_errors(written)
        ]
    uuids = [written.get("uuid") for written in lines]
    if len(set(uuids)) != len(uuids):
        found.append("two lines have the same uuid")
    return found
