"""Conversations for tests: records written in the order a session writes them, folded like a session's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import Block, JsonObject, TextBlock, ToolResultBlock, Usage
from pyagent.state import ConversationState
from pyagent.view import View

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MODEL = "claude-sonnet-5"


@lru_cache(maxsize=8_192)
def _count_words(text: str) -> int:
    """Remembered: the property tests count the same texts in thousands of examples."""
    return sum(1 + len(word) // 10 for word in text.split())


class WordTokenizer:
    """One token a word and one for each further ten characters of it: simple enough to reckon with by hand."""

    is_ready = True

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return _count_words(text)


def words(count: int, stem: str = "word") -> str:
    """A text of `count` tokens, ten to a line."""
    return "\n".join(" ".join([stem] * min(10, count - n)) for n in range(0, count, 10))


class Talk:
    """Builds a conversation record by record."""

    def __init__(self) -> None:
        self.state = ConversationState()
        self.now = START
        self.ids = 0

    @property
    def view(self) -> View:
        return self.state.view

    def new_id(self, kind: str) -> str:
        self.ids += 1
        return f"{kind}-{self.ids}"

    def wait(self, **span: float) -> Talk:
        self.now += timedelta(**span)
        return self

    def write(self, payload: Payload, *, tx: str = "", uuid: str = "") -> Record:
        self.now += timedelta(seconds=1)
        record = Record(self.state.next_seq, uuid or self.new_id(payload.kind), self.now, payload, tx)
        self.state.apply(record)
        return record

    def prompt(self, text: str = "please go on") -> Record:
        return self.write(UserEntry((TextBlock(text),), display=""))

    def answer(self, text: str = "done", **options: Any) -> Record:
        return self.assistant([{"type": "text", "text": text}], **options)

    def assistant(self, content: list[JsonObject], **options: Any) -> Record:
        return self.write(self.response(content, **options))

    def response(
        self,
        content: list[JsonObject],
        *,
        usage: Usage | None = None,
        message_id: str = "",
        model: str = MODEL,
        stop_reason: str | None = "end_turn",
        cache_ttl_s: int = 300,
    ) -> AssistantEntry:
        return AssistantEntry(
            message_id or self.new_id("msg"),
            model,
            tuple(content),
            stop_reason,
            usage or Usage(),
            "digest",
            "profile",
            request_started_at=self.now,
            cache_ttl_s=cache_ttl_s,
        )

    def results(self, *blocks: Block) -> Record:
        return self.write(UserEntry(tuple(blocks), origin="tool_results"))

    def call(
        self,
        name: str = "Bash",
        output: str = "fine",
        *,
        text: str = "",
        is_error: bool = False,
        usage: Usage | None = None,
        **given: Any,
    ) -> str:
        """One tool round; the id of its use."""
        use_id = self.new_id("toolu")
        content: list[JsonObject] = [{"type": "text", "text": text}] if text else []
        content.append({"type": "tool_use", "id": use_id, "name": name, "input": given or {"command": "make"}})
        self.assistant(content, stop_reason="tool_use", usage=usage)
        self.results(ToolResultBlock(use_id, (TextBlock(output),) if output else (), is_error))
        return use_id

    def task(self, prompt: str, *, rounds: int, tokens: int) -> Talk:
        """A prompt, tool rounds with results of `tokens` tokens each, and a closing answer."""
        self.prompt(prompt)
        for number in range(rounds):
            self.call("Bash", words(tokens), command=f"step {number}")
        self.answer(f"finished {prompt}")
        return self


def with_usage(tokens: int, *, cached: int = 0) -> Usage:
    """A usage whose context is `tokens`."""
    return Usage.from_wire({"input_tokens": tokens - cached - 1, "cache_read_input_tokens": cached, "output_tokens": 1})
