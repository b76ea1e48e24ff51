"""The fold from events to transcript blocks, without a screen: live or replayed, the same records give the same blocks.

Text that is streaming in is provisional. The blocks of a response are named by its number and the place within it, so
the record that commits it takes over the very blocks its text was streamed into, folded or unfolded as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyagent.events import (
    CompactionEnded,
    Event,
    Notice,
    OlderRecords,
    PermissionNeeded,
    PermissionSettled,
    QuestionAsked,
    QuestionSettled,
    RecordCommitted,
    ReplayFinished,
    RequestStarted,
    SessionOpened,
    StreamDiscarded,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolProgress,
    ToolStarted,
    TurnFailed,
    TurnFinished,
)
from pyagent.log import (
    AssistantEntry,
    Boundary,
    ClearResults,
    CompactionFailed,
    Fold,
    NoticeShown,
    Record,
    Revoke,
    SetHead,
    ShellRan,
    Snip,
    ToolRan,
    TurnEnded,
    UserEntry,
)
from pyagent.messages import TextBlock, ThinkingBlock, ToolUseBlock, UnknownBlock, parse_block
from pyagent.ui.blocks import LIVE_STATES, Block, BlockKind, BlockState
from pyagent.ui.record_blocks import (
    boundary_block,
    cleared_block,
    compaction_failed_block,
    result_texts,
    shell_block,
    tool_block,
    tool_line,
    turn_end_block,
    user_blocks,
    with_display,
    with_result,
)

MAX_LIVE_OUTPUT_CHARS = 20_000
"""Of a running tool's output kept for the screen: the end is what tells how far it is."""


@dataclass(frozen=True, slots=True)
class BlockPut:
    """A block is new, or has become this."""

    block: Block


@dataclass(frozen=True, slots=True)
class TextGrown:
    """Text was added at a block's end."""

    block_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class BlockGone:
    """A block leaves the transcript."""

    block_id: str


@dataclass(frozen=True, slots=True)
class AllReplaced:
    """The transcript is these blocks now: another session, or history that was moved."""

    blocks: tuple[Block, ...]


Change: TypeAlias = BlockPut | TextGrown | BlockGone | AllReplaced


