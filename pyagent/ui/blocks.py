"""The transcript's records: what is shown, not how. No widget owns data; a view can be rebuilt from these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BlockKind(StrEnum):
    """What a block is; decides its look."""

    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL = "tool"
    DIFF = "diff"
    NOTICE = "notice"
    ERROR = "error"
    BOUNDARY = "boundary"
    CLEARED = "cleared"
    BANNER = "banner"
    IMAGE = "image"


class BlockState(StrEnum):
    """How far a block has come. Shown as a sign and a word, never as colour alone."""

    DONE = "done"
    STREAMING = "streaming"
    QUEUED = "queued"
    WAITING = "waiting"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


LIVE_STATES = frozenset({BlockState.STREAMING, BlockState.RUNNING, BlockState.WAITING, BlockState.QUEUED})
"""States that will change again: such a block is not yet final text."""


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of the transcript.

    `text` is the source: Markdown for the assistant, the prompt for the user, the call's one-line argument for a tool,
    the headline for a boundary. `title` is the tool's name or the image's label. `detail` is what unfolds: a tool's
    output, a boundary's summary, an error's hint. `collapsed` None means the kind's default. `diff` are the lines of
    `pyagent.ui.diff`, for kinds DIFF and TOOL. `facts` are short remarks after the headline ("12 lines").
    """

    id: str
    kind: BlockKind
    text: str = ""
    title: str = ""
    detail: str = ""
    state: BlockState = BlockState.DONE
    collapsed: bool | None = None
    facts: tuple[str, ...] = ()
    diff: tuple[DiffLine, ...] = ()
    elapsed_s: float | None = None

    @property
    def is_collapsed(self) -> bool:
        """Whether the detail is hidden, by the reader's choice or the kind's default."""
        if self.collapsed is not None:
            return self.collapsed
        return self.kind in FOLDED_BY_DEFAULT

    @property
    def is_foldable(self) -> bool:
        """Whether there is anything a fold would hide."""
        match self.kind:
            case BlockKind.THINKING:
                return bool(self.text)
            case BlockKind.TOOL:
                return bool(self.detail or self.diff)
            case BlockKind.DIFF:
                return bool(self.diff)
            case BlockKind.BOUNDARY | BlockKind.CLEARED | BlockKind.NOTICE | BlockKind.ERROR:
                return bool(self.detail)
            case BlockKind.USER | BlockKind.ASSISTANT | BlockKind.BANNER | BlockKind.IMAGE:
                return False

    def searchable(self) -> str:
        """All text a search may find, folded or not."""
        parts = [self.title, self.text, self.detail, *self.facts, *(line.text for line in self.diff)]
        return "\n".join(part for part in parts if part)


FOLDED_BY_DEFAULT = frozenset({BlockKind.THINKING, BlockKind.TOOL, BlockKind.BOUNDARY, BlockKind.CLEARED})
"""Kinds whose headline says enough: their detail is one click away."""


class DiffKind(StrEnum):
    """What became of a line."""

    CONTEXT = "context"
    ADDED = "added"
    REMOVED = "removed"
    HUNK = "hunk"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. Numbers count from 1; `marks` are the changed (start, end) character ranges within `text`."""

    kind: DiffKind
    text: str
    old_number: int | None = None
    new_number: int | None = None
    marks: tuple[tuple[int, int], ...] = ()
