"""Views and responses for the wire tests, made the way a conversation makes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.stream import Response
from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import Block, JsonObject, TextBlock, ToolResultBlock, Usage
from pyagent.state import ConversationState

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOOL: JsonObject = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
OPUS = RequestProfile(
    "claude-opus-5-5", "You are a careful agent.", (TOOL,), thinking={"type": "adaptive", "display": "summarized"}
)


def text_raw(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def use_raw(use_id: str, name: str = "Read") -> JsonObject:
    return {"type": "tool_use", "id": use_id, "name": name, "input": {"file_path": use_id}}


def thinking_raw(text: str = "hm", signature: str = "sig") -> JsonObject:
    return {"type": "thinking", "thinking": text, "signature": signature}


def prompt(text: str) -> UserEntry:
    return UserEntry((TextBlock(text),))


def results(*pairs: tuple[str, str]) -> UserEntry:
    blocks: tuple[Block, ...] = tuple(
        ToolResultBlock(use_id, (TextBlock(text),) if text else ()) for use_id, text in pairs
    )
    return UserEntry(blocks, origin="tool_results")


class Conversation:
    """A log, its fold and a renderer, without a model."""

    def __init__(self, profile: RequestProfile = OPUS) -> None:
        self.profile = profile
        self.state = ConversationState()
        self.renderer = Renderer()

    def add(self, *payloads: Payload) -> list[Record]:
        records = []
        for payload in payloads:
            seq = self.state.next_seq
            record = Record(seq, f"u{seq}", START + timedelta(seconds=seq), payload)
            self.state.apply(record)
            records.append(record)
        return records

    def answer(self, *content: JsonObject, stop_reason: str = "end_turn") -> Record:
        """A response sampled under the view as it stands."""
        return self.add(self.entry(content, stop_reason))[0]

    def entry(self, content: Iterable[JsonObject], stop_reason: str = "end_turn") -> AssistantEntry:
        digest = self.renderer.prefix_digest(self.state.view, self.profile)
        return AssistantEntry(
            f"msg_{self.state.next_seq}",
            self.profile.model,
            tuple(content),
            stop_reason,
            Usage(),
            digest,
            self.profile.profile_id,
        )

    def take(self, response: Response) -> Record:
        return self.answer(*response.content, stop_reason=response.stop_reason)
