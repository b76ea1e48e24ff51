"""Layers 2 and 3 at work: notes, else a model's summary, else the extract; then assembled, checked, and returned.

A compaction never ends in "it can't be done": when no model can summarise, the extract stands in. Only a chat with
nothing to summarise is refused, and a fault of the connection while there is still room is left for the next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyagent.compaction.budget import Assembly, assemble, prompt_texts
from pyagent.compaction.commit import Prepared, gain_problem, prepare
from pyagent.compaction.context import PipelineContext, Sizer, is_cache_warm
from pyagent.compaction.extractive import extractive_summary
from pyagent.compaction.full import Bill, NoSummary, summarise
from pyagent.compaction.outcome import Declined, LayerOutcome, NewRecord, Trigger
from pyagent.compaction.plan import CompactionPlan, plan_compaction, server_cut
from pyagent.compaction.ports import PreCompactAnswer, RestorableState, SessionNotes
from pyagent.compaction.restore import Material, gather
from pyagent.compaction.session_memory import notes_as_summary, plan_from_notes
from pyagent.compaction.thresholds import Thresholds
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.errors import PyagentError
from pyagent.events import CompactionEnded, CompactionStarted
from pyagent.log import CompactionFailed
from pyagent.messages import JsonObject
from pyagent.view import View

SCOPE_CHARS = 200
"""Of the message from which on is summarised: enough for the model to find it."""

DISABLED = "Compaction is switched off (DISABLE_COMPACT is set). Unset it, or start over with /clear."


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compaction would do. Figures in tokens."""

    plan: CompactionPlan
    assembly: Assembly
    before_tokens: int
    after_tokens: int
    uses_notes: bool
    """True if the notes would be the summary, and no model would be called."""

    @property
    def text(self) -> str:
        """The lines of `/compact preview`."""
        kept = len(self.assembly.head) + len(self.assembly.kept)
        lines = [
            f"{self.before_tokens:,} → about {self.after_tokens:,} tokens"
            + (" · from the session's notes, no API call" if self.uses_notes else ""),
            f"summarised: {self.plan.covered_end - self.plan.head_end:,} messages · kept word for word: {kept:,}",
            f"your earlier messages kept: {len(self.assembly.prompts):,}, left out: {self.assembly.elided_prompts:,}",
        ]
        rest = self.after_tokens - sum(self.assembly.parts.values())
        parts = {**({"system prompt, tools and frames": rest} if rest > 0 else {}), **self.assembly.parts}
        lines.append("behind it, in tokens:")
        lines += [f"  {name}: {tokens:,}" for name, tokens in parts.items() if tokens]
        return "\n".join([*lines, *self._restored_lines()])

    def _restored_lines(self) -> list[str]:
        """What is laid down anew, each thing once: whole, in part, or by its name."""
        labels = [attachment.label for attachment in self.assembly.attachments]
        subjects = [label.partition(":")[2] or label for label in labels]
        cut = set(self.assembly.referenced)
        lines = [
            f"  restored{', cut' if subject in cut else ''}: {label.replace(':', ' ', 1)}"
            for label, subject in zip(labels, subjects, strict=True)
        ]
        return [*lines, *(f"  named only: {path}" for path in self.assembly.referenced if path not in subjects)]


async def auto_compact(ctx: PipelineContext, sizer: Sizer, tokens: int) -> tuple[LayerOutcome, AutoCompactTracking]:
    """One automatic compaction, once `should_auto_compact` has said yes."""
    run = CompactionRun(ctx, sizer, "auto", tokens)
    run.announce("auto")
    outcome, tracking = await _auto_compact(run)
    run.tell_end(outcome)
    return outcome, tracking


async def _auto_compact(run: CompactionRun) -> tuple[LayerOutcome, AutoCompactTracking]:
    ctx = run.ctx
    if (noted := await run.from_notes()) is not None:
        return run.done(noted)
    tracking = ctx.tracking
    if not tracking.may_attempt(ctx.now):
        return await run.extract(tracking, f"summarising is paused: {tracking.last_failure_reason}")
    made = await run.by_model(())
    if isinstance(made, Prepared):
        return run.done(made)
    if made.is_blocked:
        return Declined(made.reason), tracking
    if made.is_hopeless:
        return await run.extract(tracking, made.reason)
    tracking = tracking.failed(ctx.now, made.reason)
    has_room = run.tokens < ctx.thresholds.blocking
    if made.may_pass and has_room and not tracking.is_circuit_open:
        return Declined(
            f"Compaction failed: {made.reason}", is_failure=True, records=run.failure(made.reason)
        ), tracking
    return await run.extract(tracking, made.reason, failure=run.failure(made.reason))


