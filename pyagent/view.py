"""What the model sees: references to log entries, in order, with the overlays that ops put on them.

A view is immutable. Appending keeps the `epoch`; every other change (an op, a boundary, an undo) starts a new one,
so whatever was derived from a view may be extended while the epoch stands and must be looked at anew when it moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyagent.log import AssistantEntry, Boundary, ClearResults, Fold, Record, Repair, Snip, UserEntry, ViewOp
from pyagent.messages import (
    Block,
    JsonObject,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)


@dataclass(frozen=True, slots=True)
class Overlay:
    """What ops changed about one entry. `ops` are their sequence numbers, which make it a key for caches."""

    ops: tuple[int, ...] = ()
    cleared: Mapping[str, str] = field(default_factory=dict)
    """tool_use id → placeholder, for the results of this entry that read as cleared."""
    dropped_blocks: frozenset[int] = frozenset()
    is_thinking_dropped: bool = False
    folded_text: str | None = None
    """The entry (the first of a folded stretch) reads as this user text."""
    answers: tuple[tuple[str, str], ...] = ()
    """(tool_use id, error text): results made up for uses of this entry that were never answered."""


_PLAIN = Overlay()


@dataclass(frozen=True, slots=True)
class ViewItem:
    """One entry as it stands in the view."""

    record: Record
    overlay: Overlay = _PLAIN

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """Equal keys mean equal content: the cache key for rendering and counting."""
        return self.record.uuid, self.overlay.ops

    @property
    def uuid(self) -> str:
        return self.record.uuid

    @property
    def entry(self) -> UserEntry | AssistantEntry:
        payload = self.record.payload
        assert isinstance(payload, UserEntry | AssistantEntry)
        return payload

    @property
    def is_user(self) -> bool:
        return self.overlay.folded_text is not None or isinstance(self.record.payload, UserEntry)

    @property
    def is_prompt(self) -> bool:
        """Whether a person typed it."""
        entry = self.record.payload
        return isinstance(entry, UserEntry) and entry.origin == "prompt" and self.overlay.folded_text is None

    def user_blocks(self) -> tuple[Block, ...]:
        """The blocks of a user item with its overlay applied."""
        if self.overlay.folded_text is not None:
            return (TextBlock(self.overlay.folded_text),)
        entry = self.record.payload
        assert isinstance(entry, UserEntry)
        if self.overlay is _PLAIN:
            return entry.content
        return tuple(
            replace(block, content=(TextBlock(self.overlay.cleared[block.tool_use_id]),))
            if isinstance(block, ToolResultBlock) and block.tool_use_id in self.overlay.cleared
            else block
            for index, block in enumerate(entry.content)
            if index not in self.overlay.dropped_blocks
        )

    def assistant_content(self, *, with_thinking: bool) -> tuple[JsonObject, ...]:
        """The raw blocks of an assistant item with its overlay applied, with or without its thinking."""
        entry = self.record.payload
        assert isinstance(entry, AssistantEntry)
        keep_thinking = with_thinking and not self.overlay.is_thinking_dropped
        return tuple(
            raw
            for index, raw in enumerate(entry.content)
            if index not in self.overlay.dropped_blocks
            and (keep_thinking or raw.get("type") not in ("thinking", "redacted_thinking"))
        )

    def answer_blocks(self) -> tuple[ToolResultBlock, ...]:
        """Error results made up by a repair for this assistant item's unanswered uses."""
        return tuple(
            ToolResultBlock(use_id, (TextBlock(text),), is_error=True) for use_id, text in self.overlay.answers
        )

    def blocks(self) -> tuple[Block, ...]:
        """The item's own blocks, typed, thinking included."""
        if self.is_user:
            return self.user_blocks()
        entry = self.entry
        return tuple(
            block
            for index, block in enumerate(entry.blocks if isinstance(entry, AssistantEntry) else ())
            if index not in self.overlay.dropped_blocks
            and not (self.overlay.is_thinking_dropped and isinstance(block, ThinkingBlock | RedactedThinkingBlock))
        )


@dataclass(frozen=True, slots=True)
class ToolUseRef:
    position: int
    """Index of the assistant item in the view."""
    block: ToolUseBlock


class ViewIndex:
    """Where the tool uses, results and prompts of a view stand. Shared by all views of an epoch and only ever extended,
    so that looking at one more entry costs one entry."""

    def __init__(self) -> None:
        self.length = 0
        self.uses: dict[str, ToolUseRef] = {}
        self.results: dict[str, int] = {}
        self.positions: dict[str, int] = {}
        self.prompts: list[int] = []
        self.assistants: list[int] = []

    def extend(self, items: tuple[ViewItem, ...]) -> None:
        for position in range(self.length, len(items)):
            item = items[position]
            self.positions[item.uuid] = position
            if not item.is_user:
                self.assistants.append(position)
                for block in item.blocks():
                    if isinstance(block, ToolUseBlock):
                        self.uses.setdefault(block.id, ToolUseRef(position, block))
                for use_id, _ in item.overlay.answers:
                    self.results.setdefault(use_id, position)
                continue
            if item.is_prompt:
                self.prompts.append(position)
            for block in item.user_blocks():
                if isinstance(block, ToolResultBlock):
                    self.results.setdefault(block.tool_use_id, position)
        self.length = max(self.length, len(items))


