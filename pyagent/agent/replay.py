"""Runs a recorded session through the context pipeline without a network: what each policy would have sent and cost.

The prompts, answers and tool results are those of the recording; sizes are the local estimate, the prompt cache is a
model of the provider's, and a summary or notes are a text of the length that would be asked for. Files are not read
again, so what a compaction would restore of them is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyagent.agent.pipeline_ports import NoHooks
from pyagent.agent.wire.catalogue import ModelInfo
from pyagent.agent.wire.cost import WRITE_1H_FACTOR, WRITE_5M_FACTOR, cost_usd
from pyagent.compaction.context import ModelLimits, PipelineContext, Sizer, is_cache_warm
from pyagent.compaction.count import Tokenizer
from pyagent.compaction.economy import SUMMARY_OUTPUT_TOKENS, CachePrices
from pyagent.compaction.outcome import Applied, Compacted, LayerOutcome, ResultsCleared
from pyagent.compaction.pipeline import Pipeline, PipelineResult
from pyagent.compaction.ports import (
    FileText,
    Ports,
    RestorableState,
    RestoreText,
    SessionNotes,
    SummaryAnswer,
    SummaryRequest,
)
from pyagent.compaction.rounds import complete_end
from pyagent.compaction.session_memory import NotesProgress, update_due
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import PromptTooLongError
from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import ToolUseBlock, Usage
from pyagent.settings import CompactionSettings
from pyagent.state import ConversationState
from pyagent.view import View

NOTES_OUTPUT_TOKENS = 2_000
"""Length of notes as an update writes them."""
INSTRUCTION_TOKENS = 1_000
"""Of a summary or notes request, on top of the conversation."""
MAX_REFUSALS = 3


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    settings: CompactionSettings


def standard_policies(settings: CompactionSettings) -> tuple[Policy, ...]:
    """What a person may compare: the settings as they are, and each with one thing changed."""

    def gates(**changes: bool) -> CompactionSettings:
        return replace(settings, gates=replace(settings.gates, **changes))

    return (
        Policy("reactive", gates(reactive_only=True, session_memory=False, time_based_microcompact=False)),
        Policy("as set", settings),
        Policy("no notes", gates(session_memory=False)),
        Policy("no clearing", gates(time_based_microcompact=False)),
        Policy("economy", replace(settings, policy="economy")),
    )


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One request of the main loop. `background_usd` is what summaries and notes cost since the one before."""

    sent_tokens: int
    cached_tokens: int
    usd: float
    background_usd: float
    refusals: int
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A whole session under one policy."""

    policy: str
    calls: tuple[ReplayedCall, ...]
    summaries: int
    notes: int

    @property
    def sent_tokens(self) -> int:
        return sum(call.sent_tokens for call in self.calls)

    @property
    def cached_share(self) -> float:
        return sum(call.cached_tokens for call in self.calls) / max(self.sent_tokens, 1)

    @property
    def usd(self) -> float:
        return sum(call.usd + call.background_usd for call in self.calls)

    @property
    def refusals(self) -> int:
        return sum(call.refusals for call in self.calls)


async def replay(
    records: Iterable[Record], policy: Policy, tokenizer: Tokenizer, model: ModelInfo, *, window_tokens: int
) -> Replayed:
    """The recorded session (its current branch) under a policy. `tokenizer` must be loaded."""
    return await _Replay(ConversationState(records), policy, tokenizer, model, window_tokens).run()


@dataclass(slots=True)
class _Cache:
    """The provider's prompt cache: the prefix of the last request, for its lifetime."""

    ttl_s: int
    keys: tuple[tuple[object, int], ...] = ()
    at: datetime | None = None

    def read(self, keys: tuple[tuple[object, int], ...], now: datetime) -> int:
        """Tokens of the longest common prefix, 0 once the lifetime is over."""
        if self.at is None or (now - self.at).total_seconds() > self.ttl_s:
            return 0
        tokens = 0
        for (old, _), (new, size) in zip(self.keys, keys, strict=False):
            if old != new:
                break
            tokens += size
        return tokens

    def write(self, keys: tuple[tuple[object, int], ...], now: datetime) -> None:
        self.keys, self.at = keys, now


@dataclass
class _Sources:
    memory: tuple[RestoreText, ...] = ()

    async def read_file(self, path: str) -> FileText | None:
        return None

    async def state(self) -> RestorableState:
        return RestorableState(memory=self.memory)


@dataclass
class _Notes:
    notes: SessionNotes | None = None

    async def current(self) -> SessionNotes | None:
        return self.notes


