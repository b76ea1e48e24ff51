"""What the agent tells its front ends: typed facts, never markup.

`RecordCommitted` carries every record as it enters the log, and a resumed session sends its records the same way,
so a front end folds one stream. The other events tell of what is under way and leave no trace of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from pyagent.choices import TerminalSettings
from pyagent.log import Record
from pyagent.messages import JsonObject
from pyagent.pages import Page


@dataclass(frozen=True, slots=True)
class GaugeFacts:
    """How full the context is. All figures in tokens; one shared count feeds gauge, trigger and `/context`."""

    used_tokens: int
    is_estimate: bool
    window_tokens: int
    effective_window_tokens: int
    warning_tokens: int
    error_tokens: int
    trigger_tokens: int
    blocking_tokens: int
    is_auto_compact_on: bool
    percent_left: int
    """Until auto-compact (or, with it off, until the effective window is full); 0 to 100."""
    state: Literal["ok", "warning", "error", "compact", "blocked"]


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The first event: which conversation this is. A resumed one's records follow."""

    session_id: str
    transcript_path: str
    cwd: str
    model: str
    mode: str
    git_branch: str
    is_offline: bool
    is_resumed: bool
    is_read_only: bool = False
    """Whether it is only looked at; how that came is told or asked next."""
    has_older: bool = False
    """Whether the records that follow are only the newest: `older` asks for more."""
    context_files: tuple[str, ...] = ()
    """Memory files that were loaded."""
    tool_names: tuple[str, ...] = ()
    terminal: TerminalSettings = field(default_factory=TerminalSettings)
    """What the settings ask of a terminal."""
    is_vim: bool = False
    """Whether the input line is to be edited as vim does."""
    insert_remaps: tuple[tuple[str, str], ...] = ()
    """Sequences of vim's insert mode and what they stand for: `jj` → `<Esc>`."""
    effort: str = ""
    """How much the model thinks; empty for its own default."""
    theme: str = ""
    """The colours the settings ask for; empty for the front end's own choice."""


@dataclass(frozen=True, slots=True)
class RecordCommitted:
    """A record stands in the log. `is_replay` is True while a resumed session is being shown."""

    record: Record
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class ReplayFinished:
    """All records of the resumed session were sent; what follows is live."""


