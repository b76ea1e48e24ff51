"""The fold of the log: everything a conversation knows, rebuilt from its records and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyagent.log import (
    AssistantEntry,
    Boundary,
    CallCost,
    ClearResults,
    CompactionFailed,
    FileSeen,
    Fold,
    NotesSaved,
    Pin,
    ProfileRecorded,
    PromptQueued,
    PromptTaken,
    Record,
    Repair,
    Revoke,
    SessionStarted,
    SetHead,
    SettingChanged,
    Snip,
    ToolRan,
    TrackingSaved,
    Unpin,
    UserEntry,
)
from pyagent.messages import JsonObject, Usage
from pyagent.view import View

MAIN_SOURCE = "conversation"
"""What the calls are counted under whose responses are entries."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The newest content of a file that was shown to the model and still belongs to its view."""

    seen: FileSeen
    is_visible: bool
    """False once the result that showed it was cleared: it may still be edited, but must be sent anew when read."""


@dataclass(frozen=True, slots=True)
class ModelTotal:
    """What one model cost in this session, over all its calls."""

    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float = 0.0
    has_unknown_price: bool = False

    def plus(self, usage: Usage, cost_usd: float | None) -> ModelTotal:
        return ModelTotal(
            self.calls + 1,
            self.prompt_tokens + usage.prompt_tokens,
            self.output_tokens + usage.output_tokens,
            self.cache_read_tokens + usage.cache_read_input_tokens,
            self.cache_write_tokens + usage.cache_creation_input_tokens,
            self.cost_usd + (cost_usd or 0.0),
            self.has_unknown_price or cost_usd is None,
        )


@dataclass(frozen=True, slots=True)
class WorkDone:
    """What was done on a branch, in numbers that no part of it tells alone."""

    added_lines: int = 0
    removed_lines: int = 0
    waited_s: float = 0.0
    """In which the model's answers were waited for."""

    def plus(self, record: Record) -> WorkDone:
        match record.payload:
            case ToolRan(display={"patch": [*hunks]}):
                lines = [str(line) for hunk in hunks if isinstance(hunk, dict) for line in _list(hunk.get("lines"))]
                added = sum(line.startswith("+") for line in lines)
                removed = sum(line.startswith("-") for line in lines)
                return WorkDone(self.added_lines + added, self.removed_lines + removed, self.waited_s)
            case AssistantEntry(request_started_at=datetime() as started_at):
                waited_s = self.waited_s + (record.at - started_at).total_seconds()
                return WorkDone(self.added_lines, self.removed_lines, waited_s)
            case _:
                return self


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


@dataclass(slots=True)
class Branch:
    """The part of the fold that follows the current branch and is rebuilt when history is moved or revoked."""

    records: list[Record] = field(default_factory=list)
    entries: dict[str, Record] = field(default_factory=dict)
    pending: dict[str, list[Record]] = field(default_factory=dict)
    view: View = field(default_factory=View)
    files: dict[str, list[FileSeen]] = field(default_factory=dict)
    boundaries: list[Record] = field(default_factory=list)
    pins: dict[str, Pin] = field(default_factory=dict)
    notes: KnownNotes = field(default_factory=lambda: KnownNotes())
    work: WorkDone = field(default_factory=WorkDone)


@dataclass(frozen=True, slots=True)
class KnownNotes:
    """The background notes of the current branch."""

    text: str = ""
    covered_uuid: str = ""
    """The last entry they tell of; empty once a boundary came after them."""
    updates: int = 0
    """Since the last boundary."""
    tokens: int = 0
    """Size of the context at the last update, or right behind a boundary that came after it."""


