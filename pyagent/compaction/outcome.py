"""What a layer answers: the records to write and what they did, or why it did nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyagent.events import CompactionFinished
from pyagent.log import Payload
from pyagent.messages import JsonObject

Trigger: TypeAlias = Literal["manual", "auto"]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to append. The conversation gives it its sequence number and time when it writes it."""

    uuid: str
    payload: Payload
    tx: str = ""


@dataclass(frozen=True, slots=True)
class ResultsCleared:
    """Old tool results now read as placeholders."""

    count: int
    freed_tokens: int
    idle_s: float
    """The pause that made it worth while, seconds."""
    is_asked_for: bool = False
    """A person chose it, however long the pause was."""


@dataclass(frozen=True, slots=True)
class EditsQueued:
    """Old tool results the server is told to drop, while the local view stays as it is."""

    tool_use_ids: tuple[str, ...]
    freed_tokens: int


@dataclass(frozen=True, slots=True)
class RoundsSnipped:
    """Superseded reads and repeated failures that left the view."""

    count: int
    freed_tokens: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoundsFolded:
    """Finished stretches that now read as one line each."""

    folds: int
    freed_tokens: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction that is ready to be committed. Figures in tokens, seconds and dollars."""

    trigger: Trigger
    layer: str
    before_tokens: int
    after_tokens: int
    calls: int
    duration_s: float
    cost_usd: float | None
    receipt: JsonObject
    fallback_reason: str = ""
    """Why the lighter or better way was not taken (no model could summarise, the notes were stale …)."""

    def finished_event(self) -> CompactionFinished:
        """The event to send once the records stand in the log."""
        return CompactionFinished(
            self.trigger,
            self.layer,
            self.before_tokens,
            self.after_tokens,
            self.calls,
            self.duration_s,
            self.cost_usd,
            self.receipt,
        )


@dataclass(frozen=True, slots=True)
class MediaDropped:
    """Images and documents that no request carries any more."""

    count: int
    freed_tokens: int


LayerFacts: TypeAlias = ResultsCleared | EditsQueued | RoundsSnipped | RoundsFolded | Compacted | MediaDropped


@dataclass(frozen=True, slots=True)
class Applied:
    records: tuple[NewRecord, ...]
    """To be written in this order, all in one go."""
    facts: LayerFacts


@dataclass(frozen=True, slots=True)
class Declined:
    """Nothing changed. `reason` is a sentence fit to be shown."""

    reason: str
    is_failure: bool = False
    """True if the layer tried and failed, False if there was nothing to do or it may not run."""
    records: tuple[NewRecord, ...] = ()
    """What to write all the same: the failure."""


LayerOutcome: TypeAlias = Applied | Declined
