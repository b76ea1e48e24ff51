"""Scripted ports: each satisfies its real Protocol, records what it was asked, and fails when its script runs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.context import ModelLimits, PipelineContext
from pyagent.compaction.outcome import NewRecord, Trigger
from pyagent.compaction.pipeline import Pipeline, PipelineResult
from pyagent.compaction.ports import (
    CompactionHooks,
    FileText,
    Ports,
    PreCompactAnswer,
    RestorableState,
    SessionNotes,
    SummaryAnswer,
    SummaryRequest,
)
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import ModelError
from pyagent.events import Event
from pyagent.log import AssistantEntry, Payload, Record, TrackingSaved
from pyagent.messages import JsonObject, Usage
from pyagent.settings import CompactionSettings
from tests.compaction.builder import MODEL, Talk, WordTokenizer

Reply: TypeAlias = SummaryAnswer | ModelError


def summary(text: str = "All is well.", *, stop_reason: str = "end_turn") -> SummaryAnswer:
    return answer([{"type": "text", "text": f"<analysis>hm</analysis>\n<summary>\n{text}\n</summary>"}], stop_reason)


def answer(content: Sequence[JsonObject], stop_reason: str = "end_turn") -> SummaryAnswer:
    usage = Usage(input_tokens=1_000, output_tokens=100, cache_read_input_tokens=9_000)
    return SummaryAnswer(tuple(content), stop_reason, usage, 0.01)


class ScriptedSummarizer:
    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[SummaryRequest] = []

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        self.requests.append(request)
        if not self.replies:
            raise AssertionError("the summariser was called once more than scripted")
        reply = self.replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    def assert_finished(self) -> None:
        assert not self.replies, f"{len(self.replies)} replies were not asked for"


@dataclass
class FixedSources:
    found: RestorableState = field(default_factory=RestorableState)
    files: dict[str, str] = field(default_factory=dict)

    async def read_file(self, path: str) -> FileText | None:
        text = self.files.get(path)
        return None if text is None else FileText(text, f"sha of {path}", text.count("\n") + 1)

    async def state(self) -> RestorableState:
        return self.found


@dataclass
class FixedHooks:
    before: PreCompactAnswer = field(default_factory=PreCompactAnswer)
    at_start: tuple[str, ...] = ()
    calls: list[str] = field(default_factory=list)

    async def pre_compact(self, trigger: Trigger, instructions: str) -> PreCompactAnswer:
        self.calls.append(f"pre_compact {trigger}")
        return self.before

    async def session_start(self) -> tuple[str, ...]:
        self.calls.append("session_start")
        return self.at_start

    async def post_compact(self, trigger: Trigger, summary: str) -> None:
        self.calls.append(f"post_compact {trigger}: {summary}")


@dataclass
class FixedNotes:
    notes: SessionNotes | None = None

    async def current(self) -> SessionNotes | None:
        return self.notes


@dataclass
class Bench:
    """A talk with a pipeline and its scripted ports."""

    talk: Talk
    summarizer: ScriptedSummarizer = field(default_factory=ScriptedSummarizer)
    sources: FixedSources = field(default_factory=FixedSources)
    hooks: CompactionHooks = field(default_factory=FixedHooks)
    notes: FixedNotes = field(default_factory=FixedNotes)
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    window_tokens: int = 200_000
    max_output_tokens: int | None = None
    overhead_tokens: int = 2_000
    query_source: str = "repl_main_thread"
    tracking: AutoCompactTracking = field(default_factory=AutoCompactTracking)
    events: list[Event] = field(default_factory=list)
    tokenizer: WordTokenizer = field(default_factory=WordTokenizer)
    cached_edits: CachedEdits | None = None
    ids: int = 0

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.tokenizer)

    def new_uuid(self) -> str:
        self.ids += 1
        return f"new-{self.ids}"

    def clock(self) -> datetime:
        self.talk.now += timedelta(milliseconds=100)
        return self.talk.now

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def context(self) -> PipelineContext:
        return PipelineContext(
            view=self.talk.view,
            history=self.talk.state,
            settings=self.settings,
            model=ModelLimits(MODEL, self.window_tokens, self.max_output_tokens),
            query_source=self.query_source,
            now=self.talk.now,
            overhead_tokens=self.overhead_tokens,
            tracking=self.tracking,
            ports=Ports(self.summarizer, self.sources, self.hooks, self.notes, self.new_uuid, self.clock, self.emit),
            cached_edits=self.cached_edits,
            transcript_path="/sessions/this.jsonl",
        )

    def commit(self, records: Sequence[NewRecord]) -> None:
        for record in records:
            self.talk.write(record.payload, tx=record.tx, uuid=record.uuid)

    def take(self, result: PipelineResult) -> PipelineResult:
        """Write what a pass decided, as the conversation does."""
        self.commit(result.records)
        self.tracking = result.tracking
        return result

    async def before_request(self) -> PipelineResult:
        return self.take(await self.pipeline.before_request(self.context()))

    async def compact(self, instructions: str = "", *, upto: int | None = None) -> PipelineResult:
        return self.take(await self.pipeline.compact(self.context(), instructions, upto=upto))

    async def overflow(self, error: ModelError, refusals: int = 1) -> PipelineResult:
        return self.take(await self.pipeline.on_overflow(self.context(), error, refusals))

    def write(self, payload: Payload) -> Record:
        """Write an entry as the conversation does: a response with what was measured of it and what is remembered
        from then on."""
        if not isinstance(payload, AssistantEntry):
            return self.talk.write(payload)
        state, uuid = self.talk.state, self.talk.new_id("assistant")
        entry = self.pipeline.measured(state.view, payload, uuid=uuid, seq=state.next_seq, at=self.talk.now)
        record = self.talk.write(entry, uuid=uuid)
        self.tracking = self.pipeline.after_response(self.context())
        self.talk.write(TrackingSaved(self.tracking.to_json()))
        return record

    def answer(self, text: str, usage: Usage | None = None) -> Record:
        return self.write(self.talk.response([{"type": "text", "text": text}], usage=usage))

    def resumed(self) -> Pipeline:
        """The pipeline of a session that was just opened from its file."""
        return Pipeline.resumed(WordTokenizer(), AutoCompactTracking.from_json(self.talk.state.tracking))

    def tokens(self) -> int:
        return self.pipeline.count(self.context()).tokens

    def set_gates(self, **gates: bool) -> Bench:
        self.settings = replace(self.settings, gates=replace(self.settings.gates, **gates))
        return self
