"""A model and tools that follow a script, for tests of the loop without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyagent.agent.wire.client import ModelRequest
from pyagent.events import PermissionQuestion
from pyagent.messages import JsonObject
from pyagent.tools.tool import ToolContext, ToolInput, ToolResult

Answer = Sequence[JsonObject] | Exception | Callable[[JsonObject], Sequence[JsonObject]]

_numbers = count(1)


def message(*blocks: JsonObject, stop_reason: str | None = None, usage: JsonObject | None = None) -> list[JsonObject]:
    """The events of one whole response. The stop reason follows from the blocks unless given."""
    number = next(_numbers)
    counted = {"input_tokens": 100, "output_tokens": 1} | (usage or {})
    events: list[JsonObject] = [
        {
            "type": "message_start",
            "message": {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "scripted",
                "content": [],
                "stop_reason": None,
                "usage": counted,
            },
        }
    ]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    if stop_reason is None:
        stop_reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 20},
        }
    )
    events.append({"type": "message_stop"})
    return events


def _block_events(index: int, block: JsonObject) -> list[JsonObject]:
    start: JsonObject
    deltas: list[JsonObject]
    match block["type"]:
        case "text":
            start, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "tool_use":
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": block.get("raw") or json.dumps(block["input"])}]
            start.pop("raw", None)
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            start, deltas = block, []
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def call(name: str, tool_input: JsonObject | None = None, *, use_id: str = "", raw: str = "") -> JsonObject:
    """A tool_use block; `raw` replaces the JSON of its input as streamed."""
    block = {
        "type": "tool_use",
        "id": use_id or f"toolu_{next(_numbers)}",
        "name": name,
        "input": tool_input if tool_input is not None else {},
    }
    return block | {"raw": raw} if raw else block


class ScriptedModel:
    """Answers each request with the next item of its script; fails loudly when there is none, or some are left."""

    def __init__(self, script: Sequence[Answer]) -> None:
        self._script = list(script)
        self.requests: list[JsonObject] = []
        self.hold: asyncio.Event | None = None
        """While set and not released, a response stops before its end."""
        self.is_holding = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[JsonObject]:
        body = json.loads(request.body)
        self.requests.append(body)
        assert self._script, f"the script has no answer to request {len(self.requests)}"
        answer = self._script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        events = answer(body) if callable(answer) else answer
        for event in events:
            if event["type"] == "message_delta" and self.hold is not None:
                self.is_holding.set()
                await self.hold.wait()
            yield event

    def assert_finished(self) -> None:
        assert not self._script, f"{len(self._script)} answers of the script are left over"


class EchoInput(ToolInput):
    text: str = ""


@dataclass
class FakeTool:
    """A tool that says what it was given. `before` runs first and may wait or raise."""

    name: str = "Echo"
    is_read_only: bool = True
    is_compactable: bool = True
    result_cap_chars: int = 10_000
    input_model: type[EchoInput] = EchoInput
    description: str = "Says what it is given."
    question: PermissionQuestion | None = None
    before: Callable[[str], Any] | None = None
    log: list[str] = field(default_factory=list)

    def summary(self, tool_input: EchoInput) -> str:
        return f"{self.name} {tool_input.text}"

    def permission(self, tool_input: EchoInput, context: ToolContext) -> PermissionQuestion | None:
        return self.question

    async def run(self, tool_input: EchoInput, context: ToolContext) -> ToolResult:
        self.log.append(f"start {tool_input.text}")
        if self.before is not None:
            waiting = self.before(tool_input.text)
            if waiting is not None:
                await waiting
        self.log.append(f"end {tool_input.text}")
        return ToolResult.of(tool_input.text)
