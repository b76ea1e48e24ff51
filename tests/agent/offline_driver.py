"""Runs the offline model through a plain loop with the real tools, as a conversation would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pyagent.agent.offline import WINDOW_TOKENS, OfflineModel
from pyagent.agent.wire.stream import Response, accumulate
from pyagent.messages import JsonObject
from pyagent.tools.registry import tool_definitions
from tests.tools.support import Workbench

MAX_ROUNDS = 30


@dataclass(frozen=True)
class Body:
    """A request, as far as the model reads it."""

    body: bytes


def request_of(messages: list[JsonObject], tools: list[JsonObject] | None = None, **fields: object) -> Body:
    raw = {"model": "offline", "max_tokens": 8_000, "system": "S", "tools": tools or [], "messages": messages, **fields}
    return Body(json.dumps(raw).encode())


def offline_model(window_tokens: int = WINDOW_TOKENS) -> OfflineModel:
    return OfflineModel(count_tokens=lambda text: len(text) // 4, pause_s=0, window_tokens=window_tokens)


async def respond(model: OfflineModel, request: Body) -> Response:
    return await accumulate(model.stream(request))


async def events_of(events: AsyncIterator[JsonObject]) -> list[JsonObject]:
    return [event async for event in events]


@dataclass
class Driver:
    bench: Workbench
    model: OfflineModel = field(default_factory=offline_model)
    messages: list[JsonObject] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """Tools called for the last prompt, in order."""
    responses: list[Response] = field(default_factory=list)

    async def ask(self, prompt: str) -> str:
        """The answer to a prompt, after all the calls it took."""
        self.used = []
        self.messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        tools = list(tool_definitions(self.bench.tools))
        for _ in range(MAX_ROUNDS):
            response = await respond(self.model, request_of(self.messages, tools))
            self.responses.append(response)
            self.messages.append({"role": "assistant", "content": list(response.content)})
            if response.stop_reason != "tool_use":
                return response.text
            results: list[JsonObject] = []
            for use in response.tool_uses:
                self.used.append(use["name"])
                result = await self.bench.call(use["name"], **use["input"])
                content = [{"type": "text", "text": result.text}] if result.text else []
                results.append(
                    {"type": "tool_result", "tool_use_id": use["id"], "content": content, "is_error": result.is_error}
                )
            self.messages.append({"role": "user", "content": results})
        raise AssertionError(f"no answer after {MAX_ROUNDS} rounds: {self.used}")
