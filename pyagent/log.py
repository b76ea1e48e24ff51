"""The append-only log of a conversation: what each record may hold.

Three sorts of payload: *entries* (what the model may see), *ops* (what changes the view of entries, never an
entry), and *facts* (everything else a resume must know). A record is never rewritten or deleted. Its line in the
session file is made and read by `pyagent.record_lines`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias

from pyagent.messages import Block, JsonObject, Usage, parse_block, text_of

UserOrigin: TypeAlias = Literal["prompt", "tool_results", "summary", "attachment", "reminder", "continuation"]
"""Who wrote a user entry: the person, the tools, a compaction's summary, files and state set before the model,
a note of pyagent's, or the marker that asks the model to go on after a cut-off answer."""


# ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A message of the user's side, with the text as the model sees it, rendered once."""

    kind: ClassVar[str] = "user"
    content: tuple[Block, ...]
    origin: UserOrigin = "prompt"
    label: str = ""
    """What an attachment is, for the screen and for budgets: `memory:<path>`, `file:<path>`, `tasks`, `plan` …"""
    display: str = ""
    """The prompt as typed, where the model gets more (an expanded paste); empty if the same."""
    signed: JsonObject = field(default_factory=dict)
    """Of a summary the server signed: its `block`, sent in place of the text to whom it means something, and the
    `prefix_digest` of the messages it stands for."""

    @property
    def text(self) -> str:
        return text_of(self.content)


@dataclass(frozen=True, slots=True)
class AssistantEntry:
    """One whole response. `content` holds the blocks exactly as received."""

    kind: ClassVar[str] = "assistant"
    message_id: str
    model: str
    content: tuple[JsonObject, ...]
    stop_reason: str | None
    usage: Usage
    prefix_digest: str
    """Digest of the prefix it was sampled under; its signed thinking is sent again only behind that very prefix."""
    profile_id: str
    request_started_at: datetime | None = None
    """When its request began: the prompt cache's lifetime counts from there."""
    cache_ttl_s: int = 0
    """Lifetime of the cache entries its request asked for, seconds; 0 if it asked for none."""
    cost_usd: float | None = None
    """Price of the call; None where the model's price is unknown."""
    context_text_tokens: int = -1
    """The local estimate of the view that this response ended, itself included: its text, in tokens of the local
    encoding. `usage` is the server's count of the same, so that later estimates go on from it. -1: not measured."""
    context_fixed_tokens: int = 0
    """The part of that estimate which is in the model's own tokens: images, message frames."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(parse_block(raw) for raw in self.content)

    @property
    def text(self) -> str:
        return text_of(self.blocks)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A compaction's commit record: the entries named in `layout` are the view from here on."""

    kind: ClassVar[str] = "boundary"
    layout: tuple[str, ...]
    """Uuids of the new view's entries, in order: summary, kept messages, attachments."""
    trigger: Literal["manual", "auto"]
    layer: str
    """What made it: `full`, `session_memory`, `reactive`, `extractive`, `server`."""
    pre_tokens: int
    post_tokens: int
    messages_summarized: int
    kept: tuple[str, ...] = ()
    """Uuids in `layout` that stand before this compaction in the log."""
    summary_uuid: str = ""
    user_context: str = ""
    receipt: JsonObject = field(default_factory=dict)
    """What the row on the screen unfolds to: duration_s, calls, cost_usd, cached share, restored files …"""
    checkpoint: JsonObject = field(default_factory=dict)
    """State a reader needs that opens the file from here: see `ConversationState`."""


Entry: TypeAlias = UserEntry | AssistantEntry


