"""Turns an answer into the message and the event stream a client receives."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.binding import Chain
from tests.fakes.cache import CacheUsage
from tests.fakes.model_table import ModelSpec
from tests.fakes.persona import Persona
from tests.fakes.script import Answer, Block, Compaction, Point, RawBlock, RedactedThinking, Text, Thinking, ToolUse
from tests.fakes.tokens import TokenCounter

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """One SSE event. `tokens` is what pacing charges for it."""

    name: str
    data: Json
    tokens: int = 0

    def encode(self) -> bytes:
        """The bytes on the wire. Text goes out as raw UTF-8, so U+2028 and U+0085 stay within their line."""
        try:
            payload = json.dumps(self.data, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            payload = json.dumps(self.data, separators=(",", ":")).encode()
        return b"event: " + self.name.encode() + b"\ndata: " + payload + b"\n\n"


@dataclass(slots=True)
class Rendered:
    """A reply ready to send."""

    message: Json
    events: list[Event]
    usage: Json
    """The usage billed, whatever the answer pretends."""
    issued_unknown: list[str] = field(default_factory=list)

    def index_of(self, point: Point) -> int:
        """How many events come before the point."""
        if point.kind == "headers":
            return 0
        if point.kind == "events":
            return min(point.count, len(self.events))
        if point.kind == "end":
            return len(self.events) - 1
        name = "content_block_delta" if point.kind == "deltas" else "content_block_stop"
        wanted = point.count if point.kind == "deltas" else point.count + 1
        seen = 0
        for at, event in enumerate(self.events):
            if seen == wanted:
                return at
            seen += event.name == name
        return len(self.events) - 1


@dataclass(frozen=True, slots=True)
class Context:
    """What rendering needs to know about the request."""

    body: Json
    model: ModelSpec
    persona: Persona
    counter: TokenCounter
    chain: Chain
    cache_usage: CacheUsage
    message_id: str
    next_tool_id: Callable[[], str]
    transformations: list[Json] | None
    applied_edits: list[Json] | None


@dataclass(frozen=True, slots=True)
class _Shown:
    """One block: as it starts, its deltas, as a client keeps it, and what it costs."""

    start: Json
    deltas: tuple[Json, ...]
    final: Json
    tokens: int
    is_whole: bool = True


def _pieces(value: str, chars: int) -> list[str]:
    if not value:
        return []
    return [value[at : at + chars] for at in range(0, len(value), chars)] if chars > 0 else [value]


def thinking_is_on(body: Json, model: ModelSpec) -> bool:
    """Whether the reply may hold thinking."""
    kind = (body.get("thinking") or {}).get("type")
    return model.thinks_by_default if kind is None else kind != "disabled"


def render(answer: Answer, context: Context) -> Rendered:
    """Cut the answer to the token limits, sign its thinking and lay out its events."""
    body, model = context.body, context.model
    on = not context.persona.is_first_party or thinking_is_on(body, model)
    wanted = [block for block in answer.blocks if on or not isinstance(block, Thinking | RedactedThinking)]
    room = model.window_tokens - context.cache_usage.total_tokens
    limit = min(body.get("max_tokens", room), room)
    total_thinking = sum(isinstance(block, Thinking | RedactedThinking) for block in wanted)
    shown: list[_Shown] = []
    output = thinking_tokens = ordinal = 0
    cut: str | None = None
    for block in wanted:
        item = _show(block, answer, context, ordinal, total_thinking, limit - output)
        if item is None:
            cut = "max_tokens"
            break
        shown.append(item)
        output += item.tokens
        if isinstance(block, Thinking | RedactedThinking):
            thinking_tokens += item.tokens
            ordinal += 1
        if not item.is_whole:
            cut = "max_tokens"
            break
    if cut and limit == room < body.get("max_tokens", room + 1):
        cut = "model_context_window_exceeded"
    billed = _usage(context.cache_usage, max(output, 1), thinking_tokens, context.persona)
    if any(isinstance(block, Compaction) for block in answer.blocks):
        billed = _compaction_usage(billed)
    message = {
        "id": context.message_id,
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [item.final for item in shown],
        "stop_reason": _stop_reason(answer, context.persona, cut),
        "stop_sequence": answer.stop_sequence,
        **({"stop_details": answer.stop_details} if answer.stop_details else {}),
        **answer.extra,
    }
    told = {**billed, **(answer.usage or {})}
    if answer.sends_usage and context.persona.sends_usage:
        message["usage"] = told
    if context.transformations is not None:
        message["input_transformations"] = context.transformations
    edits = list(answer.applied_edits) if answer.applied_edits is not None else context.applied_edits
    if edits is not None:
        message["context_management"] = {"applied_edits": edits}
    unknown = [
        json.dumps(item.final, sort_keys=True)
        for block, item in zip(wanted, shown, strict=False)
        if isinstance(block, RawBlock)
    ]
    return Rendered(message, _events(message, shown, answer, context.persona), billed, unknown)


def _show(block: Block, answer: Answer, context: Context, ordinal: int, total: int, room_tokens: int) -> _Shown | None:
    """The block within `room_tokens`, or None if nothing of it fits."""
    if room_tokens <= 0:
        return None
    counter, chars, chain = context.counter, answer.delta_chars, context.chain
    room_chars = int(room_tokens * counter.bytes_per_token)
    match block:
        case Text(text=value):
            kept = value if counter.text(value) <= room_tokens else value[:room_chars]
            final: Json = {"type": "text", "text": kept}
            chain.add("assistant", final)
            deltas = tuple({"type": "text_delta", "text": piece} for piece in _pieces(kept, chars))
            return _Shown({"type": "text", "text": ""}, deltas, final, counter.text(kept), kept == value)
        case Thinking(text=value):
            return _show_thinking(value, chars, context, ordinal, total)
        case RedactedThinking(tokens=tokens):
            data = chain.seal_thinking("", context.message_id, ordinal, total, tokens)
            final = {"type": "redacted_thinking", "data": data}
            return _Shown(final, (), final, tokens)
        case ToolUse():
            return _show_tool_use(block, chars, context, room_tokens)
        case Compaction(content=content):
            final = {"type": "compaction", "content": content, "signature": chain.seal_compaction()}
            start = {**final, "content": None}
            tokens = counter.text(content or "")
            return _Shown(start, ({"type": "compaction_delta", "content": content},), final, tokens)
        case RawBlock(start=start, deltas=raw_deltas, final=raw_final):
            chain.add("assistant", raw_final or start)
            return _Shown(start, raw_deltas, raw_final or start, counter.json(raw_final or start))


def _show_thinking(value: str, chars: int, context: Context, ordinal: int, total: int) -> _Shown:
    display = (context.body.get("thinking") or {}).get("display") or context.model.default_display
    visible = "" if display == "omitted" else value
    tokens = context.counter.text(value)
    signature = ""
    if context.persona.is_first_party:
        signature = context.chain.seal_thinking(visible, context.message_id, ordinal, total, tokens)
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(visible, chars)]
    deltas.append({"type": "signature_delta", "signature": signature})
    final = {"type": "thinking", "thinking": visible, "signature": signature}
    return _Shown({"type": "thinking", "thinking": "", "signature": ""}, tuple(deltas), final, tokens)


def _show_tool_use(block: ToolUse, chars: int, context: Context, room_tokens: int) -> _Shown:
    raw = block.raw_json if block.raw_json is not None else json.dumps(block.input, ensure_ascii=False)
    counter = context.counter
    sent = raw if counter.text(raw) <= room_tokens else raw[: int(room_tokens * counter.bytes_per_token)]
    is_whole = sent == raw
    final = {
        "type": "tool_use",
        "id": block.id or context.next_tool_id(),
        "name": block.name,
        "input": _parsed(block) if is_whole else {},
    }
    context.chain.add("assistant", final)
    pieces = ["", *_pieces(sent, chars)]
    deltas = tuple({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return _Shown({**final, "input": {}}, deltas, final, counter.text(block.name) + counter.text(sent), is_whole)


def _parsed(block: ToolUse) -> Json:
    """The input a client ends up with; {} where the scripted JSON is no object."""
    if block.raw_json is None:
        return block.input
    try:
        value = json.loads(block.raw_json)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _stop_reason(answer: Answer, persona: Persona, cut: str | None) -> str | None:
    if not persona.sends_stop_reason:
        return None
    if cut:
        return cut
    if answer.stop_reason != "auto":
        return answer.stop_reason
    if any(isinstance(block, Compaction) for block in answer.blocks):
        return "compaction"
    return "tool_use" if any(isinstance(block, ToolUse) for block in answer.blocks) else "end_turn"


def _usage(cache: CacheUsage, output: int, thinking_tokens: int, persona: Persona) -> Json:
    usage: Json = {"input_tokens": cache.fresh_tokens, "output_tokens": output}
    if persona.reports_cache:
        usage["cache_creation_input_tokens"] = cache.written_tokens
        usage["cache_read_input_tokens"] = cache.read_tokens
    if persona.is_first_party:
        usage["cache_creation"] = {
            "ephemeral_5m_input_tokens": cache.written_5m_tokens,
            "ephemeral_1h_input_tokens": cache.written_1h_tokens,
        }
        usage["output_tokens_details"] = {"thinking_tokens": thinking_tokens}
        usage["service_tier"] = "standard"
    return usage


def _compaction_usage(billed: Json) -> Json:
    """A compaction is billed as an iteration of its own and left out of the top-level counts."""
    iteration = {"type": "compaction", **{key: value for key, value in billed.items() if key.endswith("_tokens")}}
    zero = {key: 0 if key.endswith("_tokens") else value for key, value in billed.items()}
    return {**zero, "iterations": [iteration]}


_START_ONLY = ("stop_reason", "stop_sequence", "stop_details", "context_management")


def _events(message: Json, shown: list[_Shown], answer: Answer, persona: Persona) -> list[Event]:
    usage: Mapping[str, Any] | None = message.get("usage")
    start = {key: value for key, value in message.items() if key not in _START_ONLY}
    start |= {"content": [], "stop_reason": None, "stop_sequence": None}
    if usage is not None:
        start["usage"] = {**usage, "output_tokens": min(1, usage.get("output_tokens", 1))}
    ping = Event("ping", {"type": "ping"})
    events = [Event("message_start", {"type": "message_start", "message": start})]
    if persona.sends_pings:
        events.append(ping)
    for index, item in enumerate(shown):
        block_start = {"type": "content_block_start", "index": index, "content_block": item.start}
        events.append(Event("content_block_start", block_start))
        share = item.tokens // max(len(item.deltas), 1)
        for delta in item.deltas:
            data = {"type": "content_block_delta", "index": index, "delta": delta}
            events.append(Event("content_block_delta", data, share))
            if answer.pings_between_deltas:
                events.append(ping)
        events.append(Event("content_block_stop", {"type": "content_block_stop", "index": index}))
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    if "stop_details" in message:
        delta["stop_details"] = message["stop_details"]
    final: Json = {"type": "message_delta", "delta": delta}
    if usage is not None:
        final["usage"] = {key: value for key, value in usage.items() if key != "cache_creation"}
        if answer.double_usage:
            half = {**final["usage"], "output_tokens": max(1, usage.get("output_tokens", 2) // 2)}
            nothing = {"stop_reason": None, "stop_sequence": None}
            events.append(Event("message_delta", {"type": "message_delta", "delta": nothing, "usage": half}))
    if "context_management" in message:
        final["context_management"] = message["context_management"]
    events.append(Event("message_delta", final))
    events.append(Event("message_stop", {"type": "message_stop"}))
    return events
