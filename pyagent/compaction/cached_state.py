"""What a server was told to drop from its cache: a value, passed in and returned."""

from __future__ import annotations

from dataclasses import dataclass

from pyagent.messages import JsonObject


@dataclass(frozen=True, slots=True)
class EditBatch:
    """Results dropped together, registered at the user message that was newest then."""

    anchor_uuid: str
    tool_use_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CachedEdits:
    """All edits of a conversation since its last boundary."""

    sent: tuple[EditBatch, ...] = ()
    """Repeated at their place with every request, so that the prefix stays the same."""
    pending: EditBatch | None = None
    """Goes out with the next request, as new."""

    @property
    def dropped_ids(self) -> frozenset[str]:
        batches = (*self.sent, *((self.pending,) if self.pending else ()))
        return frozenset(use_id for batch in batches for use_id in batch.tool_use_ids)

    def answered(self) -> CachedEdits:
        """After a response to the request that carried the pending batch."""
        return CachedEdits((*self.sent, self.pending)) if self.pending else self

    def to_json(self) -> JsonObject:
        return {"sent": [[batch.anchor_uuid, list(batch.tool_use_ids)] for batch in self.sent]}

    @classmethod
    def from_json(cls, raw: JsonObject) -> CachedEdits:
        return cls(tuple(EditBatch(anchor, tuple(ids)) for anchor, ids in raw.get("sent", [])))