# ── ops ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ClearResults:
    """Old tool results read as these placeholders from now on."""

    kind: ClassVar[str] = "clear_results"
    placeholders: dict[str, str]
    """tool_use id → the rendered placeholder."""
    reason: str = ""
    freed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Snip:
    """Entries that leave the view, always with their pairs."""

    kind: ClassVar[str] = "snip"
    uuids: tuple[str, ...]
    reason: str = ""
    freed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Fold:
    """A finished stretch of entries that reads as one rendered user text, standing where its first entry stood."""

    kind: ClassVar[str] = "fold"
    uuids: tuple[str, ...]
    text: str
    freed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Repair:
    """A correction written before a send, so that the same fault never comes back."""

    kind: ClassVar[str] = "repair"
    reason: str
    answers: dict[str, str] = field(default_factory=dict)
    """tool_use id → text of the error result that answers it, where no result ever came."""
    dropped_results: tuple[str, ...] = ()
    """`<entry uuid>/<block index>` of results without a use, or given twice."""
    dropped_blocks: tuple[str, ...] = ()
    """`<entry uuid>/<block index>` of other blocks the server will never take."""
    dropped_thinking: tuple[str, ...] = ()
    """Uuids of assistant entries whose thinking is no longer sent."""


@dataclass(frozen=True, slots=True)
class SetHead:
    """The conversation goes on from the record `target_seq`; what came after stays in the file, on its own branch."""

    kind: ClassVar[str] = "set_head"
    target_seq: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Takes back the op, boundary (with its whole transaction) or revoke at `target_seq`. What was said since stays."""

    kind: ClassVar[str] = "revoke"
    target_seq: int


ViewOp: TypeAlias = ClearResults | Snip | Fold | Repair


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SessionStarted:
    kind: ClassVar[str] = "session"
    schema_version: int
    session_id: str
    cwd: str
    version: str
    git_branch: str = ""
    forked_from: str = ""


@dataclass(frozen=True, slots=True)
class ProfileRecorded:
    """A request profile, content-addressed; see `pyagent.agent.wire.profile`."""

    kind: ClassVar[str] = "profile"
    profile_id: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class SettingChanged:
    """A session-wide setting: `title`, `mode`, `model`, `effort`, `cwd`. The last record of a name wins."""

    kind: ClassVar[str] = "setting"
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FileSeen:
    """The model knows this content of a file, as long as the result or entry that showed it stands in the view."""

    kind: ClassVar[str] = "file_seen"
    path: str
    sha256: str
    """Of the whole file's bytes at that moment."""
    shown_by: str
    """tool_use id, or uuid of the attachment entry, that carries the content."""
    how: Literal["read", "edit", "write", "restore"]
    is_partial: bool = False
    line_range: tuple[int, ...] = ()
    """First and last line shown, from 1; empty for the whole file."""


@dataclass(frozen=True, slots=True)
class ToolRan:
    """What the screen shows of a finished tool call beside the result: display data, never sent to the model."""

    kind: ClassVar[str] = "tool_ran"
    tool_use_id: str
    summary: str
    duration_s: float = 0.0
    display: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptQueued:
    """What was sent while work was under way; its turn comes when `PromptTaken` takes it."""

    kind: ClassVar[str] = "prompt_queued"
    prompt_id: str
    text: str
    display: str = ""
    """As typed, where the model gets more."""
    images: tuple[str, ...] = ()
    """Paths of the images that go with it."""
    sort: Literal["prompt", "shell", "private_shell"] = "prompt"
    """Text for the model, or a command of the person's own; a private one stays out of the context."""


@dataclass(frozen=True, slots=True)
class PromptTaken:
    """A queued prompt was sent, or went back to the input line."""

    kind: ClassVar[str] = "prompt_taken"
    prompt_id: str
    was_sent: bool = True