@dataclass
class _Replay:
    source: ConversationState
    policy: Policy
    tokenizer: Tokenizer
    model: ModelInfo
    window_tokens: int
    sim: ConversationState = field(default_factory=ConversationState)
    sources: _Sources = field(default_factory=_Sources)
    notes: _Notes = field(default_factory=_Notes)
    background_usd: float = 0.0
    summaries: int = 0
    notes_calls: int = 0
    noted_tokens: int = 0

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.tokenizer)
        self.tracking = AutoCompactTracking()
        entries = [r for r in self.source.branch if r.is_entry and not r.tx]
        self.entries: Sequence[Record] = entries
        self.overhead = self._overhead()
        self.now = entries[0].at if entries else datetime.fromisoformat("2026-01-01T00:00:00+00:00")
        ttls = [r.payload.cache_ttl_s for r in entries if isinstance(r.payload, AssistantEntry)]
        self.ttl_s = max(ttls, default=300) or 300
        self.cache = _Cache(self.ttl_s)
        self.family = ModelLimits(self.model.id, self.window_tokens).family
        self.sizer = Sizer(self.pipeline.counter, self.family)

    def _overhead(self) -> int:
        """System text and tools of the recording's last profile, in tokens."""
        sizer = Sizer(self.pipeline.counter, ModelLimits(self.model.id, self.window_tokens).family)
        for profile in reversed(self.source.profiles.values()):
            return sizer.text(str(profile.get("system", ""))) + sizer.text(str(profile.get("tools", "")))
        return 0

    async def run(self) -> Replayed:
        calls: list[ReplayedCall] = []
        for record in self.entries:
            self.now = record.at
            entry = record.payload
            if isinstance(entry, UserEntry):
                if entry.origin == "summary":
                    continue
                if entry.label.startswith("memory:"):
                    others = tuple(piece for piece in self.sources.memory if piece.label != entry.label)
                    self.sources.memory = (*others, RestoreText(entry.label, entry.text))
                self._write(entry, record.uuid)
            elif isinstance(entry, AssistantEntry):
                self.now = entry.request_started_at or record.at
                calls.append(await self._call(entry, record))
        return Replayed(self.policy.name, tuple(calls), self.summaries, self.notes_calls)

    async def _call(self, entry: AssistantEntry, record: Record) -> ReplayedCall:
        self.background_usd = 0.0
        events: list[str] = []
        refusals = 0
        events += self._take(await self.pipeline.before_request(self._context()))
        while (sent := self._size(self.sim.view)) > self.window_tokens and refusals < MAX_REFUSALS:
            refusals += 1
            error = PromptTooLongError("prompt is too long", prompt_tokens=sent, limit_tokens=self.window_tokens)
            events += [f"refused at {sent:,}"]
            events += self._take(await self.pipeline.on_overflow(self._context(), error, refusals))
        self._keep_notes()
        background_usd = self.background_usd
        keys = self._keys(self.sim.view)
        cached = min(self.cache.read(keys, self.now), sent)
        self.cache.write(keys, self.now)
        started_at, self.now = self.now, record.at
        output = self._output_tokens(entry)
        usage = Usage.from_wire(
            {
                "input_tokens": 0,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": sent - cached,
                "output_tokens": output,
            }
        )
        simulated = replace(entry, usage=usage, request_started_at=started_at, cache_ttl_s=self.ttl_s)
        view, seq = self.sim.view, self.sim.next_seq
        measured = self.pipeline.measured(view, simulated, uuid=record.uuid, seq=seq, at=self.now)
        self._write(measured, record.uuid)
        # No calibration: these usages are made of the estimates themselves.
        self.tracking = self.tracking.after_request()
        return ReplayedCall(sent, cached, self._usd(usage), background_usd, refusals, tuple(events))

    def _context(self) -> PipelineContext:
        limits = ModelLimits(self.model.id, self.window_tokens, self.model.max_output_tokens)
        ports = Ports(self, self.sources, NoHooks(), self.notes, _new_uuid, lambda: self.now, lambda event: None)
        context = PipelineContext(
            view=self.sim.view,
            history=self.sim,
            settings=self.policy.settings,
            model=limits,
            query_source="repl_main_thread",
            now=self.now,
            overhead_tokens=self.overhead,
            tracking=self.tracking,
            ports=ports,
            transcript_path="the session file",
        )
        price = self.model.price
        if self.policy.settings.policy != "economy" or price is None or not price.input_usd or not price.cache_read_usd:
            return context
        write = WRITE_1H_FACTOR if self.ttl_s > 300 else WRITE_5M_FACTOR
        summary_tokens = SUMMARY_OUTPUT_TOKENS * price.output_usd / price.input_usd
        prices = CachePrices(price.cache_read_usd / price.input_usd, write, price.input_usd, summary_tokens)
        found = self.pipeline.economy(context, prices)
        return context if found is None else replace(context, economy_trigger_tokens=found.best_trigger_tokens)

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        """The stand-in for the model: billed as the real one, answering with a text of the usual length."""
        self.summaries += 1
        keys = self._keys(request.view)
        tokens = self._size(request.view) + INSTRUCTION_TOKENS
        if tokens > self.window_tokens:
            raise PromptTooLongError("prompt is too long", prompt_tokens=tokens, limit_tokens=self.window_tokens)
        length = min(SUMMARY_OUTPUT_TOKENS, request.max_output_tokens)
        usage = self._side_usage(keys, tokens, length, shares_prefix=request.shares_prefix)
        usd = self._usd(usage)
        self.background_usd += usd
        text = self.sizer.head("work " * length * 2, length)
        return SummaryAnswer(({"type": "text", "text": f"<summary>{text}</summary>"},), "end_turn", usage, usd)

    def _keep_notes(self) -> None:
        settings, context = self.policy.settings, self._context()
        lines = context.thresholds
        if not settings.gates.session_memory or not lines.is_auto_on:
            return
        covered = "" if self.notes.notes is None else self.notes.notes.covered_uuid
        view, tokens = self.sim.view, self.pipeline.count(context).tokens
        is_warm = is_cache_warm(view, self.now)
        if not update_due(view, tokens, lines, NotesProgress(self.noted_tokens, covered), is_cache_warm=is_warm):
            return
        end = complete_end(view)
        part = View(view.items[:end], view.epoch, view.boundary)
        keys = self._keys(part)
        usage = self._side_usage(keys, self._size(part) + INSTRUCTION_TOKENS, NOTES_OUTPUT_TOKENS, shares_prefix=True)
        self.background_usd += self._usd(usage)
        self.notes_calls += 1
        self.noted_tokens = tokens
        text = "# Task\n" + self.sizer.head("work " * NOTES_OUTPUT_TOKENS * 2, NOTES_OUTPUT_TOKENS - 10)
        self.notes.notes = SessionNotes(text, view.items[end - 1].uuid)

    def _take(self, result: PipelineResult) -> list[str]:
        self.tracking = result.tracking
        for new in result.records:
            self._write(new.payload, new.uuid, new.tx)
        told = [text for _, outcome in result.outcomes if (text := _told(outcome))]
        if result.compacted is not None:
            self.notes.notes, self.noted_tokens = None, result.compacted.after_tokens
        return told

    def _write(self, payload: Payload, record_uuid: str, tx: str = "") -> None:
        self.sim.apply(Record(self.sim.next_seq, record_uuid, self.now, payload, tx))

    # ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _size(self, view: View) -> int:
        return self.overhead + self.sizer.whole(view)

    def _keys(self, view: View) -> tuple[tuple[object, int], ...]:
        return (("overhead", self.overhead), *((item.key, self.sizer.item(view, item)) for item in view))

    def _side_usage(
        self, keys: tuple[tuple[object, int], ...], tokens: int, output_tokens: int, *, shares_prefix: bool
    ) -> Usage:
        cached = self.cache.read(keys, self.now) if shares_prefix else 0
        rest = max(tokens - cached, 0)
        return Usage.from_wire(
            {
                "input_tokens": 0 if shares_prefix else rest,
                "cache_creation_input_tokens": rest if shares_prefix else 0,
                "cache_read_input_tokens": cached,
                "output_tokens": output_tokens,
            }
        )

    def _output_tokens(self, entry: AssistantEntry) -> int:
        words = entry.text + " ".join(str(b.input) for b in entry.blocks if isinstance(b, ToolUseBlock))
        return entry.usage.output_tokens or self.sizer.text(words)

    def _usd(self, usage: Usage) -> float:
        return cost_usd(self.model.id, usage, self.model) or 0.0


def _told(outcome: LayerOutcome) -> str:
    match outcome:
        case Applied(facts=Compacted(layer=layer, before_tokens=before, after_tokens=after)):
            return f"compacted ({layer}) {before:,} → {after:,}"
        case Applied(facts=ResultsCleared(count=count, freed_tokens=freed)):
            return f"cleared {count} results, {freed:,} freed"
        case _:
            return ""


def _new_uuid() -> str:
    return str(uuid.uuid4())
