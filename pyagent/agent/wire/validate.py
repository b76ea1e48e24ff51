"""A cheap check of what the API demands of messages, before every send.

A conversation that grew is checked from where the last check ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_

from pyagent.agent.wire.body import Marks
from pyagent.agent.wire.marks import MAX_MARKS_COUNT
from pyagent.agent.wire.render import RenderedConversation, RenderedMessage

MAX_MESSAGES_COUNT = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule and the message (index) it is broken at."""

    message: int
    text: str


class Validator:
    """Checks the conversations one renderer makes."""

    def __init__(self) -> None:
        self._checked: tuple[RenderedMessage, ...] = ()
        self._uses_seen: dict[str, int] = {}

    def fault(
        self, rendered: RenderedConversation, marks: Marks | None = None, *, has_tail: bool = False
    ) -> Fault | None:
        """The first broken rule, or None. Costs the messages that are new since the last call.

        `has_tail`: a user's text follows that is not part of the conversation.
        """
        messages = rendered.messages
        if not messages:
            return None if has_tail else Fault(0, "there is no message")
        if len(messages) > MAX_MESSAGES_COUNT:
            return Fault(MAX_MESSAGES_COUNT, f"there are more than {MAX_MESSAGES_COUNT:,} messages")
        start = self._resume_at(messages)
        for at in range(start, len(messages)):
            fault = self._message_fault(messages, at)
            if fault is not None:
                self._checked = messages[: min(at, len(messages) - 2)] if len(messages) > 2 else ()
                return fault
        # The last messages are made anew while they can still grow.
        self._checked = messages[:-2]
        last = messages[-1]
        if last.role == "assistant" and not last.is_paused and not has_tail:
            return Fault(len(messages) - 1, "the conversation ends with a response")
        if any(part.kind == "tool_use" for part in last.parts):
            return Fault(len(messages) - 1, "the last response's calls are not answered")
        return None if marks is None else _mark_fault(rendered, marks)

    def _resume_at(self, messages: tuple[RenderedMessage, ...]) -> int:
        count = len(self._checked)
        if count <= len(messages) and all(map(is_, self._checked, messages)):
            while self._uses_seen and next(reversed(self._uses_seen.values())) >= count:
                self._uses_seen.popitem()
            return count
        self._checked, self._uses_seen = (), {}
        return 0

    def _message_fault(self, messages: tuple[RenderedMessage, ...], at: int) -> Fault | None:
        message = messages[at]
        if not message.parts:
            return Fault(at, "the message is empty")
        if at and messages[at - 1].role == message.role:
            return Fault(at, f"two {message.role} messages follow each other")
        if at == 0 and message.role != "user" and message.parts[0].kind != "compaction":
            return Fault(at, "the first message is not a user's")
        if message.role == "system":
            return self._note_fault(messages, at)
        return self._user_fault(messages, at) if message.role == "user" else self._response_fault(message, at)

    def _note_fault(self, messages: tuple[RenderedMessage, ...], at: int) -> Fault | None:
        if any(part.kind != "text" for part in messages[at].parts):
            return Fault(at, "a system message holds more than text")
        if messages[at - 1].role != "user":
            return Fault(at, "a system message does not follow a user's")
        if at + 1 < len(messages) and messages[at + 1].role != "assistant":
            return Fault(at, "a system message is neither last nor before a response")
        return None

    def _response_fault(self, message: RenderedMessage, at: int) -> Fault | None:
        for part in message.parts:
            if part.kind == "tool_result":
                return Fault(at, f"a response holds the result {part.tool_id}")
            if part.kind == "tool_use":
                if self._uses_seen.setdefault(part.tool_id, at) != at:
                    return Fault(at, f"the call id {part.tool_id} is used twice")
                if sum(other.tool_id == part.tool_id for other in message.parts) > 1:
                    return Fault(at, f"the call id {part.tool_id} is used twice")
        if message.parts[-1].is_thinking:
            return Fault(at, "a response ends in thinking")
        return None

    def _user_fault(self, messages: tuple[RenderedMessage, ...], at: int) -> Fault | None:
        asked = [part.tool_id for part in messages[at - 1].parts if part.kind == "tool_use"] if at else []
        answered: list[str] = []
        has_other = False
        for part in messages[at].parts:
            if part.kind in ("tool_use", "thinking", "redacted_thinking"):
                return Fault(at, f"a user message holds a {part.kind} block")
            if part.kind != "tool_result":
                has_other = True
                continue
            if has_other:
                return Fault(at, "a result stands after other content")
            if part.tool_id not in asked:
                return Fault(at, f"the result {part.tool_id} has no call in the message before")
            if part.tool_id in answered:
                return Fault(at, f"the call {part.tool_id} is answered twice")
            answered.append(part.tool_id)
        missing = [use_id for use_id in asked if use_id not in answered]
        return Fault(at - 1, f"calls without a result: {', '.join(missing)}") if missing else None


def _mark_fault(rendered: RenderedConversation, marks: Marks) -> Fault | None:
    if marks.count > MAX_MARKS_COUNT:
        return Fault(0, f"there are {marks.count} cache marks")
    for at, block in marks.places:
        part = rendered.part_at(at, block)
        if part is None or part.is_thinking:
            return Fault(at, "a cache mark stands where none may")
    return None
