"""The offline model: a small deterministic program behind the interface of a model server.

It answers when there are no credentials, and examples and tests run on it. The requests it gets and the events it
gives are those of the Messages API, so that everything around it works as with a real model: streaming, usage, cache
figures, a window that fills up. It understands a few dozen plain instructions, and says so in every answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from pyagent.agent.offline_plan import next_step
from pyagent.agent.offline_request import OfflineRequest, parse_request
from pyagent.agent.offline_step import Step
from pyagent.agent.offline_summary import (
    is_notes_instruction,
    is_summary_instruction,
    nine_sections,
    updated_notes,
)
from pyagent.agent.wire.failures import FailureFacts, OverflowFailure
from pyagent.agent.wire.overflow import Overflow
from pyagent.messages import JsonObject

WINDOW_TOKENS = 200_000
CHUNK_PAUSE_S = 0.004
"""Between two pieces of text: fast, and still seen to stream."""
CHUNK_CHARS = 24
OVERHEAD_TOKENS = 4
"""Of each message, for its frame."""
KEPT_COUNTS = 4_096
"""Texts whose counts are remembered: the messages of a long conversation do not change between its requests."""


class OfflineCall(Protocol):
    """What of a request the model reads."""

    @property
    def body(self) -> bytes: ...


class OfflineModel:
    """A model client without a server. Only counts are kept between calls, to spare counting the same text again."""

    def __init__(
        self,
        *,
        count_tokens: Callable[[str], int],
        window_tokens: int = WINDOW_TOKENS,
        pause_s: float = CHUNK_PAUSE_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`pause_s` of 0 streams without pausing (tests); `sleep` is what it pauses with."""
        self._count_tokens = count_tokens
        self._window_tokens = window_tokens
        self._pause_s = pause_s
        self._sleep = sleep
        self._counts: dict[bytes, int] = {}

    async def stream(self, request: OfflineCall) -> AsyncIterator[JsonObject]:
        """The raw streaming events of one response.

        Raises:
            PromptTooLongError: the prompt does not fit the window; the figures are in it.
        """
        parsed = await asyncio.to_thread(parse_request, request.body)
        counts = await asyncio.to_thread(lambda: [self._count(part) + OVERHEAD_TOKENS for part in parsed.parts])
        prompt_tokens = sum(counts)
        if prompt_tokens > self._window_tokens:
            raise _too_long(prompt_tokens, self._window_tokens)
        step = self._step(parsed)
        seed = hashlib.sha256(request.body).hexdigest()[:24]
        usage = _prompt_usage(counts, has_answered=parsed.has_answered)
        yield {
            "type": "message_start",
            "message": {
                "id": f"msg_offline_{seed}",
                "type": "message",
                "role": "assistant",
                "model": parsed.model,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {**usage, "output_tokens": 1},
            },
        }
        text, is_cut = self._fitted(step.text, parsed.max_tokens)
        calls = () if is_cut else step.calls
        async for event in self._text_events(text):
            yield event
        for index, (name, tool_input) in enumerate(calls, start=1):
            for event in _tool_events(index, f"toolu_offline_{seed}_{index}", name, tool_input):
                yield event
        said = text + "".join(json.dumps(tool_input) for _, tool_input in calls)
        stop_reason = "max_tokens" if is_cut else "tool_use" if calls else "end_turn"
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {**usage, "output_tokens": max(1, self._count(said))},
        }
        yield {"type": "message_stop"}

    def _step(self, parsed: OfflineRequest) -> Step:
        if is_summary_instruction(parsed.prompt):
            return Step(nine_sections(parsed))
        if is_notes_instruction(parsed.prompt):
            return Step(updated_notes(parsed))
        return next_step(parsed)

    def _count(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key not in self._counts:
            if len(self._counts) >= KEPT_COUNTS:
                self._counts.clear()
            self._counts[key] = self._count_tokens(text)
        return self._counts[key]

    def _fitted(self, text: str, max_tokens: int) -> tuple[str, bool]:
        """As much of the text as the output limit lets pass, and whether it was cut."""
        tokens = self._count_tokens(text)
        if tokens <= max_tokens:
            return text, False
        kept = max(1, len(text) * max_tokens // tokens)
        while kept > 1 and self._count_tokens(text[:kept]) > max_tokens:
            kept = kept * 9 // 10
        return text[:kept], True

    async def _text_events(self, text: str) -> AsyncIterator[JsonObject]:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for chunk in _chunks(text):
            if self._pause_s:
                await self._sleep(self._pause_s)
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": chunk}}
        yield {"type": "content_block_stop", "index": 0}


def _chunks(text: str) -> list[str]:
    """The text in pieces of about a few words."""
    pieces: list[str] = []
    for word in re.findall(r"\s*\S+\s*|\s+", text):
        if pieces and len(pieces[-1]) + len(word) <= CHUNK_CHARS:
            pieces[-1] += word
        else:
            pieces.append(word)
    return pieces


def _tool_events(index: int, call_id: str, name: str, tool_input: JsonObject) -> list[JsonObject]:
    text = json.dumps(tool_input, ensure_ascii=False)
    half = len(text) // 2
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": part}}
            for part in (text[:half], text[half:])
        ),
        {"type": "content_block_stop", "index": index},
    ]


def _prompt_usage(counts: list[int], *, has_answered: bool) -> JsonObject:
    """Usage as a server with a prompt cache would report it: all but the last message is in the cache.

    The first request of a conversation writes what later ones read.
    """
    last = counts[-1] if len(counts) > 1 else 0
    before = sum(counts) - last
    return {
        "input_tokens": last,
        "cache_creation_input_tokens": 0 if has_answered else before,
        "cache_read_input_tokens": before if has_answered else 0,
    }


def _too_long(prompt_tokens: int, window_tokens: int) -> OverflowFailure:
    message = f"prompt is too long: {prompt_tokens} tokens > {window_tokens} maximum"
    return OverflowFailure(message, FailureFacts(status=400), Overflow(prompt_tokens, window_tokens))
