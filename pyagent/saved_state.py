"""A state on one line of the log, so that a reader can begin there and leave the rest of a long file unread.

What is saved names the earlier records that still matter (what stands in the view, files that are known, settings …)
by their byte offsets, and adds what no single record holds: overlays, totals, breakers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pyagent.log import (
    AssistantEntry,
    Boundary,
    CompactionFailed,
    FileSeen,
    Pin,
    ProfileRecorded,
    PromptQueued,
    Record,
    SessionStarted,
    SettingChanged,
    StateSaved,
    ToolRan,
    UserEntry,
)
from pyagent.messages import JsonObject
from pyagent.state import Branch, ConversationState, KnownNotes, ModelTotal, WorkDone
from pyagent.view import Overlay, View, ViewItem

OffsetOf = Callable[[int], int | None]
RecordAt = Callable[[int, int], Record]
"""(sequence number, byte offset) → the record. Raises ValueError if it is not there."""


def saved_state(state: ConversationState, offset_of: OffsetOf) -> StateSaved | None:
    """The state as it is now; None while a transaction is open, or if a record it needs has no place in the file."""
    if state.open_transactions:
        return None
    try:
        body: JsonObject = {
            "branch": _places(_needed_of_branch(state), offset_of),
            "session": _places(_needed_of_session(state), offset_of),
            "view": [[item.uuid, _overlay_to_json(item.overlay)] for item in state.view],
            "epoch": state.view.epoch,
            "boundary": state.view.boundary.seq if state.view.boundary is not None else -1,
            "totals": _totals_to_json(state.totals),
            "source_totals": _totals_to_json(state.source_totals),
            "tracking": state.tracking,
            "notes": asdict(state.notes),
            "notes_written": state.notes_written,
            "work": asdict(state.work),
        }
    except _NoPlaceError:
        return None
    return StateSaved(state.head_seq, body)


class _NoPlaceError(Exception):
    """A record is not in the file."""


def _places(records: Iterable[Record], offset_of: OffsetOf) -> list[list[int]]:
    places: list[list[int]] = []
    for record in sorted(records, key=lambda record: record.seq):
        offset = offset_of(record.seq)
        if offset is None:
            raise _NoPlaceError
        places.append([record.seq, offset])
    return places


def _needed_of_branch(state: ConversationState) -> Iterable[Record]:
    """What the branch's own part of the fold, and those who look back along the branch, need of earlier records."""
    needed = {item.record.seq: item.record for item in state.view}
    needed |= {record.seq: record for record in state.boundaries}
    in_force = {id(seen) for all_seen in state.files.values() for seen in all_seen} | {id(pin) for pin in state.pins}
    paths: set[str] = set()
    models: set[str] = set()
    has_tasks = False
    for record in reversed(state.branch):
        match record.payload:
            case Pin() as pin if id(pin) in in_force:
                needed[record.seq] = record
            case FileSeen() as seen if id(seen) in in_force:
                is_shown = (
                    state.view.result_position(seen.shown_by) is not None
                    or state.view.position_of(seen.shown_by) is not None
                )
                if is_shown or seen.path not in paths:
                    needed[record.seq] = record
                paths.add(seen.path)
            case ToolRan(display=display) if not has_tasks and isinstance(display.get("tasks"), list):
                has_tasks = True
                needed[record.seq] = record
            case AssistantEntry(model=model) if model not in models:
                models.add(model)
                needed[record.seq] = record
            case _:
                pass
    return needed.values()


def _needed_of_session(state: ConversationState) -> Iterable[Record]:
    needed: list[Record] = []
    names: set[str] = set()
    for record in reversed(state.records):
        match record.payload:
            case SettingChanged(name=name) if name not in names:
                names.add(name)
                needed.append(record)
            case SessionStarted() | ProfileRecorded() | CompactionFailed():
                needed.append(record)
            case PromptQueued(prompt_id=prompt_id) if prompt_id in state.queued_prompts:
                needed.append(record)
            case _:
                pass
    return needed


def restored_state(saved: StateSaved, record_at: RecordAt) -> ConversationState:
    """The state to which the records behind `saved` (itself included) are to be applied.

    Raises:
        ValueError: the record does not fit the file.
    """
    body = saved.body
    try:
        branch_records = [record_at(seq, offset) for seq, offset in body["branch"]]
        session_records = [record_at(seq, offset) for seq, offset in body["session"]]
        entries = {r.uuid: r for r in branch_records if isinstance(r.payload, UserEntry | AssistantEntry)}
        items = tuple(ViewItem(entries[uuid], _overlay_from_json(overlay)) for uuid, overlay in body["view"])
        by_seq = {record.seq: record for record in branch_records}
        boundary = by_seq[body["boundary"]] if body["boundary"] != -1 else None
        branch = Branch(
            records=branch_records,
            entries=entries,
            view=View(items, body["epoch"], boundary),
            boundaries=[record for record in branch_records if isinstance(record.payload, Boundary)],
            notes=KnownNotes(**body["notes"]),
            work=WorkDone(**body.get("work", {})),
        )
        for record in branch_records:
            match record.payload:
                case FileSeen() as seen:
                    branch.files.setdefault(seen.path, []).append(seen)
                case Pin(pin_id=pin_id) as pin:
                    branch.pins[pin_id] = pin
                case _:
                    pass
        return ConversationState.beginning_at(
            saved.head_seq,
            branch,
            session_records,
            totals=_totals_from_json(body["totals"]),
            source_totals=_totals_from_json(body["source_totals"]),
            tracking=body["tracking"],
            notes_written=body["notes_written"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a saved state: {error}") from error


def leave_to_file(state: ConversationState, record: Record) -> None:
    """Keep of a state what a reader would that begins at `record`, the newest one: the rest is in the file.

    `ConversationState.complete` brings it back for whoever looks further back.
    """
    saved = record.payload
    assert isinstance(saved, StateSaved)

    def record_at(seq: int, offset: int) -> Record:
        known = state.record(seq)
        if known is None:
            raise ValueError(f"no record {seq}")
        return known

    later = restored_state(saved, record_at)
    later.apply(record)
    state.shorten(later)


def _totals_to_json(totals: Mapping[str, ModelTotal]) -> JsonObject:
    return {name: asdict(total) for name, total in totals.items()}


def _totals_from_json(raw: JsonObject) -> dict[str, ModelTotal]:
    return {name: ModelTotal(**total) for name, total in raw.items()}


def _overlay_to_json(overlay: Overlay) -> JsonObject:
    plain: dict[str, Any] = {
        "ops": list(overlay.ops),
        "cleared": dict(overlay.cleared),
        "dropped": sorted(overlay.dropped_blocks),
        "no_thinking": overlay.is_thinking_dropped,
        "folded": overlay.folded_text,
        "answers": [list(answer) for answer in overlay.answers],
    }
    return {name: value for name, value in plain.items() if value not in ([], {}, False, None)}


def _overlay_from_json(raw: JsonObject) -> Overlay:
    return Overlay(
        ops=tuple(raw.get("ops", ())),
        cleared=raw.get("cleared", {}),
        dropped_blocks=frozenset(raw.get("dropped", ())),
        is_thinking_dropped=bool(raw.get("no_thinking", False)),
        folded_text=raw.get("folded"),
        answers=tuple((use_id, text) for use_id, text in raw.get("answers", ())),
    )
