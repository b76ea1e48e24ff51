"""One request, ready to send: settings, conversation, cache marks, and what stands after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyagent.agent.wire.body import Marks, request_body
from pyagent.agent.wire.marks import place_marks
from pyagent.agent.wire.profile import COMPACTION_BETA, DIAGNOSTICS_BETA, RequestProfile
from pyagent.agent.wire.render import RenderedConversation
from pyagent.messages import JsonObject


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """Prefix, marks and tail of a request."""

    profile: RequestProfile
    rendered: RenderedConversation
    marks: Marks
    tail: tuple[JsonObject, ...] = ()
    """User blocks after the conversation; they are in no log."""
    extra_fields: Mapping[str, object] = field(default_factory=dict)
    max_tokens: int | None = None
    """Overrides the profile's."""

    @classmethod
    def of(cls, profile: RequestProfile, rendered: RenderedConversation) -> RequestPlan:
        return cls(profile, rendered, place_marks(profile, rendered))

    @property
    def prefix_digest(self) -> str:
        """The digest to record with the response. A response to a plan with a tail is never an entry."""
        return self.rendered.prefix_digest

    @property
    def betas(self) -> tuple[str, ...]:
        """The values of `anthropic-beta` for this request: the profile's, and what its fields and blocks need."""
        needs_compaction = self.rendered.starts_with_summary or self.is_compacting
        needed = [COMPACTION_BETA] if needs_compaction else []
        if "diagnostics" in self.extra_fields:
            needed.append(DIAGNOSTICS_BETA)
        return tuple(dict.fromkeys((*self.profile.all_betas, *needed)))

    @property
    def is_compacting(self) -> bool:
        """Whether it asks for the server's summary, and for no answer."""
        return "compaction" in self.extra_fields

    def body(self, *, stream: bool = True) -> bytes:
        return request_body(
            self.profile,
            self.rendered,
            self.marks,
            extra_tail=self.tail,
            extra_fields=self.extra_fields,
            stream=stream,
            max_tokens=self.max_tokens,
        )

    def fork(self, tail_text: str, *, max_tokens: int | None = None) -> RequestPlan:
        """The same conversation up to its last complete round, with one more user text.

        Profile and marks are those of the main loop, so that the fork reads its cache. A prompt that waits for its
        answer stays behind.
        """
        tail: JsonObject = {"type": "text", "text": tail_text}
        return replace(self._complete(), tail=(tail,), max_tokens=max_tokens)

    def compacting(self, field: JsonObject) -> RequestPlan:
        """The same conversation up to its last complete round, for the server to summarise."""
        return replace(self._complete(), extra_fields={"compaction": field})

    def _complete(self) -> RequestPlan:
        rendered = self.rendered.upto(complete_message_count(self.rendered))
        return replace(self, rendered=rendered, marks=place_marks(self.profile, rendered), extra_fields={})


def complete_message_count(rendered: RenderedConversation) -> int:
    """How many messages stand up to the end of the last complete round: a response without calls, or one whose calls
    are answered together with the answers. 0 if there is none."""
    for at in range(len(rendered.messages) - 1, -1, -1):
        message = rendered.messages[at]
        if message.role == "assistant":
            has_calls = any(part.kind == "tool_use" for part in message.parts)
            if not has_calls:
                return at + 1
            return at + 2 if at + 1 < len(rendered.messages) else _before(rendered, at)
    return 0


def _before(rendered: RenderedConversation, at: int) -> int:
    """The count for the part before message `at`, whose calls are still open."""
    return complete_message_count(rendered.upto(at))
