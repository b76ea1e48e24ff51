"""What the answers to `/context`, `/cost`, `/diff` and their like hold, as facts. How it looks is the front end's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One kind of content and its share of the count."""

    name: str
    group: str
    """What it is drawn as: `system`, `tools`, `memory`, `prompts`, `answers`, `calls`, `results`, `thinking`,
    `summary`, `notes`, `media`, `frames`."""
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One thing that takes room: a memory file, a tool's declaration, a large message."""

    group: str
    name: str
    tokens: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ContextLine:
    """One step of how the window's lines are drawn: a running figure and what was taken off or set."""

    words: str
    tokens: int


@dataclass(frozen=True, slots=True)
class GateState:
    name: str
    is_on: bool
    why: str
    """Where that comes from: `default`, a file, a variable."""


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What one layer of the context pipeline has done so far in this session."""

    name: str
    count: int
    freed_tokens: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CacheState:
    """The prompt cache. Seconds; `expires_in_s` None: nothing is cached or it has gone cold."""

    expires_in_s: float | None
    ttl_s: int
    read_share: float | None
    """Of the last request's prompt, read from the cache; None before the first."""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """Projected dollars for ten calls, at the point where the context is compacted and at the cheapest one."""

    usd_at_trigger: float
    best_trigger_tokens: int
    usd_at_best: float
    is_economy_on: bool


@dataclass(frozen=True, slots=True)
class ContextPage:
    model: str
    used_tokens: int
    is_estimate: bool
    window_tokens: int
    trigger_tokens: int
    is_auto_compact_on: bool
    percent_left: int
    state: str
    parts: tuple[ContextPart, ...]
    items: tuple[ContextItem, ...]
    arithmetic: tuple[ContextLine, ...]
    marks: tuple[ContextLine, ...]
    """Warning, error, trigger, blocking: the lines themselves, lowest first."""
    gates: tuple[GateState, ...]
    layers: tuple[LayerWork, ...]
    cache: CacheState
    bill: Bill | None
    remarks: tuple[str, ...]
    is_full: bool


@dataclass(frozen=True, slots=True)
class CostRow:
    """What was spent on one model or for one purpose. `usd` None: the price is not known."""

    name: str
    calls: int
    prompt_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def cache_share(self) -> float:
        """Of all prompt tokens, read from the cache; 0 to 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class CostTurn:
    """One prompt's calls of the main conversation. `number` counts from 1."""

    number: int
    prompt: str
    row: CostRow


@dataclass(frozen=True, slots=True)
class CostPage:
    total_usd: float
    is_exact: bool
    open_for_s: float
    models: tuple[CostRow, ...]
    purposes: tuple[CostRow, ...]
    turns: tuple[CostTurn, ...]
    """Oldest first."""
    lost_caches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """One compaction in force."""

    number: int
    at: datetime
    headline: str
    before_tokens: int
    after_tokens: int
    lines: tuple[str, ...]
    """The receipt."""
    summary: str
    is_undoable: bool
    """Only the newest can be taken back."""


@dataclass(frozen=True, slots=True)
class CompactionsPage:
    rows: tuple[CompactionRow, ...]


FileKind: TypeAlias = Literal["create", "change", "delete"]


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file's difference. `diff` is unified; empty where only permissions changed or nothing can be shown."""

    path: str
    kind: FileKind
    diff: str


@dataclass(frozen=True, slots=True)
class DiffScope:
    """Something to compare: `turn 3`, `session`, `head`."""

    id: str
    label: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DiffPage:
    scopes: tuple[DiffScope, ...]
    """Newest turn first, then the whole session, then against git."""
    chosen: str
    files: tuple[DiffFile, ...]
    remark: str = ""
    """Why there is nothing to see, or what is left out."""


SettingKind: TypeAlias = Literal["flag", "choice", "number", "text", "list"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting with its value as it would stand in a settings file."""

    key: str
    kind: SettingKind
    value: str
    """As JSON text; empty if it is not set."""
    origin: str
    """`default`, a file, `--settings`, a flag or a variable."""
    choices: tuple[str, ...] = ()
    help: str = ""
    when: str = ""
    """When a change counts, if not at once."""


@dataclass(frozen=True, slots=True)
class SettingsPage:
    rows: tuple[SettingRow, ...]
    files: tuple[tuple[str, str], ...]
    """(where, path) of the files that are written to: `user`, `project`, `local`."""
    problems: tuple[str, ...] = ()
    remark: str = ""
    """What the last change did."""


RuleKind: TypeAlias = Literal["deny", "ask", "allow"]


@dataclass(frozen=True, slots=True)
class RuleRow:
    kind: RuleKind
    rule: str
    origin: str
    is_removable: bool
    problem: str = ""
    """Why it never matches, if so."""


@dataclass(frozen=True, slots=True)
class DenialRow:
    """A call that was not allowed, by a rule or by the person."""

    at: datetime
    tool: str
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class PermissionsPage:
    mode: str
    rules: tuple[RuleRow, ...]
    folders: tuple[tuple[str, str], ...]
    """(folder, where it comes from): where files may be changed."""
    denials: tuple[DenialRow, ...]
    """Newest first."""
    is_trusted: bool
    remark: str = ""
    """The answer to a test, or what the last change did."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A background task. `output` is the end of what it wrote."""

    id: str
    command: str
    state: str
    output: str


@dataclass(frozen=True, slots=True)
class TasksPage:
    rows: tuple[TaskRow, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    path: str
    scope: str
    tokens: int
    is_loaded: bool
    """False for one that does not exist yet and could be made."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    rows: tuple[MemoryRow, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """The answer to a side question; it is in no transcript."""

    question: str
    answer: str
    usd: float | None
    cache_read_share: float


Page: TypeAlias = (
    ContextPage
    | CostPage
    | CompactionsPage
    | DiffPage
    | SettingsPage
    | PermissionsPage
    | TasksPage
    | MemoryPage
    | AnswerPage
)
