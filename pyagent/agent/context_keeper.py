"""Connects the context pipeline to a conversation: shows it what it may see, writes what it decided, tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from pyagent.agent.journal import Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.server_clearing import ServerClearing
from pyagent.agent.threshold_notices import ThresholdNotices
from pyagent.agent.wire.cost import WRITE_1H_FACTOR, WRITE_5M_FACTOR
from pyagent.agent.wire.stream import Response
from pyagent.compaction.compactor import Preview
from pyagent.compaction.context import ModelLimits, PipelineContext, Sizer, is_cache_warm
from pyagent.compaction.economy import SUMMARY_OUTPUT_TOKENS, CachePrices, Economy
from pyagent.compaction.outcome import (
    Applied,
    Compacted,
    Declined,
    LayerFacts,
    MediaDropped,
    ResultsCleared,
    RoundsFolded,
    RoundsSnipped,
)
from pyagent.compaction.pipeline import Pipeline, PipelineResult
from pyagent.compaction.ports import Ports
from pyagent.compaction.reactive import learned_limit
from pyagent.compaction.thresholds import gauge
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import PromptTooLongError, PyagentError
from pyagent.events import (
    CompactionEnded,
    CompactionStarted,
    CostMoved,
    Event,
    EventSink,
    GaugeFacts,
    GaugeMoved,
    Notice,
)
from pyagent.log import AssistantEntry, Boundary, CompactionFailed, NoticeShown, Revoke, TrackingSaved, UserEntry
from pyagent.messages import text_of
from pyagent.settings import CompactionSettings
from pyagent.view import View
from pyagent.wording import be, plural


class ContextFullError(PyagentError):
    """The context is at its limit and nothing may compact it by itself."""


class NothingToUndoError(PyagentError):
    """No compaction is in force."""


class BackgroundNotes(Protocol):
    def after_round(self, ctx: PipelineContext, tokens: int) -> None:
        """Begin what background work is due; returns at once."""
        ...


class PipelineKeeper:
    """The `ContextKeeper` of a real conversation, and the work behind `/compact`."""

    def __init__(
        self,
        pipeline: Pipeline,
        ports: Ports,
        *,
        journal: Journal,
        profiles: ProfileBook,
        settings: CompactionSettings,
        emit: EventSink,
        source: str,
        transcript_path: str,
        encoding_ready: Callable[[], Awaitable[None]],
        notes: BackgroundNotes,
        server_clearing: ServerClearing,
        after_boundary: Callable[[Boundary], None],
        learn_window: Callable[[int, bool], None],
    ) -> None:
        self.pipeline = pipeline
        self._ports = replace(ports, emit=self._pass_on)
        self._under_way: CompactionStarted | None = None
        self._journal = journal
        self._profiles = profiles
        self.settings = settings
        self._emit = emit
        self._source = source
        self._transcript_path = transcript_path
        self.encoding_ready = encoding_ready
        self._notes = notes
        self.server_clearing = server_clearing
        self._after_boundary = after_boundary
        self._learn_window = learn_window
        self.tracking = AutoCompactTracking.from_json(journal.state.tracking)
        self.keeps_old_results = False
        """A person wants the next request whole: no pause, however long, clears results until it is answered."""
        self._notices = ThresholdNotices(journal.state.records)
        self._overhead: tuple[str, bool, int] | None = None

    # ── what the turn asks for ───────────────────────────────────────────────────────────────────────────────────

    async def before_request(self) -> None:
        await self.encoding_ready()
        async with _TellsOfCancel(self):
            result = await self.pipeline.before_request(self.context())
        await self._carry_out(result)
        self.server_clearing.prepare(self.context())
        self.tell_gauge()
        self._keep_notes()

    async def recover(self, error: PromptTooLongError, refusals: int) -> bool:
        await self.encoding_ready()
        async with _TellsOfCancel(self):
            context = self.context()
            if not error.is_byte_limit:
                limit = learned_limit(error, self.pipeline.count(context).tokens, context.model.window_tokens)
                self._learn_window(limit, error.limit_tokens is not None)
            result = await self.pipeline.on_overflow(context, error, refusals)
        await self._carry_out(result)
        self.tell_gauge()
        return any(isinstance(outcome, Applied) for _, outcome in result.outcomes)

    def commit_response(self, entry: AssistantEntry) -> None:
        """Write a whole response, with what its usage was a count of."""
        state, uuid = self._journal.state, self._journal.new_uuid()
        entry = self.pipeline.measured(state.view, entry, uuid=uuid, seq=state.next_seq, at=self._journal.clock())
        self._journal.commit(entry, uuid=uuid)
        self.tracking = self.pipeline.after_response(self.context())
        self._journal.commit(TrackingSaved(self.tracking.to_json()))

    def after_response(self, response: Response) -> None:
        self.keeps_old_results = False
        self.server_clearing.answered(response)
        self.tell_gauge()
        self._tell_threshold()
        self.tell_cost()
        if response.stop_reason != "tool_use":
            self._keep_notes()

    def _keep_notes(self) -> None:
        context = self.context()
        self._notes.after_round(context, self.pipeline.count(context).tokens)

    def check_room(self) -> None:
        """Raises ContextFullError if no further prompt fits and nothing compacts by itself."""
        if self.gauge().state == "blocked":
            raise ContextFullError(
                "The context is full and automatic compaction is off, so the prompt was not sent.",
                hint="Run /compact to make room, or /clear to start over; your text is back in the input line.",
            )

    # ── /compact ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def compact(self, instructions: str, *, upto: int | None = None, start: int = 0) -> None:
        """Compact now; what came of it is told by events."""
        await self.encoding_ready()
        async with _TellsOfCancel(self):
            result = await self.pipeline.compact(self.context(), instructions, upto=upto, start=start)
        await self._carry_out(result)
        self.tell_gauge()
        for _, outcome in result.outcomes:
            if isinstance(outcome, Declined):
                self._emit(CompactionEnded("failed" if outcome.is_failure else "declined", outcome.reason))

    async def clear_old_results(self) -> None:
        """Clear old tool results now; what came of it is told by events."""
        await self.encoding_ready()
        result = self.pipeline.clear_old_results(self.context())
        self._commit(result)
        self.tell_gauge()
        for _, outcome in result.outcomes:
            if isinstance(outcome, Declined):
                self._emit(Notice(f"Nothing was cleared: {outcome.reason}."))

    async def preview(self, *, upto: int | None = None, start: int = 0) -> Preview | Declined:
        await self.encoding_ready()
        return await self.pipeline.preview(self.context(), upto=upto, start=start)

    def undo(self) -> str:
        """Take the newest compaction back; what was said since stays. Returns a line for the person.

        Raises:
            NothingToUndoError: there is none.
        """
        boundaries = self._journal.state.boundaries
        if not boundaries:
            raise NothingToUndoError("No compaction of this session is in force.", hint="See /compactions.")
        before = self.gauge().used_tokens
        self._journal.commit(Revoke(boundaries[-1].seq))
        self.tell_gauge()
        after = self.gauge()
        line = f"The last compaction is undone: {before:,} → ~{after.used_tokens:,} tokens."
        if after.used_tokens >= after.trigger_tokens and after.is_auto_compact_on:
            line += " That is above the point of automatic compaction: the next prompt would compact again."
        return line

    # ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────

    def context(self) -> PipelineContext:
        """What the pipeline may look at, as of now."""
        model = self._profiles.model
        limits = ModelLimits(
            model.id,
            model.window_tokens,
            model.max_output_tokens,
            needs_whole_tool_loop=model.thinking_types == ("enabled", "disabled"),
        )
        state = self._journal.state
        settings = self.server_clearing.settings()
        if self.keeps_old_results:
            settings = replace(settings, gates=replace(settings.gates, time_based_microcompact=False))
        context = PipelineContext(
            view=state.view,
            history=state,
            settings=settings,
            model=limits,
            query_source=self._source,
            now=self._journal.clock(),
            overhead_tokens=self.overhead_tokens(limits),
            tracking=self.tracking,
            ports=self._ports,
            transcript_path=self._transcript_path,
        )
        context = replace(context, cached_edits=self.server_clearing.edits_for(context))
        economy = self.economy(context) if self.settings.policy == "economy" else None
        return context if economy is None else replace(context, economy_trigger_tokens=economy.best_trigger_tokens)

    def economy(self, context: PipelineContext | None = None) -> Economy | None:
        """The bill at the window's trigger and at the cheapest point; None while price or growth are unknown."""
        profile, price = self._profiles.current, self._profiles.model.price
        if price is None or not price.input_usd or not price.cache_read_usd or profile.cache_ttl == "off":
            return None
        write = WRITE_1H_FACTOR if profile.cache_ttl == "1h" else WRITE_5M_FACTOR
        summary_tokens = SUMMARY_OUTPUT_TOKENS * price.output_usd / price.input_usd
        prices = CachePrices(price.cache_read_usd / price.input_usd, write, price.input_usd, summary_tokens)
        context = replace(context or self.context(), economy_trigger_tokens=None)
        return self.pipeline.economy(context, prices)

    def overhead_tokens(self, limits: ModelLimits) -> int:
        """Estimated tokens of system text and tools; counted once a profile."""
        profile, is_exact = self._profiles.current, self.pipeline.counter.ledger.is_exact
        if self._overhead is None or self._overhead[:2] != (profile.profile_id, is_exact):
            tokens = self.pipeline.counter.text(profile.prefix_bytes.decode("utf-8"), limits.family)
            self._overhead = (profile.profile_id, is_exact, tokens)
        return self._overhead[2]

    @property
    def sizer(self) -> Sizer:
        return Sizer(self.pipeline.counter, self.context().model.family)

    def gauge(self) -> GaugeFacts:
        context = self.context()
        return gauge(self.pipeline.count(context), context.thresholds)

    def measured(self, view: View, tokens: int) -> None:
        """The server counted this view."""
        self.pipeline.counter.measured(view, self.context().model.family, tokens)
        self.tell_gauge()

    def tell_figures(self) -> None:
        """The gauge and the bill as they stand."""
        self.tell_gauge()
        self.tell_cost()

    def tell_gauge(self) -> None:
        self._emit(GaugeMoved(self.gauge()))

    def _tell_threshold(self) -> None:
        """Say once that a line was crossed."""
        line = self._notices.line(self.gauge())
        if line is not None:
            self._journal.commit(line)

    def tell_cost(self) -> None:
        """The bill and the state of the prompt cache."""
        state = self._journal.state
        last = state.view.last_assistant
        share, expires_in_s = 0.0, None
        if last is not None and isinstance(last.entry, AssistantEntry):
            usage = last.entry.usage
            share = usage.cache_read_input_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
            expires_in_s = self.cache_expires_in_s()
        is_exact = not any(total.has_unknown_price for total in state.totals.values())
        self._emit(CostMoved(state.cost_usd, is_exact, share, expires_in_s))

    def cache_expires_in_s(self) -> float | None:
        """Seconds until the prompt cache goes cold; None if it is."""
        view, now = self._journal.state.view, self._journal.clock()
        last = view.last_assistant
        if last is None or not isinstance(last.entry, AssistantEntry) or not is_cache_warm(view, now):
            return None
        started_at = last.entry.request_started_at or last.record.at
        return max(last.entry.cache_ttl_s - (now - started_at).total_seconds(), 0.0)

    def _pass_on(self, event: Event) -> None:
        """The pipeline's events, on their way to the front end: what is under way is remembered for a cancel."""
        if isinstance(event, CompactionStarted):
            self._under_way = event
        self._emit(event)

    def begin(self) -> None:
        self._under_way = None

    def cancelled(self) -> None:
        """An interrupt came: if a compaction was under way, the log says so, and nothing else changes."""
        started = self._under_way
        if started is not None:
            reason = "interrupted; the conversation is as it was"
            self._journal.commit(CompactionFailed(started.layer, started.trigger, reason, is_cancel=True))
            self._emit(CompactionEnded("cancelled", reason))

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _carry_out(self, result: PipelineResult) -> None:
        """Write what was decided; hooks hear of a compaction once it stands."""
        boundary = self._commit(result)
        if boundary is not None:
            summary = self._journal.state.entry(boundary.summary_uuid)
            text = text_of(summary.payload.content) if summary and isinstance(summary.payload, UserEntry) else ""
            await self._ports.hooks.post_compact(boundary.trigger, text)

    def _commit(self, result: PipelineResult) -> Boundary | None:
        """Write all records of a pass at once; the boundary among them, if it compacted."""
        boundary: Boundary | None = None
        for new in result.records:
            if isinstance(new.payload, TrackingSaved) and new.payload.state == self._journal.state.tracking:
                continue
            self._journal.commit(new.payload, uuid=new.uuid, tx=new.tx)
            if isinstance(new.payload, Boundary):
                boundary = new.payload
            if isinstance(new.payload, CompactionFailed):
                self._emit(Notice(f"Compaction failed: {new.payload.reason}", "warning"))
        self.tracking = result.tracking
        self.server_clearing.take(result.cached_edits)
        for _, outcome in result.outcomes:
            if isinstance(outcome, Applied):
                self._tell(outcome.facts)
        for line in result.notices:
            self._journal.commit(NoticeShown(line, "warning"))
        if boundary is not None:
            self._notices.compacted()
            self._after_boundary(boundary)
        return boundary

    def _tell(self, facts: LayerFacts) -> None:
        match facts:
            case Compacted():
                self._emit(facts.finished_event())
                self.tell_cost()
            case ResultsCleared(count=count, freed_tokens=freed, idle_s=idle_s, is_asked_for=is_asked_for):
                is_pause = is_asked_for or idle_s >= self.settings.gap_minutes * 60
                why = f"After a pause of {_duration(idle_s)}" if is_pause else "Because it is cheaper than a summary"
                self._journal.commit(
                    NoticeShown(
                        f"{why}, {plural(count, 'old tool result')} {be(count)} cleared: {freed:,} tokens freed."
                    )
                )
            case RoundsSnipped(count=count, freed_tokens=freed):
                self._journal.commit(
                    NoticeShown(f"{plural(count, 'superseded result')} left the view: {freed:,} tokens freed.")
                )
            case RoundsFolded(folds=count, freed_tokens=freed):
                self._journal.commit(
                    NoticeShown(f"{plural(count, 'finished stretch')} {be(count)} folded: {freed:,} tokens freed.")
                )
            case MediaDropped(count=count, freed_tokens=freed):
                self._journal.commit(
                    NoticeShown(f"No longer sent, as the request was too large: {plural(count, 'attachment')}.")
                )
            case _:
                pass


class _TellsOfCancel:
    """Around one pass of the pipeline: says that a compaction was cancelled, if one was under way then."""

    def __init__(self, keeper: PipelineKeeper) -> None:
        self._keeper = keeper

    async def __aenter__(self) -> None:
        self._keeper.begin()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is asyncio.CancelledError:
            self._keeper.cancelled()


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
