"""Everything the API refuses before a model sees the request, apart from the prefix check."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tests.fakes.binding import blocks_of, open_loop_index
from tests.fakes.fields import (
    BETA_FIELDS,
    BINDING_BETA,
    COUNT_FIELDS,
    CREATE_FIELDS,
    DISPLAY_UPDATES_BETA,
    FAST_MODE_BETA,
    SAMPLING_FIELDS,
    TASK_BUDGET_BETA,
    check_block,
    check_edits,
    check_mark,
    check_tool,
    extra,
    required,
)
from tests.fakes.history import check_messages
from tests.fakes.model_table import EFFORTS, ModelSpec, ModelTable
from tests.fakes.persona import Persona
from tests.fakes.refusal import Refusal

Json = dict[str, Any]

API_VERSIONS = frozenset({"2023-06-01", "2026-10-21"})
SAMPLING_REMOVED_VERSION = "2026-10-21"
MAX_CACHE_MARKS = 4

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


def check_credentials(headers: Mapping[str, str], persona: Persona, api_key: str | None) -> None:
    """A key where the persona reads one, and the right one if the server was given one."""
    bearer = headers.get("authorization", "")
    bearer_key = bearer[len("bearer ") :].strip() if bearer.lower().startswith("bearer ") else ""
    header_key = headers.get("x-api-key", "")
    keys = {
        "none": {"unused"},
        "any": {bearer_key, header_key},
        "bearer": {bearer_key},
        "x-api-key": {header_key},
    }[persona.auth] - {""}
    if not keys:
        raise Refusal("x-api-key header is required", status=401, type="authentication_error")
    if persona.auth != "none" and api_key is not None and api_key not in keys:
        raise Refusal("invalid x-api-key", status=401, type="authentication_error")


def check_version(headers: Mapping[str, str], persona: Persona) -> None:
    """First-party requests name an API version that exists."""
    if not persona.is_first_party:
        return
    version = headers.get("anthropic-version")
    if version is None:
        raise Refusal("anthropic-version: header is required")
    if version not in API_VERSIONS:
        raise Refusal(f'anthropic-version: "{version}" is not a valid version')


def parse_body(raw: bytes) -> Json:
    """The request body as JSON; lone surrogates and invalid UTF-8 are not JSON to the API."""
    try:
        text = raw.decode("utf-8")
        body = json.loads(text)
    except UnicodeDecodeError as error:
        raise Refusal(f"The request body is not valid JSON: {error.reason} (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise Refusal(f"The request body is not valid JSON: {error}") from error
    if _SURROGATE_ESCAPE.search(raw):
        for string in _strings(body):
            if any("\ud800" <= char <= "\udfff" for char in string):
                at = next(match.start() for match in _SURROGATE_ESCAPE.finditer(raw))
                raise Refusal(
                    "The request body is not valid JSON: no low surrogate in string:"
                    f" line 1 column {at + 1} (char {at})"
                )
    if not isinstance(body, dict):
        raise Refusal("Input should be a valid dictionary or object to extract fields from")
    return body


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)


def betas_of(headers: Mapping[str, str]) -> frozenset[str]:
    """The values of `anthropic-beta`."""
    return frozenset(part.strip() for part in headers.get("anthropic-beta", "").split(",") if part.strip())


def check_request(
    body: Json,
    headers: Mapping[str, str],
    persona: Persona,
    models: ModelTable,
    *,
    counting: bool,
    issued_unknown: Collection[str],
) -> ModelSpec:
    """Check fields, model and history; gives the model.

    Raises:
        Refusal: naming the first rule broken.
    """
    betas = betas_of(headers)
    if persona.refuses_unknown_fields:
        _check_fields(body, headers, persona, betas, counting=counting)
    for name in ("model", "messages") if counting else ("model", "messages", "max_tokens"):
        if name not in body:
            raise required(name)
    model = models.find(body["model"])
    if model is None:
        raise Refusal(f"model: {body['model']}", status=404, type="not_found_error")
    if not persona.checks_history:
        if not body["messages"]:
            raise Refusal("messages is required")
        return model
    names = _check_tools(body.get("tools"))
    _check_marks(body)
    check_messages(
        body["messages"],
        model,
        betas,
        has_tools=bool(names),
        takes_system_role=persona.takes_system_role,
        is_compacting=body.get("compaction") is not None,
        issued_unknown=issued_unknown,
    )
    if not counting:
        _check_max_tokens(body["max_tokens"], model)
    _check_thinking(body, model, betas)
    _check_tool_choice(body, model, names)
    _check_output_config(body, betas)
    return model


def _check_fields(
    body: Json, headers: Mapping[str, str], persona: Persona, betas: frozenset[str], *, counting: bool
) -> None:
    for name in persona.refused_fields:
        outer, _, inner = name.partition(".")
        value = body.get(outer)
        if value is not None and (not inner or (isinstance(value, dict) and inner in value)):
            raise extra(f"{outer}.{value.get('type', 'adaptive')}.{inner}" if inner else outer)
    known = COUNT_FIELDS if counting else CREATE_FIELDS
    dated = headers.get("anthropic-version") == SAMPLING_REMOVED_VERSION or counting
    for name in body:
        if name in BETA_FIELDS:
            if not BETA_FIELDS[name] & betas:
                raise extra(name)
        elif name in SAMPLING_FIELDS:
            if dated:
                raise extra(name)
        elif name not in known:
            raise extra(name)
    if body.get("context_management") is not None:
        check_edits(body["context_management"], betas)
    if body.get("compaction") is not None:
        _check_compaction(body)
    if body.get("speed") == "fast" and FAST_MODE_BETA not in betas:
        raise extra("speed")


def _check_compaction(body: Json) -> None:
    for name in body["compaction"].keys() - {"type", "instructions"}:
        raise extra(f"compaction.{name}")
    if body["compaction"].get("type") != "summarize":
        raise Refusal("compaction.type: Input should be 'summarize'")
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    clashing = {
        "context_management": body.get("context_management"),
        "stop_sequences": body.get("stop_sequences"),
        "output_config.format": (body.get("output_config") or {}).get("format"),
        "tool_choice": forced,
    }
    for name, value in clashing.items():
        if value:
            raise Refusal(f"compaction: cannot be combined with `{name}`")


def _check_tools(tools: object) -> frozenset[str]:
    if tools is None:
        return frozenset()
    if not isinstance(tools, list):
        raise Refusal("tools: Input should be a valid list")
    names = [check_tool(tool, f"tools.{at}") for at, tool in enumerate(tools)]
    if len(set(names)) != len(names):
        raise Refusal("tools: Tool names must be unique.")
    return frozenset(names)


def _check_marks(body: Json) -> None:
    system = body.get("system")
    for at, block in enumerate(system if isinstance(system, list) else []):
        checked = check_block(block, f"system.{at}")
        if checked["type"] != "text":
            raise Refusal(f"system.{at}.type: Input should be 'text'")
        if not checked["text"].strip():
            raise Refusal("system: text content blocks must be non-empty")
    check_mark(body.get("cache_control"), "cache_control")
    marks: list[tuple[str, Json]] = []
    for name in ("tools", "system"):
        value = body.get(name)
        for at, block in enumerate(value if isinstance(value, list) else []):
            if block.get("cache_control"):
                marks.append((f"{name}.{at}", block["cache_control"]))
    messages = body["messages"] if isinstance(body["messages"], list) else []
    last_mark: Json | None = None
    for at, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        for position, block in enumerate(content if isinstance(content, list) else []):
            last_mark = block.get("cache_control") if isinstance(block, dict) else None
            if last_mark:
                marks.append((f"messages.{at}.content.{position}", last_mark))
    automatic = body.get("cache_control")
    if automatic and not last_mark:
        marks.append(("messages", automatic))
    elif automatic and last_mark and last_mark.get("ttl", "5m") != automatic.get("ttl", "5m"):
        raise Refusal("cache_control: the last block already has a cache_control with a different ttl")
    if len(marks) > MAX_CACHE_MARKS:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    seen_short = False
    for path, mark in marks:
        if mark.get("ttl") == "1h" and seen_short:
            raise Refusal(
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'"
                " cache_control block. Note that blocks are processed in the following order:"
                " `tools`, `system`, `messages`."
            )
        seen_short = seen_short or mark.get("ttl", "5m") == "5m"


def _check_max_tokens(value: object, model: ModelSpec) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refusal("max_tokens: Input should be a valid integer")
    if value < 0:
        raise Refusal("max_tokens: Input should be greater than or equal to 0")
    if value > model.max_output_tokens:
        raise Refusal(
            f"max_tokens: {value} > {model.max_output_tokens}, which is the maximum allowed number of output tokens"
            f" for {model.id}"
        )


_THINKING_FIELDS = {
    "adaptive": {"display"},
    "enabled": {"budget_tokens", "display"},
    "disabled": set[str](),
    "between_tools": {"display"},
}


def _check_thinking(body: Json, model: ModelSpec, betas: frozenset[str]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    if kind not in _THINKING_FIELDS:
        tags = ", ".join(f"'{name}'" for name in sorted(_THINKING_FIELDS))
        raise Refusal(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    fields = {"type"} | _THINKING_FIELDS[kind]
    if BINDING_BETA in betas and kind in ("adaptive", "between_tools"):
        fields.add("block_binding")
    for name in thinking.keys() - fields:
        raise extra(f"thinking.{kind}.{name}")
    _check_thinking_type(kind, body, model)
    displays = {None, "summarized", "omitted"} | ({"updates"} if DISPLAY_UPDATES_BETA in betas else set())
    if thinking.get("display") not in displays:
        raise Refusal(f"thinking.{kind}.display: Input should be 'summarized' or 'omitted'")
    behaviour = (thinking.get("block_binding") or {}).get("prefix_mismatch_behavior")
    if behaviour not in (None, "error", "drop_block"):
        raise Refusal(
            f"thinking.{kind}.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"
        )
    if kind == "enabled":
        _check_manual_thinking(body, thinking)


def _check_thinking_type(kind: str, body: Json, model: ModelSpec) -> None:
    if kind not in model.thinking_types:
        if kind == "adaptive":
            raise Refusal("adaptive thinking is not supported on this model")
        instead = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        raise Refusal(f'"thinking.type.{kind}" is not supported for this model. {instead}')
    effort = (body.get("output_config") or {}).get("effort")
    if kind == "disabled" and model.id == "claude-opus-5" and effort in ("xhigh", "max"):
        raise Refusal('"thinking.type.disabled" is not supported for this model at this effort.')


def _check_manual_thinking(body: Json, thinking: Json) -> None:
    budget = thinking.get("budget_tokens")
    if budget is None:
        raise required("thinking.enabled.budget_tokens")
    if not isinstance(budget, int) or budget < 1_024:
        raise Refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if body.get("max_tokens", budget + 1) <= budget:
        raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Refusal("Thinking may not be enabled when tool_choice forces tool use.")
    at = open_loop_index(body["messages"])
    if at is None:
        return
    first = blocks_of(body["messages"][at]["content"])[0]["type"]
    if first not in ("thinking", "redacted_thinking"):
        raise Refusal(
            f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`."
            " When `thinking` is enabled, a final `assistant` message must start with a thinking block"
            " (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _check_tool_choice(body: Json, model: ModelSpec, names: frozenset[str]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none"):
        raise Refusal(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags:"
            " 'auto', 'any', 'tool', 'none'"
        )
    allowed = {"type", "disable_parallel_tool_use"} if kind != "none" else {"type"}
    for name in choice.keys() - allowed - ({"name"} if kind == "tool" else set()):
        raise extra(f"tool_choice.{kind}.{name}")
    if not names and kind != "none":
        raise Refusal("tool_choice may only be specified while providing tools.")
    if kind in ("any", "tool") and not model.accepts_forced_tool_choice:
        raise Refusal('tool_choice: type "tool" and "any" are not supported for this model.')
    if kind == "tool" and choice.get("name") not in names:
        raise Refusal(f"Tool '{choice.get('name')}' not found in provided tools")


def _check_output_config(body: Json, betas: frozenset[str]) -> None:
    config = body.get("output_config")
    if config is None:
        return
    known = {"effort", "format"} | ({"task_budget"} if TASK_BUDGET_BETA in betas else set())
    for name in config.keys() - known:
        raise extra(f"output_config.{name}")
    if config.get("effort") not in (None, *EFFORTS):
        raise Refusal("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
