"""Prompts that were sent and not heard of since: they stay in sight until the agent shows them itself."""

from __future__ import annotations

from pyagent.events import (
    ConversationClosed,
    Event,
    PromptReturned,
    QueueChanged,
    RecordCommitted,
    TurnFailed,
    TurnFinished,
)
from pyagent.log import UserEntry


class SentPrompts:
    """What was sent, oldest first, until it begins a turn, waits in the agent's own queue, or comes back.

    Between Enter and the first word of the agent lie milliseconds, or seconds on a busy machine that is still loading
    what the first turn needs: what was typed must not be nowhere meanwhile.
    """

    def __init__(self) -> None:
        self._sent: list[tuple[str, str]] = []
        """Each as the model gets it and as it was typed."""

    @property
    def shown(self) -> tuple[str, ...]:
        """As they were typed."""
        return tuple(shown for _, shown in self._sent)

    def add(self, text: str, shown: str) -> None:
        self._sent.append((text, shown or text))

    def take(self, event: Event) -> None:
        """Forget what the agent now tells of."""
        match event:
            case RecordCommitted(is_replay=False) if isinstance(event.record.payload, UserEntry):
                if event.record.payload.origin == "prompt":
                    self._heard_of(event.record.payload.text)
            case QueueChanged(prompts=prompts):
                for _, text in prompts:
                    self._heard_of(text)
            case PromptReturned() | TurnFinished() | TurnFailed() | ConversationClosed():
                # A text the agent had to change is not recognised; none outlives the turn it was sent for or during.
                self._sent.clear()
            case _:
                pass

    def _heard_of(self, text: str) -> None:
        heard = next((sent for sent in self._sent if sent[0] == text), None)
        if heard is not None:
            self._sent.remove(heard)