@dataclass(frozen=True, slots=True)
class ShellRan:
    """A command the person ran with `!`, for the screen. What the model was told of it is the entry `entry_uuid`."""

    kind: ClassVar[str] = "shell_ran"
    run_id: str
    command: str
    output: str
    is_error: bool = False
    duration_s: float = 0.0
    display: JsonObject = field(default_factory=dict)
    entry_uuid: str = ""
    """Empty if the model was told nothing."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """Usage of a call that is no entry (summary, notes, a broken stream): it counts for the bill, never the gauge."""

    kind: ClassVar[str] = "call_cost"
    source: str
    model: str
    usage: Usage
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class CompactionFailed:
    kind: ClassVar[str] = "compaction_failed"
    layer: str
    trigger: Literal["manual", "auto"]
    reason: str
    is_cancel: bool = False


@dataclass(frozen=True, slots=True)
class TrackingSaved:
    """State of the automatic layers between calls (failure counts and the like): a resume keeps the breakers."""

    kind: ClassVar[str] = "tracking"
    state: JsonObject


@dataclass(frozen=True, slots=True)
class NotesSaved:
    """The session's background notes were brought up to date. They tell of everything up to the entry `covered_uuid`,
    until a boundary on the same branch puts that entry out of reach."""

    kind: ClassVar[str] = "notes"
    text: str
    covered_uuid: str
    tokens: int = 0
    """Size of the context they were written from."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Words that stand behind every boundary; `is_file`: `text` is the path of a file to show there."""

    kind: ClassVar[str] = "pin"
    pin_id: str
    text: str
    is_file: bool = False
    source: str = ""
    """Where the words were taken from: a message ("the last answer"), or lines of a file ("/path:3-9"). Empty for a
    rule of the user's own."""


@dataclass(frozen=True, slots=True)
class Unpin:
    kind: ClassVar[str] = "unpin"
    pin_id: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    kind: ClassVar[str] = "turn_ended"
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NoticeShown:
    """A line for the person that a resumed screen shows again."""

    kind: ClassVar[str] = "notice"
    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class CheckpointTaken:
    """The work tree was saved as `commit` of the shadow repository."""

    kind: ClassVar[str] = "checkpoint"
    commit: str
    reason: Literal["turn", "bash", "turn_end", "rewind"]
    """Before a prompt, before a shell command, after a turn or a rewind that wrote, before a rewind. What changed
    since the one before is the agent's work if this is `bash` or `turn_end`, else the person's."""
    skipped: tuple[str, ...] = ()
    """Paths whose content is not in it: too large, or unreadable."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """What a `/rewind` did, for taking it back."""

    kind: ClassVar[str] = "rewound"
    head_seq: int
    """Where the conversation stood before; -1 if it was left as it is."""
    before_commit: str = ""
    """The work tree before files were restored, and after; empty if none were."""
    after_commit: str = ""


@dataclass(frozen=True, slots=True)
class StateSaved:
    """What the records before this one fold to, for a reader that begins here: see `pyagent.saved_state`."""

    kind: ClassVar[str] = "state_saved"
    head_seq: int
    body: JsonObject


@dataclass(frozen=True, slots=True)
class UnknownPayload:
    """A record of a kind this version does not know; `raw` is its whole line."""

    kind: ClassVar[str] = "unknown"
    raw: JsonObject


Fact: TypeAlias = (
    SessionStarted
    | ProfileRecorded
    | SettingChanged
    | FileSeen
    | ToolRan
    | PromptQueued
    | PromptTaken
    | ShellRan
    | CallCost
    | CompactionFailed
    | TrackingSaved
    | NotesSaved
    | Pin
    | Unpin
    | TurnEnded
    | NoticeShown
    | CheckpointTaken
    | Rewound
    | StateSaved
    | UnknownPayload
)
Payload: TypeAlias = Entry | Boundary | ViewOp | SetHead | Revoke | Fact


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the log. `seq` counts from 0 without gaps; `tx` names the transaction it belongs to, if any."""

    seq: int
    uuid: str
    at: datetime
    payload: Payload
    tx: str = ""
    extra: JsonObject = field(default_factory=dict)
    """Fields of the line that this version does not know."""

    @property
    def is_entry(self) -> bool:
        return isinstance(self.payload, UserEntry | AssistantEntry)
