"""What the pipeline needs from outside: a model that summarises, what can be restored, hooks, notes, ids, a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pyagent.compaction.outcome import Trigger
from pyagent.events import EventSink
from pyagent.log import FileSeen, Record
from pyagent.messages import JsonObject, Usage
from pyagent.view import View


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """An answer that was a tool call: sent back with an error result for each use, so that the model tries again."""

    content: tuple[JsonObject, ...]
    results: tuple[JsonObject, ...]
    instruction: str


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    view: View
    """What to send before the instruction."""
    instruction: str
    """The last user message."""
    max_output_tokens: int
    """For the summary itself; the thinking budget, where the model needs one, comes on top."""
    shares_prefix: bool
    """True: the conversation's own profile, marks and bytes, so that its cached prefix is read. False: a request of
    its own, without the conversation's tools and thinking."""
    strip_media: bool
    """Images and documents are sent as placeholder text."""
    refused: RefusedAnswer | None = None
    """To append after the instruction: the model's tool call, its synthetic results, and a new instruction."""


@dataclass(frozen=True, slots=True)
class SummaryAnswer:
    content: tuple[JsonObject, ...]
    stop_reason: str | None
    usage: Usage
    cost_usd: float | None


class Summarizer(Protocol):
    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        """One streamed model call. It writes the call's cost to the log itself, also when the call breaks off or is
        cancelled, and shows its progress.

        Raises:
            PromptTooLongError, ModelUnavailableError, RequestRefusedError, BrokenStreamError, CredentialsError.
        """
        ...


@dataclass(frozen=True, slots=True)
class SignedSummary:
    """A summary made and signed by the server, for the messages of exactly one view."""

    text: str
    signed: JsonObject
    """As an entry keeps it."""
    usage: Usage
    cost_usd: float | None


class SigningServer(Protocol):
    """A server that summarises by itself."""

    def is_available(self) -> bool:
        """Whether the server and the model now in use can do it at all."""
        ...

    async def summarize(self, view: View, instructions: str) -> SignedSummary | None:
        """The summary of a view that ends with a complete round; None if the server made none.

        `instructions` are the person's, usually empty. Cost is written to the log.

        Raises:
            PyagentError: the call failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it is on the disk now."""

    text: str
    sha256: str
    line_count: int


@dataclass(frozen=True, slots=True)
class RestoreText:
    """A piece of state for the model. `label` names it for budgets and the screen (`memory:<path>`, `plan` …)."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class RestorableState:
    """What a session start would tell the model, from its current state; newest first where order matters."""

    memory: tuple[RestoreText, ...] = ()
    pins: tuple[RestoreText, ...] = ()
    plan: RestoreText | None = None
    """The plan file and plan mode, labelled as decided."""
    tasks: RestoreText | None = None
    subagents: tuple[RestoreText, ...] = ()
    skills: tuple[RestoreText, ...] = ()
    announcements: tuple[RestoreText, ...] = ()
    """Deferred tools that were discovered, MCP instructions, tool and agent listings."""
    discovered_tools: tuple[str, ...] = ()


class RestoreSources(Protocol):
    async def read_file(self, path: str) -> FileText | None:
        """The file's text, or None if it is gone, binary, unreadable or not to be restored (memory and plan files)."""
        ...

    async def state(self) -> RestorableState: ...


@dataclass(frozen=True, slots=True)
class PreCompactAnswer:
    instructions: str = ""
    """Hook output that joins the user's instructions."""
    block_reason: str = ""
    """Not empty: a hook forbids the compaction."""


class CompactionHooks(Protocol):
    """Whoever implements it sees to it that hooks end in time and raise nothing."""

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer: ...

    async def session_start(self) -> tuple[str, ...]:
        """Output of the SessionStart hooks (source `compact`): stands last behind the boundary."""
        ...

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        """A compaction stands in the log: for side effects only."""
        ...


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """The background notes of a session and how far they reach."""

    text: str
    covered_uuid: str
    """The last entry they tell of."""
    is_draft: bool = False
    """True for a summary made ahead by a model, at `cost_usd`."""
    cost_usd: float | None = 0.0


class NotesSource(Protocol):
    async def current(self) -> SessionNotes | None:
        """The notes as they stand, after waiting for an update in flight for up to `session_memory.WAIT_S`;
        None if there are none, or only the template, or they belong to another branch."""
        ...


class History(Protocol):
    """What the pipeline reads of the conversation beside its view; `ConversationState` is one."""

    @property
    def boundaries(self) -> Sequence[Record]: ...

    def files_by_use(self) -> tuple[FileSeen, ...]: ...

    def entry(self, uuid: str) -> Record | None: ...


@dataclass(frozen=True, slots=True)
class Ports:
    summarizer: Summarizer
    sources: RestoreSources
    hooks: CompactionHooks
    notes: NotesSource
    new_uuid: Callable[[], str]
    clock: Callable[[], datetime]
    """Now, in UTC: for durations. Decisions use the context's `now`."""
    emit: EventSink
    server: SigningServer | None = None