class TranscriptFold:
    """The blocks of one front end. `apply` returns what each event changed, in order."""

    def __init__(self, banner: Callable[[SessionOpened], Block] | None = None) -> None:
        """`banner` words the first block of a session; without it there is none."""
        self._banner = banner
        self._blocks: dict[str, Block] = {}
        self._changes: list[Change] = []
        self._notice_count = 0
        self._forget_session()

    def _forget_session(self) -> None:
        self._parents: dict[int, int] = {}
        self._by_seq: dict[int, Record] = {}
        self._head = -1
        self._opening: Block | None = None
        self._forget_branch()

    def _forget_branch(self) -> None:
        self._entries: dict[str, Record] = {}
        self._revoked: set[int] = set()
        self._response_count = 0
        self._turn_count = 0
        self._live: list[str] = []
        """Ids of this response's provisional blocks."""
        self._discard_count = 0
        self._asking: dict[str, str] = {}
        """Request id of a question → block id of its tool call."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, oldest first."""
        return tuple(self._blocks.values())

    def apply(self, event: Event) -> tuple[Change, ...]:
        """Take in the next event."""
        self._changes = []
        match event:
            case RecordCommitted(record=record):
                self._commit(record)
            case SessionOpened():
                self._open(event)
            case TextDelta(text=text):
                self._stream(BlockKind.ASSISTANT, text)
            case ThinkingDelta(text=text):
                self._stream(BlockKind.THINKING, text)
            case ToolInputDelta() | ToolStarted() | ToolProgress() | ToolFinished():
                self._tool_event(event)
            case PermissionNeeded(request_id=request_id, tool_use_id=use_id):
                self._asking[request_id] = f"tool:{use_id}"
                self._set_state(f"tool:{use_id}", BlockState.WAITING)
            case PermissionSettled(request_id=request_id):
                self._set_state(self._asking.pop(request_id, ""), BlockState.QUEUED)
            case QuestionAsked(request_id=request_id, tool_use_id=use_id):
                self._asking[request_id] = f"tool:{use_id}"
                self._set_state(f"tool:{use_id}", BlockState.WAITING)
            case QuestionSettled(request_id=request_id):
                self._set_state(self._asking.pop(request_id, ""), BlockState.RUNNING)
            case StreamDiscarded(reason=reason):
                self._discard(reason)
            case RequestStarted():
                self._live = []
            case TurnFinished():
                self._end_live()
            case ReplayFinished():
                self._settle_all()
            case OlderRecords(records=records):
                self._put_before(records)
            case TurnFailed(message=message, hint=hint):
                self._end_live()
                self._put(Block(self._turn_end_id, BlockKind.ERROR, text=message, detail=hint, collapsed=False))
            case Notice(text=text, level=level, hint=hint):
                self._notice(text, level, hint)
            case CompactionEnded(outcome="declined", reason=reason):
                self._notice(f"Not compacted: {reason[:1].lower()}{reason[1:]}", "info", "")
            case _:
                pass
        return tuple(self._changes)

    # ── records ──

    def _open(self, event: SessionOpened) -> None:
        self._forget_session()
        self._blocks = {}
        if self._banner is not None:
            self._opening = self._banner(event)
            self._blocks[self._opening.id] = self._opening
        self._changes.append(AllReplaced(self.blocks))

    def _commit(self, record: Record) -> None:
        if isinstance(record.payload, SetHead) and (
            record.payload.target_seq in self._parents or record.payload.target_seq == -1
        ):
            is_moved = record.payload.target_seq != self._head
            self._head = record.payload.target_seq
            self._advance(record)
            if is_moved:
                self._refold()
            return
        self._advance(record)
        self._fold(record)

    def _put_before(self, records: tuple[Record, ...]) -> None:
        """Older history comes in: everything is folded anew behind it."""
        later, self._by_seq = self._by_seq, {}
        parents, self._parents = self._parents, {}
        head, self._head = self._head, -1
        for record in records:
            target = record.payload.target_seq if isinstance(record.payload, SetHead) else -1
            if target in self._parents:
                self._head = target
            self._advance(record)
        first = next(iter(later), None)
        if first is not None:
            parents[first] = self._head
            self._head = head
        self._by_seq |= later
        self._parents |= parents
        self._refold()
        self._settle_all()

    def _advance(self, record: Record) -> None:
        self._parents[record.seq] = self._head
        self._by_seq[record.seq] = record
        self._head = record.seq

    def _refold(self) -> None:
        """Build the blocks of the current branch anew."""
        path: list[Record] = []
        seq = self._head
        while seq in self._by_seq:
            path.append(self._by_seq[seq])
            seq = self._parents[seq]
        self._blocks = {} if self._opening is None else {self._opening.id: self._opening}
        self._forget_branch()
        for record in reversed(path):
            self._fold(record)
        self._changes = [AllReplaced(self.blocks)]

    def _fold(self, record: Record) -> None:
        match record.payload:
            case UserEntry(origin="prompt") as entry if not record.tx:
                self._turn_count += 1
                self._put_all(user_blocks(record.uuid, entry))
            case UserEntry(origin="tool_results") as entry:
                for use_id, text, is_error in result_texts(entry):
                    self._finish_tool(use_id, text, is_error)
            case UserEntry():
                self._entries[record.uuid] = record
            case AssistantEntry() as entry:
                self._response(entry)
            case ToolRan() as ran:
                self._tool_ran(ran)
            case ShellRan() as ran_by_person:
                self._put(shell_block(ran_by_person))
            case Boundary() as boundary:
                summary = self._entries.get(boundary.summary_uuid)
                text = summary.payload.text if summary and isinstance(summary.payload, UserEntry) else ""
                self._put(boundary_block(record.uuid, boundary, text))
            case ClearResults(placeholders=placeholders) as op:
                names = [
                    self._blocks[f"tool:{use_id}"].title for use_id in placeholders if f"tool:{use_id}" in self._blocks
                ]
                self._put(cleared_block(record.uuid, op, names))
            case Snip() | Fold() as op:
                self._put(cleared_block(record.uuid, op, ()))
            case Revoke(target_seq=seq):
                self._revoke(seq)
            case _:
                self._fold_remark(record)

    def _fold_remark(self, record: Record) -> None:
        match record.payload:
            case CompactionFailed() as failed:
                self._put(compaction_failed_block(record.uuid, failed))
            case NoticeShown(text=text, level=level):
                if not self._is_last(text):
                    self._put(_notice_block(f"notice:{record.uuid}", text, level, ""))
            case TurnEnded() as ended:
                self._end_live()
                block = turn_end_block(self._turn_end_id, ended)
                if block is not None:
                    self._put(block)
            case _:
                pass

    def _response(self, entry: AssistantEntry) -> None:
        """A whole response: its blocks take the places of those streamed."""
        committed: list[Block] = []
        for raw in entry.content:
            match parse_block(raw):
                case TextBlock(text=text) if text.strip():
                    _join_or_add(committed, Block(self._place(len(committed)), BlockKind.ASSISTANT, text=text))
                case ThinkingBlock(thinking=text) if text.strip():
                    _join_or_add(committed, Block(self._place(len(committed)), BlockKind.THINKING, text=text))
                case ToolUseBlock(id=use_id, name=name, input=arguments):
                    line = tool_line(name, arguments)
                    committed.append(tool_block(f"tool:{use_id}", name, line, BlockState.QUEUED))
                case UnknownBlock(raw=unknown) if unknown.get("type") == "server_tool_use":
                    name, block_id = str(unknown.get("name")), f"tool:{unknown.get('id')}"
                    sent = unknown.get("input")
                    line = tool_line(name, sent if isinstance(sent, dict) else {})
                    committed.append(Block(block_id, BlockKind.TOOL, line, name, state=BlockState.OK))
                case _:
                    pass
        ids = {block.id for block in committed}
        for block_id in self._live:
            if block_id not in ids:
                self._remove(block_id)
        self._put_all(committed)
        self._live = []
        self._discard_count = 0
        self._response_count += 1

    def _place(self, index: int) -> str:
        """The id of the response's block at this place. Each attempt has its own, so that what broke off stays."""
        attempt = f"~{self._discard_count}" if self._discard_count else ""
        return f"response:{self._response_count}.{index}{attempt}"

    def _finish_tool(self, use_id: str, text: str, is_error: bool) -> None:
        block = self._blocks.get(f"tool:{use_id}")
        if block is not None:
            self._put(with_result(block, text, is_error=is_error))

    def _tool_ran(self, ran: ToolRan) -> None:
        block = self._blocks.get(f"tool:{ran.tool_use_id}")
        if block is not None:
            self._put(with_display(block, ran.summary, ran.duration_s, ran.display))

    def _revoke(self, seq: int) -> None:
        """Mark the row of what was taken back, or take the mark off when the revoke itself is revoked."""
        target = self._by_seq.get(seq)
        if target is None:
            return
        if isinstance(target.payload, Revoke):
            self._mark_undone(target.payload.target_seq, is_undone=False)
        else:
            self._mark_undone(seq, is_undone=True)

    def _mark_undone(self, seq: int, *, is_undone: bool) -> None:
        target = self._by_seq.get(seq)
        if target is None:
            return
        for prefix in ("boundary:", "cleared:"):
            block = self._blocks.get(prefix + target.uuid)
            if block is not None:
                facts = tuple(fact for fact in block.facts if fact != "undone")
                self._put(replace(block, facts=(*facts, "undone") if is_undone else facts))

    @property
    def _turn_end_id(self) -> str:
        return f"turn-end:{self._turn_count}"

    # ── what is under way ──

    def _stream(self, kind: BlockKind, text: str) -> None:
        last = self._blocks.get(self._live[-1]) if self._live else None
        if last is not None and last.kind is kind:
            self._blocks[last.id] = replace(last, text=last.text + text)
            self._changes.append(TextGrown(last.id, text))
            return
        if not text.strip():
            return
        block_id = self._place(len(self._live))
        self._live.append(block_id)
        self._put(Block(block_id, kind, text=text, state=BlockState.STREAMING))

    def _tool_event(self, event: ToolInputDelta | ToolStarted | ToolProgress | ToolFinished) -> None:
        block_id = f"tool:{event.tool_use_id}"
        block = self._blocks.get(block_id)
        match event:
            case ToolInputDelta(name=name, chars=chars):
                if block is None:
                    self._live.append(block_id)
                    block = tool_block(block_id, name, state=BlockState.STREAMING)
                facts = (f"{chars:,} characters".replace(",", " "),) if chars else ()
                self._put(replace(block, facts=facts))
            case ToolStarted(name=name, summary=summary):
                block = block or tool_block(block_id, name)
                block = with_display(replace(block, facts=()), summary, 0.0, {})
                self._put(replace(block, state=BlockState.RUNNING))
            case ToolProgress(text=text):
                if block is not None:
                    self._put(replace(block, detail=(block.detail + text)[-MAX_LIVE_OUTPUT_CHARS:]))
            case ToolFinished(name=name, summary=summary, text=text):
                block = block or tool_block(block_id, name)
                shown = with_result(replace(block, facts=()), text, is_error=event.is_error)
                self._put(with_display(shown, summary, event.duration_s, event.display))

    def _discard(self, reason: str) -> None:
        """What was streamed stays in sight, marked; it is not part of the conversation."""
        for block_id in self._live:
            block = self._blocks.get(block_id)
            if block is not None:
                facts = (f"not part of the conversation: {reason}",)
                self._put(replace(block, state=BlockState.INTERRUPTED, facts=facts))
        if self._live:
            self._notice(f"The answer broke off and is asked for again: {reason}", "info", "")
        self._live = []
        self._discard_count += 1

    def _end_live(self) -> None:
        """A turn is over: nothing keeps spinning."""
        for block in reversed(self._blocks.values()):
            if block.kind is BlockKind.USER:
                break
            if block.state in LIVE_STATES:
                self._put(replace(block, state=BlockState.INTERRUPTED))
        self._live = []

    def _settle_all(self) -> None:
        """A session that was killed in mid-turn has calls without an end."""
        for block in self.blocks:
            if block.state in LIVE_STATES:
                self._put(replace(block, state=BlockState.INTERRUPTED))

    def _set_state(self, block_id: str, state: BlockState) -> None:
        block = self._blocks.get(block_id)
        if block is not None and block.state in LIVE_STATES:
            self._put(replace(block, state=state))

    def _notice(self, text: str, level: str, hint: str) -> None:
        if self._is_last(text):
            return
        self._notice_count += 1
        self._put(_notice_block(f"note:{self._notice_count}", text, level, hint))

    def _is_last(self, text: str) -> bool:
        """Whether the last block says this already: some remarks come as an event and as a record."""
        last = next(reversed(self._blocks.values()), None)
        return last is not None and last.text == text

    def _put(self, block: Block) -> None:
        if self._blocks.get(block.id) != block:
            self._blocks[block.id] = block
            self._changes.append(BlockPut(block))

    def _put_all(self, blocks: list[Block]) -> None:
        for block in blocks:
            self._put(block)

    def _remove(self, block_id: str) -> None:
        if self._blocks.pop(block_id, None) is not None:
            self._changes.append(BlockGone(block_id))


def _notice_block(block_id: str, text: str, level: str, hint: str) -> Block:
    kind = BlockKind.ERROR if level == "error" else BlockKind.NOTICE
    words = f"Warning: {text}" if level == "warning" else text
    return Block(block_id, kind, text=words, detail=hint, collapsed=False)


def _join_or_add(blocks: list[Block], block: Block) -> None:
    """Neighbouring texts stream as one, so they are one."""
    if blocks and blocks[-1].kind is block.kind:
        blocks[-1] = replace(blocks[-1], text=blocks[-1].text + block.text)
    else:
        blocks.append(block)