@dataclass(frozen=True, slots=True)
class View:
    """The model's view of the conversation: entries from the last boundary on, ops applied."""

    items: tuple[ViewItem, ...] = ()
    epoch: int = -1
    """Sequence number of the record that last changed the view other than by appending; -1 for none."""
    boundary: Record | None = None
    _index: ViewIndex = field(default_factory=ViewIndex, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ViewItem]:
        return iter(self.items)

    @property
    def index(self) -> ViewIndex:
        """The index, up to date for this view. It may know later entries of the same epoch too: positions at or
        beyond `len(self)` are none of this view's business."""
        if self._index.length < len(self.items):
            self._index.extend(self.items)
        return self._index

    def appended(self, record: Record) -> View:
        """The view with one more entry at its end."""
        if self._index.length > len(self.items):
            return View((*self.items, ViewItem(record)), self.epoch, self.boundary)
        return View((*self.items, ViewItem(record)), self.epoch, self.boundary, self._index)

    def position_of(self, uuid: str) -> int | None:
        position = self.index.positions.get(uuid)
        return position if position is not None and position < len(self.items) else None

    def tool_use(self, use_id: str) -> ToolUseRef | None:
        ref = self.index.uses.get(use_id)
        return ref if ref is not None and ref.position < len(self.items) else None

    def result_position(self, use_id: str) -> int | None:
        position = self.index.results.get(use_id)
        return position if position is not None and position < len(self.items) else None

    def result_block(self, use_id: str) -> ToolResultBlock | None:
        """The result of a use as it reads in the view."""
        position = self.result_position(use_id)
        if position is None:
            return None
        item = self.items[position]
        blocks: Iterable[Block] = item.user_blocks() if item.is_user else item.answer_blocks()
        return next((b for b in blocks if isinstance(b, ToolResultBlock) and b.tool_use_id == use_id), None)

    def is_cleared(self, use_id: str) -> bool:
        position = self.result_position(use_id)
        return position is not None and use_id in self.items[position].overlay.cleared

    def open_tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """Uses of the last response that no result answers yet: while there are any, a tool loop is open."""
        for item in reversed(self.items):
            if not item.is_user:
                return tuple(
                    block
                    for block in item.blocks()
                    if isinstance(block, ToolUseBlock) and self.result_position(block.id) is None
                )
        return ()

    @property
    def last_assistant(self) -> ViewItem | None:
        for item in reversed(self.items):
            if not item.is_user:
                return item
        return None

    @property
    def last_prompt(self) -> ViewItem | None:
        for item in reversed(self.items):
            if item.is_prompt:
                return item
        return None

    def idle_s(self, now: datetime) -> float:
        """Seconds since the last response; 0 when there is none."""
        last = self.last_assistant
        return 0.0 if last is None else max((now - last.record.at).total_seconds(), 0.0)

    def with_op(self, op: ViewOp, seq: int | None = None) -> View:
        """The view with `op` applied as record `seq` (by default as if it were written next)."""
        if seq is None:
            seq = max([self.epoch, *(item.record.seq for item in self.items)], default=-1) + 1
        match op:
            case ClearResults():
                items = self._cleared(op, seq)
            case Snip():
                gone = set(op.uuids)
                items = tuple(item for item in self.items if item.uuid not in gone)
            case Fold():
                items = self._folded(op, seq)
            case Repair():
                items = self._repaired(op, seq)
        return View(items, seq, self.boundary)

    def with_boundary(self, record: Record, entries: Mapping[str, Record]) -> View:
        """The view a boundary lays out. Entries that stand in this view already keep their overlays.

        `entries` must hold every entry the layout names; one it does not hold is left out.
        """
        boundary = record.payload
        assert isinstance(boundary, Boundary)
        present = {item.uuid: item for item in self.items}
        items = tuple(
            present[uuid] if uuid in present else ViewItem(entries[uuid])
            for uuid in boundary.layout
            if uuid in present or uuid in entries
        )
        return View(items, record.seq, record)

    def _cleared(self, op: ClearResults, seq: int) -> tuple[ViewItem, ...]:
        by_position: dict[int, dict[str, str]] = {}
        for use_id, placeholder in op.placeholders.items():
            position = self.result_position(use_id)
            if position is not None and self.items[position].is_user:
                by_position.setdefault(position, {})[use_id] = placeholder
        items = list(self.items)
        for position, placeholders in by_position.items():
            overlay = items[position].overlay
            items[position] = ViewItem(
                items[position].record,
                replace(overlay, ops=(*overlay.ops, seq), cleared={**overlay.cleared, **placeholders}),
            )
        return tuple(items)

    def _folded(self, op: Fold, seq: int) -> tuple[ViewItem, ...]:
        folded = set(op.uuids)
        items: list[ViewItem] = []
        is_placed = False
        for item in self.items:
            if item.uuid not in folded:
                items.append(item)
            elif not is_placed:
                items.append(ViewItem(item.record, Overlay(ops=(seq,), folded_text=op.text)))
                is_placed = True
        return tuple(items)

    def _repaired(self, op: Repair, seq: int) -> tuple[ViewItem, ...]:
        dropped: dict[str, set[int]] = {}
        for place in (*op.dropped_results, *op.dropped_blocks):
            uuid, _, number = place.rpartition("/")
            dropped.setdefault(uuid, set()).add(int(number))
        answers: dict[int, list[tuple[str, str]]] = {}
        for use_id, text in op.answers.items():
            ref = self.tool_use(use_id)
            if ref is not None:
                answers.setdefault(ref.position, []).append((use_id, text))
        items: list[ViewItem] = []
        for position, item in enumerate(self.items):
            overlay = item.overlay
            gone = dropped.get(item.uuid, set())
            loses_thinking = item.uuid in op.dropped_thinking
            if gone or loses_thinking or position in answers:
                overlay = replace(
                    overlay,
                    ops=(*overlay.ops, seq),
                    dropped_blocks=overlay.dropped_blocks | gone,
                    is_thinking_dropped=overlay.is_thinking_dropped or loses_thinking,
                    answers=(*overlay.answers, *answers.get(position, ())),
                )
                item = ViewItem(item.record, overlay)
            items.append(item)
        return tuple(items)