@dataclass(frozen=True, slots=True)
class OlderRecords:
    """Answer to `older`: what stands right before the first record that was sent of a resumed session."""

    records: tuple[Record, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class TurnStarted:
    prompt_uuid: str


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """One API round begins. `source` is the query source (`repl_main_thread`, `sdk`, `compact` …)."""

    source: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    """The model is writing a tool call; `name` is the tool, `chars` how much of its input has come so far."""

    tool_use_id: str
    name: str
    chars: int


@dataclass(frozen=True, slots=True)
class StreamDiscarded:
    """What was streamed since `RequestStarted` is not part of the conversation: the stream broke or was refused."""

    reason: str


@dataclass(frozen=True, slots=True)
class WireEvent:
    """A raw streaming event of the API, for `--include-partial-messages`."""

    event: JsonObject


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The call failed in a way that may pass; it is made again in `delay_s` seconds unless cancelled."""

    attempt: int
    max_attempts: int
    delay_s: float
    reason: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class StreamSilent:
    """Nothing has come from the server for `silent_s` seconds; at `limit_s` the call is given up and made again.

    A `silent_s` of 0 ends it: something came, or the wait is over.
    """

    silent_s: float
    limit_s: float


@dataclass(frozen=True, slots=True)
class ToolStarted:
    tool_use_id: str
    name: str
    summary: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """New output of a running tool, already free of control sequences."""

    tool_use_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    tool_use_id: str
    name: str
    summary: str
    is_error: bool
    text: str
    duration_s: float
    display: JsonObject = field(default_factory=dict)
    """What a front end may show better than `text`: `{"patch": [...]}` for edits, `{"exit_code": n}` …"""


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """What a person is asked before a tool runs: the real thing, with nothing left out."""

    tool_name: str
    action: Literal["edit", "command", "read", "network", "other"]
    subject: str
    """The whole command, the resolved path, the host."""
    reason: str = ""
    """Why it is asked: the rule or the rule of thumb that was not met."""
    old_text: str | None = None
    new_text: str | None = None
    """Before and after, for a diff."""
    session_rule: str = ""
    """The rule that 'yes, for this session' would add; empty if only once is possible."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class PermissionNeeded:
    request_id: str
    tool_use_id: str
    question: PermissionQuestion


@dataclass(frozen=True, slots=True)
class PermissionSettled:
    """The dialog is over: answered, or withdrawn by an interrupt."""

    request_id: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class QuestionOption:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Something the model asks the person: options to choose from, and always room for an answer of their own."""

    header: str
    """A word or two that name the subject."""
    text: str
    options: tuple[QuestionOption, ...]
    is_multi_select: bool = False


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The model waits for a person's answers to these."""

    request_id: str
    tool_use_id: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class QuestionSettled:
    """The dialog is over: answered, turned down, or withdrawn by an interrupt."""

    request_id: str
    is_answered: bool


@dataclass(frozen=True, slots=True)
class GaugeMoved:
    gauge: GaugeFacts


@dataclass(frozen=True, slots=True)
class CostMoved:
    """The bill so far; `is_exact` is False when a model's price is unknown."""

    total_usd: float
    is_exact: bool
    cache_read_share: float
    """Of all prompt tokens of the last main request, the share read from the cache; 0 to 1."""
    cache_expires_in_s: float | None
    """Seconds until the prompt cache goes cold; None when nothing is cached."""


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    trigger: Literal["manual", "auto"]
    layer: str
    tokens: int


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    summary_tokens: int
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """The boundary stands in the log (its record came just before). Figures in tokens, seconds and dollars."""

    trigger: Literal["manual", "auto"]
    layer: str
    before_tokens: int
    after_tokens: int
    calls: int
    duration_s: float
    cost_usd: float | None
    facts: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    """A compaction ended without a boundary: refused, failed or cancelled; the conversation is as it was."""

    outcome: Literal["declined", "failed", "cancelled"]
    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """One line for the person; `hint` says what to do next."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to a command such as `/context` or `/cost`: text for front ends that print lines, its data for
    programs, and where there is one the page a screen draws."""

    title: str
    text: str = ""
    """Empty where the page says it all."""
    data: JsonObject = field(default_factory=dict)
    page: Page | None = None


@dataclass(frozen=True, slots=True)
class StatusLineMoved:
    """What the user's own status line program says: rows that may hold colours as SGR sequences; none: it is off."""

    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TasksMoved:
    """How many commands run in the background now."""

    running_count: int


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """A slash command was carried out or refused; what it had to say came before. `clear`, `resume` and `branch` end
    the conversation: what comes of them is the next `SessionOpened`. `!` is a shell command of the person's own."""

    name: str


@dataclass(frozen=True, slots=True)
class SettingMoved:
    """`model`, `mode`, `title`, `effort`, `theme`, `cwd` or `added_dirs` has a new value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """Prompts waiting for the turn to end, oldest first: (prompt id, text)."""

    prompts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PromptReturned:
    """Text that goes back into the input line: a prompt interrupted before anything was answered, or taken back."""

    text: str
    display: str = ""
    """As it was typed, where the model would have got more."""


@dataclass(frozen=True, slots=True)
class RewindPoint:
    """A prompt the conversation can go back to."""

    number: int
    """1 is the newest prompt."""
    seq: int
    text: str
    at: datetime
    has_files: bool
    """Whether the work tree was saved before it."""
    is_in_view: bool
    """False for what a compaction has summarised; going back there brings the whole text back."""


@dataclass(frozen=True, slots=True)
class RewindOffered:
    """Answer to `rewind` without an argument: choose a point and send `rewind <number>`. Newest first."""

    points: tuple[RewindPoint, ...]
    can_redo: bool


@dataclass(frozen=True, slots=True)
class RewindFile:
    """A file that restoring would change."""

    path: str
    kind: Literal["create", "change", "delete"]
    """What restoring does to it."""
    is_own_edit: bool
    """The person changed it too since then: it is left alone unless they say otherwise."""
    diff: str = ""
    """From the file as it is to what it would be; empty where only permissions change."""


@dataclass(frozen=True, slots=True)
class RewindPlanned:
    """Answer to `rewind <number>`: what each way back would do. Choose and send
    `rewind <number> both|conversation|code|file <n>|upto|from [own]`."""

    point: RewindPoint
    files: tuple[RewindFile, ...]
    skipped: tuple[str, ...]
    """Paths that no checkpoint holds, so that they stay as they are."""
    problem: str = ""
    """Why no files can be restored; empty if they can."""
    can_summarise: bool = False


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn is over. `stop_reason` is the API's, or `interrupted`, `max_turns`, `budget`, `loop` …"""

    stop_reason: str
    api_rounds: int
    duration_s: float
    text: str = ""
    """The last response's text."""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn ended by an error; the session stays usable. `kind` is `PyagentError.kind`, or a bug's class name."""

    kind: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ConversationClosed:
    """The last event."""

    session_id: str


Event: TypeAlias = (
    SessionOpened
    | RecordCommitted
    | ReplayFinished
    | OlderRecords
    | TurnStarted
    | RequestStarted
    | TextDelta
    | ThinkingDelta
    | ToolInputDelta
    | StreamDiscarded
    | WireEvent
    | RetryScheduled
    | StreamSilent
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | PermissionNeeded
    | PermissionSettled
    | QuestionAsked
    | QuestionSettled
    | GaugeMoved
    | CostMoved
    | CompactionStarted
    | CompactionProgress
    | CompactionFinished
    | CompactionEnded
    | Notice
    | Report
    | CommandFinished
    | SettingMoved
    | StatusLineMoved
    | TasksMoved
    | QueueChanged
    | PromptReturned
    | RewindOffered
    | RewindPlanned
    | TurnFinished
    | TurnFailed
    | ConversationClosed
)


class EventSink(Protocol):
    """Where a conversation puts its events. Must return at once: a stalled reader never stops the agent."""

    def __call__(self, event: Event, /) -> None: ...