class ConversationState:
    """Everything derived from the log. Owned by one conversation, which applies each record as it is written.

    What is said of the conversation (view, known files, boundaries) follows the current branch; what is said of the
    session (settings, cost, queued prompts, breakers) follows the order of the file.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        self.session: SessionStarted | None = None
        self.settings: dict[str, str] = {}
        self.profiles: dict[str, JsonObject] = {}
        self.queued: dict[str, PromptQueued] = {}
        self.tracking: JsonObject = {}
        self.totals: dict[str, ModelTotal] = {}
        """By model."""
        self.source_totals: dict[str, ModelTotal] = {}
        """By what the calls were for: `MAIN_SOURCE`, or the query source of a call that is no entry."""
        self.compaction_failures: list[CompactionFailed] = []
        self.notes_written = ""
        """The newest notes of any branch: what the notes file holds unless a person edited it."""
        self._parents: dict[int, int] = {}
        self._by_seq: dict[int, Record] = {}
        self._head = -1
        self._branch = Branch()
        self._base_seq = -1
        self._base = Branch()
        for record in records:
            self.apply(record)

    @classmethod
    def beginning_at(
        cls,
        head_seq: int,
        base: Branch,
        session_records: Iterable[Record],
        *,
        totals: dict[str, ModelTotal],
        source_totals: dict[str, ModelTotal],
        tracking: JsonObject,
        notes_written: str,
    ) -> ConversationState:
        """A state that goes on from `head_seq` and holds of what came before only what is given here."""
        state = cls()
        for record in session_records:
            state._apply_to_session(record)
        state.totals, state.source_totals = totals, source_totals
        state.tracking, state.notes_written = tracking, notes_written
        known = {record.seq: record for record in (*session_records, *base.records)}
        state._by_seq = known
        state.records = [known[seq] for seq in sorted(known)]
        state._base_seq = state._head = head_seq
        state._base = base
        state._branch = _copied(base)
        return state

    @property
    def is_partial(self) -> bool:
        """Whether records from before a saved state were left unread: see `complete`."""
        return self._base_seq != -1

    @property
    def recent(self) -> tuple[Record, ...]:
        """The records of the current branch from where it began to be read."""
        return tuple(self._branch.records[len(self._base.records) :])

    def complete(self, records: Iterable[Record]) -> None:
        """Take the place of a state of all these records, which end with the ones known here."""
        whole = ConversationState(records)
        vars(self).update(vars(whole))

    def shorten(self, later: ConversationState) -> None:
        """Take the place of a state that says the same of now and holds less of what came before. The view's own items
        stay, so that what was rendered of them does."""
        view = self.view
        vars(self).update(vars(later))
        self._base.view = self._branch.view = view

    @property
    def queued_prompts(self) -> dict[str, str]:
        """What waits for its turn, oldest first: id → text, a command with its `!`."""
        signs = {"prompt": "", "shell": "!", "private_shell": "!!"}
        return {prompt_id: signs[queued.sort] + queued.text for prompt_id, queued in self.queued.items()}

    @property
    def view(self) -> View:
        return self._branch.view

    @property
    def next_seq(self) -> int:
        return self.records[-1].seq + 1 if self.records else 0

    @property
    def branch(self) -> tuple[Record, ...]:
        """All records of the current branch, oldest first."""
        return tuple(self._branch.records)

    @property
    def boundaries(self) -> tuple[Record, ...]:
        """The boundaries in force, oldest first."""
        return tuple(self._branch.boundaries)

    @property
    def notes(self) -> KnownNotes:
        return self._branch.notes

    @property
    def work(self) -> WorkDone:
        """What was done on the current branch."""
        return self._branch.work

    @property
    def pins(self) -> tuple[Pin, ...]:
        """What the user pinned, in that order."""
        return tuple(self._branch.pins.values())

    @property
    def open_transactions(self) -> tuple[str, ...]:
        """Transactions whose boundary never came: what they hold is in no view."""
        return tuple(self._branch.pending)

    @property
    def cost_usd(self) -> float:
        return sum(total.cost_usd for total in self.totals.values())

    def entry(self, uuid: str) -> Record | None:
        """An entry of the current branch, in the view or not."""
        return self._branch.entries.get(uuid)

    def record(self, seq: int) -> Record | None:
        return self._by_seq.get(seq)

    def parent_of(self, seq: int) -> int:
        """Sequence number of the record that this one continued; -1 for the first."""
        return self._parents.get(seq, -1)

    @property
    def head_seq(self) -> int:
        """The newest record of the current branch; -1 while there is none."""
        return self._head

    def known_file(self, path: str) -> KnownFile | None:
        """What the model was last shown of `path` (absolute), if that still belongs to its view."""
        for seen in reversed(self._branch.files.get(path, [])):
            if self.view.tool_use(seen.shown_by) is not None and self.view.result_position(seen.shown_by) is not None:
                return KnownFile(seen, is_visible=not self.view.is_cleared(seen.shown_by))
            if self.view.position_of(seen.shown_by) is not None:
                return KnownFile(seen, is_visible=True)
        return None

    @property
    def files(self) -> Mapping[str, list[FileSeen]]:
        """What was shown of each path on this branch, oldest first."""
        return self._branch.files

    def files_by_use(self) -> tuple[FileSeen, ...]:
        """The newest record of each file that was read, edited or written on this branch, most recently used first."""
        newest = (seen[-1] for seen in self._branch.files.values())
        order = {id(r.payload): position for position, r in enumerate(self._branch.records)}
        return tuple(sorted(newest, key=lambda seen: -order.get(id(seen), -1)))

    def apply(self, record: Record) -> None:
        """Take in the next record. Costs that record alone; only `SetHead` and `Revoke` refold the branch."""
        self.records.append(record)
        self._by_seq[record.seq] = record
        self._apply_to_session(record)
        match record.payload:
            case SetHead(target_seq=seq):
                if seq in self._parents or seq == self._base_seq:
                    self._head = seq
                self._advance(record)
                self._refold(record.seq)
            case Revoke():
                self._advance(record)
                self._refold(record.seq)
            case _:
                self._advance(record)
                _fold_one(self._branch, record, frozenset(), frozenset())

    def _advance(self, record: Record) -> None:
        self._parents[record.seq] = self._head
        self._head = record.seq
        self._branch.records.append(record)

    def _refold(self, epoch: int) -> None:
        path: list[Record] = []
        seq = self._head
        while seq != self._base_seq:
            path.append(self._by_seq[seq])
            seq = self._parents[seq]
        path.reverse()
        gone_seqs, gone_txs = _revoked(path)
        branch = _copied(self._base)
        branch.records += path
        for record in path:
            _fold_one(branch, record, gone_seqs, gone_txs)
        branch.view = View(branch.view.items, epoch, branch.view.boundary)
        self._branch = branch

    def _apply_to_session(self, record: Record) -> None:
        match record.payload:
            case SessionStarted():
                self.session = record.payload
            case SettingChanged(name=name, value=value):
                self.settings[name] = value
            case ProfileRecorded(profile_id=profile_id, body=body):
                self.profiles[profile_id] = body
            case PromptQueued(prompt_id=prompt_id) as queued:
                self.queued[prompt_id] = queued
            case PromptTaken(prompt_id=prompt_id):
                self.queued.pop(prompt_id, None)
            case TrackingSaved(state=state):
                self.tracking = state
            case (
                AssistantEntry(model=model, usage=usage, cost_usd=cost_usd)
                | CallCost(model=model, usage=usage, cost_usd=cost_usd)
            ):
                self.totals[model] = self.totals.get(model, ModelTotal()).plus(usage, cost_usd)
                source = record.payload.source if isinstance(record.payload, CallCost) else MAIN_SOURCE
                self.source_totals[source] = self.source_totals.get(source, ModelTotal()).plus(usage, cost_usd)
            case CompactionFailed():
                self.compaction_failures.append(record.payload)
            case NotesSaved(text=text):
                self.notes_written = text
            case _:
                pass


def _copied(branch: Branch) -> Branch:
    """A branch that can be folded on without changing this one."""
    return Branch(
        records=list(branch.records),
        entries=dict(branch.entries),
        view=branch.view,
        files={path: list(seen) for path, seen in branch.files.items()},
        boundaries=list(branch.boundaries),
        pins=dict(branch.pins),
        notes=branch.notes,
        work=branch.work,
    )


def _revoked(path: list[Record]) -> tuple[frozenset[int], frozenset[str]]:
    """Which ops and transactions of a branch no longer hold. A revoke can be revoked, so the last word counts."""
    gone_seqs: set[int] = set()
    gone_txs: set[str] = set()
    by_seq = {record.seq: record for record in path}
    for record in reversed(path):
        if record.seq in gone_seqs or not isinstance(record.payload, Revoke):
            continue
        gone_seqs.add(record.payload.target_seq)
        target = by_seq.get(record.payload.target_seq)
        if target is not None and target.tx:
            gone_txs.add(target.tx)
    return frozenset(gone_seqs), frozenset(gone_txs)


def _fold_one(branch: Branch, record: Record, gone_seqs: frozenset[int], gone_txs: frozenset[str]) -> None:
    payload = record.payload
    branch.work = branch.work.plus(record)
    if isinstance(payload, UserEntry | AssistantEntry):
        branch.entries[record.uuid] = record
    if record.seq in gone_seqs or (record.tx and record.tx in gone_txs):
        return
    match payload:
        case Boundary():
            branch.boundaries.append(record)
            branch.notes = KnownNotes(branch.notes.text, tokens=payload.post_tokens)
            held = branch.pending.pop(record.tx, [])
            for earlier in held:
                if isinstance(earlier.payload, ClearResults | Snip | Fold | Repair):
                    branch.view = branch.view.with_op(earlier.payload, earlier.seq)
            branch.view = branch.view.with_boundary(record, branch.entries)
            for earlier in held:
                if isinstance(earlier.payload, FileSeen):
                    branch.files.setdefault(earlier.payload.path, []).append(earlier.payload)
        case _ if record.tx:
            branch.pending.setdefault(record.tx, []).append(record)
        case UserEntry() | AssistantEntry():
            branch.view = branch.view.appended(record)
        case ClearResults() | Snip() | Fold() | Repair():
            branch.view = branch.view.with_op(payload, record.seq)
        case FileSeen():
            branch.files.setdefault(payload.path, []).append(payload)
        case NotesSaved(text=text, covered_uuid=covered_uuid, tokens=tokens):
            branch.notes = KnownNotes(text, covered_uuid, branch.notes.updates + 1, tokens)
        case Pin(pin_id=pin_id):
            branch.pins[pin_id] = payload
        case Unpin(pin_id=pin_id):
            branch.pins.pop(pin_id, None)
        case _:
            pass
