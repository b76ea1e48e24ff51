"""From raw streaming events to one whole response, or to an error that says why there is none.

A response counts only if `message_stop` came and a stop reason is known. Blocks are kept as they were sent, those of
unknown types too. Tool input that is no JSON, or was cut off, is named, so that it is never run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyagent.agent.wire.failures import BrokenStreamFailure, FailureFacts, failure_from_error_event
from pyagent.events import TextDelta, ThinkingDelta, ToolInputDelta, WireEvent
from pyagent.messages import JsonObject, Usage, scrub_json

StreamEvent: TypeAlias = TextDelta | ThinkingDelta | ToolInputDelta | WireEvent
StreamSink: TypeAlias = Callable[[StreamEvent], None]

INVALID_JSON_KEY = "INVALID_JSON"
"""Field a broken tool input is kept under; the same name is answered to the model."""


@dataclass(frozen=True, slots=True)
class Response:
    """One whole response, as the server sent it."""

    message_id: str
    model: str
    """The model that answered, which may be another than the one asked."""
    content: tuple[JsonObject, ...]
    stop_reason: str
    usage: Usage
    stop_sequence: str | None = None
    stop_details: JsonObject | None = None
    input_transformations: tuple[JsonObject, ...] = ()
    """Thinking blocks the server left out of the request, with its reasons."""
    applied_edits: tuple[JsonObject, ...] = ()
    """What server-side context management did."""
    diagnostics: JsonObject | None = None
    broken_tool_inputs: dict[str, str] = field(default_factory=dict)
    """tool_use id → the raw text of an input that is no JSON object, or was cut off. Never to be run."""
    raw: JsonObject = field(default_factory=dict)
    """Further fields of the message, such as `container`."""

    @property
    def text(self) -> str:
        return "\n".join(str(raw.get("text") or "") for raw in self.content if raw.get("type") == "text")

    @property
    def tool_uses(self) -> tuple[JsonObject, ...]:
        return tuple(raw for raw in self.content if raw.get("type") == "tool_use")


async def accumulate(
    events: AsyncIterator[JsonObject],
    emit: StreamSink = lambda event: None,
    *,
    sends_wire_events: bool = False,
    is_id_taken: Callable[[str], bool] = lambda tool_id: False,
    infers_stop_reason: bool = True,
) -> Response:
    """Fold a stream's events into its response, passing on what appears as it appears.

    `infers_stop_reason` accepts a message that ended properly without a stop reason, as some servers send it.
    `is_id_taken` tells of tool_use ids the conversation already holds: some servers number the calls of every response
    from 0 again, and an id must stand for one call only.

    Raises:
        ApiFailure: the stream held an `error` event.
        BrokenStreamFailure: it ended early or made no sense.
    """
    building = Accumulator(emit, is_id_taken, infers_stop_reason=infers_stop_reason)
    async for event in events:
        if sends_wire_events:
            emit(WireEvent(event))
        building.add(event)
    return building.finish()


class Accumulator:
    """The response under construction."""

    def __init__(
        self,
        emit: StreamSink = lambda event: None,
        is_id_taken: Callable[[str], bool] = lambda tool_id: False,
        *,
        infers_stop_reason: bool = True,
    ) -> None:
        self._infers_stop_reason = infers_stop_reason
        self._emit = emit
        self._is_id_taken = is_id_taken
        self._message: JsonObject | None = None
        self._blocks: dict[int, JsonObject] = {}
        self._json: dict[int, list[str]] = {}
        self._json_chars: dict[int, int] = {}
        self._open: set[int] = set()
        self._usage: JsonObject = {}
        self._broken: dict[str, str] = {}
        self._ids: set[str] = set()
        self._is_stopped = False

    def add(self, event: JsonObject) -> None:
        """Take in the next event; unknown ones are passed over."""
        try:
            self._add(event)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise self._broken_off(f"an event made no sense ({event.get('type')}: {error!r})") from error

    def _add(self, event: JsonObject) -> None:
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
                self._merge_usage(self._message.get("usage"))
                for index, block in enumerate(self._message.get("content") or []):
                    self._blocks[index] = dict(block)
            case "content_block_start":
                self._start_block(event["index"], dict(event["content_block"]))
            case "content_block_delta":
                self._add_delta(event["index"], event["delta"])
            case "content_block_stop":
                self._stop_block(event["index"])
            case "message_delta":
                self._require_message().update(event.get("delta") or {})
                self._merge_usage(event.get("usage"))
                for name in ("context_management", "input_transformations", "diagnostics"):
                    if event.get(name) is not None:
                        self._require_message()[name] = event[name]
            case "message_stop":
                self._is_stopped = True
            case "error":
                raise failure_from_error_event(event)
            case _:
                pass

    def _require_message(self) -> JsonObject:
        if self._message is None:
            raise self._broken_off("it did not begin with message_start")
        return self._message

    def _start_block(self, index: int, block: JsonObject) -> None:
        self._require_message()
        if index in self._blocks:
            raise self._broken_off(f"block {index} began twice")
        if block.get("type") == "tool_use":
            block["id"] = self._fresh_id(block.get("id"))
            self._ids.add(block["id"])
        self._blocks[index] = block
        self._open.add(index)
        if block.get("type") == "text" and block.get("text"):
            self._emit(TextDelta(block["text"]))
        if block.get("type") == "tool_use":
            self._emit(ToolInputDelta(block["id"], str(block.get("name", "")), 0))

    def _fresh_id(self, tool_id: object) -> str:
        base = tool_id if isinstance(tool_id, str) and tool_id else "call"
        fresh, number = base, 2
        while fresh in self._ids or self._is_id_taken(fresh) or not tool_id:
            fresh, number, tool_id = f"{base}_{number}", number + 1, base
        return fresh

    def _add_delta(self, index: int, delta: JsonObject) -> None:
        if index not in self._open:
            raise self._broken_off(f"a delta for block {index}, which is not open")
        block = self._blocks[index]
        match delta.get("type"):
            case "text_delta":
                block["text"] = (block.get("text") or "") + delta["text"]
                self._emit(TextDelta(delta["text"]))
            case "thinking_delta":
                block["thinking"] = (block.get("thinking") or "") + (delta.get("thinking") or "")
                if delta.get("thinking"):
                    self._emit(ThinkingDelta(delta["thinking"]))
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            case "input_json_delta":
                self._json.setdefault(index, []).append(delta["partial_json"])
                self._json_chars[index] = self._json_chars.get(index, 0) + len(delta["partial_json"])
                if block.get("type") == "tool_use":
                    self._emit(ToolInputDelta(block["id"], str(block.get("name", "")), self._json_chars[index]))
            case "compaction_delta":
                for name, value in delta.items():
                    if name != "type" and value is not None:
                        block[name] = value
            case _:
                pass

    def _stop_block(self, index: int) -> None:
        self._open.discard(index)
        if index not in self._json:
            return
        raw = "".join(self._json.pop(index))
        block = self._blocks[index]
        if not raw.strip():
            return
        value = _json_object(raw)
        if value is None:
            self._mark_broken(block, raw)
        else:
            block["input"] = value

    def _mark_broken(self, block: JsonObject, raw: str) -> None:
        block["input"] = {INVALID_JSON_KEY: raw}
        if isinstance(block.get("id"), str):
            self._broken[block["id"]] = raw

    def _merge_usage(self, usage: object) -> None:
        """Later figures are cumulative and win; what only the first event names is kept."""
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})

    def finish(self) -> Response:
        """The response, if it is whole.

        Raises:
            BrokenStreamFailure: `message_stop` did not come, or no stop reason can be told.
        """
        if self._message is None:
            raise self._broken_off("it ended before the answer began")
        if not self._is_stopped:
            raise self._broken_off("it ended before the answer was complete")
        message = self._message
        for index in sorted(self._open):
            # A block that was never closed: its input may look whole and yet be cut.
            raw = "".join(self._json.pop(index, []))
            if self._blocks[index].get("type") == "tool_use":
                self._mark_broken(self._blocks[index], raw)
        content = tuple(scrub_json(self._blocks[index]) for index in sorted(self._blocks))
        stop_reason = message.get("stop_reason")
        if not isinstance(stop_reason, str) or not stop_reason:
            stop_reason = self._inferred_stop_reason(content)
        if stop_reason in ("max_tokens", "model_context_window_exceeded"):
            self._distrust_last_use(content)
        edits = message.get("context_management")
        known = ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage")
        return Response(
            message_id=str(message.get("id") or ""),
            model=str(message.get("model") or ""),
            content=content,
            stop_reason=stop_reason,
            usage=Usage.from_wire(self._usage),
            stop_sequence=message.get("stop_sequence"),
            stop_details=message.get("stop_details"),
            input_transformations=_objects(message.get("input_transformations")),
            applied_edits=_objects(edits.get("applied_edits") if isinstance(edits, dict) else None),
            diagnostics=message.get("diagnostics"),
            broken_tool_inputs=dict(self._broken),
            raw={name: value for name, value in message.items() if name not in known},
        )

    def _inferred_stop_reason(self, content: tuple[JsonObject, ...]) -> str:
        """Some servers leave the stop reason out although they end the message properly."""
        if self._infers_stop_reason and any(raw.get("type") == "tool_use" for raw in content):
            return "tool_use"
        if self._infers_stop_reason and content:
            return "end_turn"
        raise self._broken_off("it ended without a stop reason")

    def _distrust_last_use(self, content: tuple[JsonObject, ...]) -> None:
        """A call cut off by the limit can parse as whole JSON and still lack fields."""
        if content and content[-1].get("type") == "tool_use":
            use_id = content[-1]["id"]
            self._broken.setdefault(use_id, json.dumps(content[-1].get("input")))

    def _broken_off(self, reason: str) -> BrokenStreamFailure:
        return BrokenStreamFailure(
            f"The answer broke off: {reason}.",
            FailureFacts(status=200, server_text=reason, is_retryable=True),
            usage=Usage.from_wire(self._usage),
            model=str((self._message or {}).get("model") or ""),
        )


def _json_object(raw: str) -> JsonObject | None:
    try:
        value: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(value: object) -> tuple[JsonObject, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