async def manual_compact(
    ctx: PipelineContext,
    sizer: Sizer,
    tokens: int,
    *,
    instructions: str = "",
    upto: int | None = None,
    start: int = 0,
) -> tuple[LayerOutcome, AutoCompactTracking]:
    """`/compact`, with the user's instructions for the summary.

    `upto` limits it to the items before that position, `start` to those from it on.
    """
    if ctx.settings.is_disabled:
        return Declined(DISABLED), ctx.tracking
    run = CompactionRun(ctx, sizer, "manual", tokens, upto, start=start)
    if isinstance(run.plan(), str):
        return Declined(str(run.plan())), ctx.tracking
    run.announce("full")
    if not instructions.strip() and upto is None and not start and (noted := await run.from_notes()) is not None:
        return run.done(noted)
    made = await run.by_model((instructions, run.scope()))
    if isinstance(made, Prepared):
        return run.done(made)
    if made.is_blocked or made.is_no_gain:
        return Declined(made.reason), ctx.tracking
    tracking = ctx.tracking.failed(ctx.now, made.reason)
    return await run.extract(tracking, made.reason, failure=run.failure(made.reason))


async def draft(ctx: PipelineContext, sizer: Sizer, tokens: int) -> SessionNotes | Declined:
    """A summary prepared ahead from a snapshot: it serves like notes once a compaction is due."""
    run = CompactionRun(ctx, sizer, "auto", tokens)
    plan = run.plan()
    if isinstance(plan, str):
        return Declined(plan)
    if not is_cache_warm(ctx.view, ctx.now):
        return Declined("the prompt cache is cold, so a draft would cost a whole context")
    made = await summarise(
        plan, ctx.ports.summarizer, sizer, instructions=(), shares_prefix=True, may_retry_streams=False
    )
    if isinstance(made, NoSummary):
        return Declined(made.reason, is_failure=True)
    covered_uuid = plan.view.items[made.plan.covered_end - 1].uuid
    return SessionNotes(made.text, covered_uuid, is_draft=True, cost_usd=made.bill.cost_usd)


async def preview(
    ctx: PipelineContext, sizer: Sizer, tokens: int, *, upto: int | None = None, start: int = 0
) -> Preview | Declined:
    """The plan and its assembly with a summary of the length that would be asked for."""
    if ctx.settings.is_disabled:
        return Declined(DISABLED)
    run = CompactionRun(ctx, sizer, "manual", tokens, upto, start=start)
    notes_plan = None if upto is not None or start else await run.notes_plan()
    plan = notes_plan[0] if notes_plan else run.plan()
    if isinstance(plan, str):
        return Declined(plan)
    ports = ctx.ports
    # Hooks have effects of their own, so a preview runs none.
    material = await gather(plan.view, plan.keep_from, ctx.history, ports.sources, ports.hooks, hook_output=())
    summary = notes_plan[1] if notes_plan else _stand_in(plan, sizer)
    assembly = assemble(plan, summary, material, prompt_texts(plan.view, plan.keep_from), sizer)
    after = prepare(ctx, plan, assembly, sizer, bill=Bill(), started_s=0.0, state=material.state)
    return Preview(plan, assembly, tokens, after.after_tokens, uses_notes=notes_plan is not None)


def _stand_in(plan: CompactionPlan, sizer: Sizer) -> str:
    """A text as long as the summary would be."""
    return sizer.head("word " * plan.summary_target_tokens * 2, plan.summary_target_tokens)


def largest_contributors(ctx: PipelineContext, sizer: Sizer, count: int = 3) -> tuple[str, ...]:
    """What takes the most room in the context, in words, largest first."""
    parts: list[tuple[int, str]] = [(ctx.overhead_tokens, "system prompt and tools")]
    for item in ctx.view.items:
        entry = item.record.payload
        name = getattr(entry, "label", "") or getattr(entry, "origin", "") or "a response"
        parts.append((sizer.item(ctx.view, item), name.replace("_", " ")))
    parts.sort(key=lambda part: -part[0])
    return tuple(f"{name} ({tokens:,} tokens)" for tokens, name in parts[:count])


@dataclass(frozen=True, slots=True)
class NotMade:
    reason: str
    may_pass: bool = False
    is_blocked: bool = False
    is_no_gain: bool = False
    is_hopeless: bool = False
    """There is nothing a summary could replace; only the current round is too big."""


class CompactionRun:
    """One compaction in the making."""

    def __init__(
        self,
        ctx: PipelineContext,
        sizer: Sizer,
        trigger: Trigger,
        tokens: int,
        upto: int | None = None,
        *,
        start: int = 0,
        layer: str = "full",
        thresholds: Thresholds | None = None,
    ) -> None:
        self.ctx, self.sizer, self.trigger, self.tokens, self.upto, self.layer = (
            ctx,
            sizer,
            trigger,
            tokens,
            upto,
            layer,
        )
        self.start = start
        self.thresholds = thresholds or ctx.thresholds
        self.bill = Bill()
        self._started_at = ctx.ports.clock()
        self._material: tuple[int, Material] | None = None

    def announce(self, layer: str) -> None:
        self.ctx.ports.emit(CompactionStarted(self.trigger, layer, self.tokens))

    def tell_end(self, outcome: LayerOutcome) -> None:
        """After an announced compaction that nobody asked for: that it came to nothing, if it did."""
        if isinstance(outcome, Declined):
            self.ctx.ports.emit(CompactionEnded("failed" if outcome.is_failure else "declined", outcome.reason))

    def plan(self, *, layer: str = "", is_forced: bool = False) -> CompactionPlan | str:
        return plan_compaction(
            self.ctx.view,
            self.sizer,
            self.thresholds,
            trigger=self.trigger,
            layer=layer or self.layer,
            before_tokens=self.tokens,
            overhead_tokens=self.ctx.overhead_tokens,
            upto=self.upto,
            start=self.start,
            is_forced=is_forced,
        )

    def scope(self) -> str:
        """What a summary of the newer part alone must leave out; empty for any other."""
        plan = self.plan()
        if not self.start or isinstance(plan, str) or plan.head_end >= len(plan.view):
            return ""
        words = " ".join(plan.view.items[plan.head_end].entry.text.split())[:SCOPE_CHARS]
        return f"Summarise only what came from this message on; all before it stays word for word: {words!r}"

    async def notes_plan(self) -> tuple[CompactionPlan, str] | None:
        """The plan that rests on the session's notes, and these as a summary; None if they can't serve."""
        notes = await self.ctx.ports.notes.current()
        if notes is None or not (notes.is_draft or self.ctx.settings.gates.session_memory):
            return None
        plan = plan_from_notes(
            self.ctx.view,
            notes,
            self.sizer,
            self.thresholds,
            trigger=self.trigger,
            before_tokens=self.tokens,
            overhead_tokens=self.ctx.overhead_tokens,
        )
        if isinstance(plan, str):
            return None
        if notes.is_draft:
            self.bill = Bill(calls=1, cost_usd=notes.cost_usd)
            return replace(plan, layer="draft"), notes.text
        return plan, notes_as_summary(notes.text, self.sizer)

    async def from_notes(self) -> Prepared | None:
        """Layer 2: no API call."""
        found = await self.notes_plan()
        if found is None:
            return None
        plan, summary = found
        prepared = await self.prepared(plan, summary)
        return None if gain_problem(self.ctx, plan, prepared, self.sizer) else prepared

    async def by_model(self, instructions: Sequence[str]) -> Prepared | NotMade:
        """Layer 3: a model's summary."""
        plan = self.plan()
        if isinstance(plan, str):
            return NotMade(plan, is_hopeless=True)
        hook: PreCompactAnswer = await self.ctx.ports.hooks.pre_compact(self.trigger, "\n".join(instructions))
        if hook.block_reason:
            return NotMade(f"a PreCompact hook forbids it: {hook.block_reason}", is_blocked=True)
        by_server = await self.by_server("\n".join((*instructions, hook.instructions)).strip())
        if by_server is not None:
            return by_server
        asked = self.bill
        gates = self.ctx.settings.gates
        made = await summarise(
            plan,
            self.ctx.ports.summarizer,
            self.sizer,
            instructions=(*instructions, hook.instructions),
            shares_prefix=gates.compact_cache_prefix and is_cache_warm(self.ctx.view, self.ctx.now),
            may_retry_streams=gates.compact_streaming_retry,
        )
        self.bill = made.bill.joined(asked)
        if isinstance(made, NoSummary):
            return NotMade(made.reason, may_pass=made.may_pass)
        prepared = await self.prepared(made.plan, made.text, instructions="\n".join(instructions).strip())
        problem = gain_problem(self.ctx, plan, prepared, self.sizer)
        return NotMade(problem, is_no_gain=True) if problem else prepared

    async def by_server(self, instructions: str) -> Prepared | None:
        """Layer 3 by the server's own summary, where that is asked for; None if it can't be had, or does not help."""
        plan, server = self.plan(layer="server"), self.ctx.ports.server
        if self.ctx.settings.strategy != "server" or server is None or isinstance(plan, str) or self.layer != "full":
            # Where a request was too long already, the same messages would be once more.
            return None
        cut = server_cut(plan)
        if cut is None or not server.is_available():
            return None
        part = View(plan.view.items[: cut.keep_from], plan.view.epoch, plan.view.boundary)
        try:
            made = await server.summarize(part, instructions)
        except PyagentError:
            # Whatever it was, the summary on pyagent's own instruction is next, and says what is wrong if it fails too.
            self.bill = self.bill.plus_failed_call()
            return None
        if made is None:
            self.bill = self.bill.plus_failed_call()
            return None
        self.bill = self.bill.plus(made)
        prepared = await self.prepared(cut, made.text, instructions=instructions, signed=made.signed)
        return None if gain_problem(self.ctx, cut, prepared, self.sizer) else prepared

    async def extract(
        self,
        tracking: AutoCompactTracking,
        reason: str,
        *,
        failure: tuple[NewRecord, ...] = (),
        limit_tokens: int | None = None,
    ) -> tuple[LayerOutcome, AutoCompactTracking]:
        """The compaction without a model; `failure` is written before it. `limit_tokens` is the most it may leave."""
        limit = min(limit_tokens or self.ctx.thresholds.trigger, self.ctx.thresholds.trigger)
        plan = self.plan(layer="extractive", is_forced=True)
        assert isinstance(plan, CompactionPlan)
        # From the gentlest cut to the barest: what is in use goes before the user's last words do.
        barest = replace(plan, covered_end=len(plan.view), keep_from=len(plan.view), tail_from=len(plan.view))
        without_files = Material(RestorableState(memory=(await self.ctx.ports.sources.state()).memory))
        for attempt, material in ((plan, None), (barest, without_files), (barest, Material(RestorableState()))):
            state = await self.material(attempt) if material is None else material
            tasks = state.state.tasks.text if state.state.tasks else ""
            items = attempt.view.items[attempt.head_end : attempt.covered_end]
            text = extractive_summary(items, attempt.summary_target_tokens, self.sizer, tasks=tasks)
            prepared = await self.prepared(attempt, text, material=state, fallback_reason=reason)
            if prepared.after_tokens < limit and prepared.after_tokens < self.before_tokens():
                outcome, after = self.done(prepared, tracking, is_by_model=False)
                records = (*failure, *outcome.records)
                return replace(outcome, records=records), after
        text = f"Compaction could not make the context smaller: {reason}."
        return Declined(text, is_failure=True, records=failure or self.failure(reason)), tracking

    def before_tokens(self) -> int:
        """The context now, by the same local estimate that measures the outcome."""
        return self.ctx.overhead_tokens + self.sizer.whole(self.ctx.view)

    async def prepared(
        self,
        plan: CompactionPlan,
        summary: str,
        *,
        instructions: str = "",
        material: Material | None = None,
        fallback_reason: str = "",
        signed: JsonObject | None = None,
    ) -> Prepared:
        material = material or await self.material(plan)
        assembly = assemble(plan, summary, material, prompt_texts(plan.view, plan.keep_from), self.sizer)
        return prepare(
            self.ctx,
            plan,
            assembly,
            self.sizer,
            bill=self.bill,
            started_s=(self.ctx.ports.clock() - self._started_at).total_seconds(),
            state=material.state,
            instructions=instructions,
            fallback_reason=fallback_reason,
            signed=signed,
        )

    async def material(self, plan: CompactionPlan) -> Material:
        """What can be restored, read once: hooks must not run again because a second plan is tried."""
        if self._material is None or self._material[0] != plan.keep_from:
            ports = self.ctx.ports
            hook_output = None if self._material is None else self._material[1].hook_output
            made = await gather(
                plan.view, plan.keep_from, self.ctx.history, ports.sources, ports.hooks, hook_output=hook_output
            )
            self._material = plan.keep_from, made
        return self._material[1]

    def done(
        self, prepared: Prepared, tracking: AutoCompactTracking | None = None, *, is_by_model: bool = True
    ) -> tuple[LayerOutcome, AutoCompactTracking]:
        after = (tracking or self.ctx.tracking).succeeded(
            prepared.records[-1].tx,
            after_tokens=prepared.after_tokens,
            trigger_tokens=self.ctx.thresholds.trigger,
            is_by_model=is_by_model,
        )
        return prepared.applied, after

    def failure(self, reason: str) -> tuple[NewRecord, ...]:
        return (NewRecord(self.ctx.ports.new_uuid(), CompactionFailed(self.layer, self.trigger, reason)),)
