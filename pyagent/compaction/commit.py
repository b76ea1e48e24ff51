"""From an assembly to the records of one transaction, the boundary last; and the check that it was worth it.

Nothing is written here: the records are returned, so a cancel at any moment before leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyagent.compaction.anchors import AnchorCheck, anchors_of, check_anchors, ledger, view_text
from pyagent.compaction.budget import Assembly, prompt_texts
from pyagent.compaction.context import PipelineContext, Sizer
from pyagent.compaction.full import Bill
from pyagent.compaction.outcome import Applied, Compacted, NewRecord
from pyagent.compaction.plan import CompactionPlan
from pyagent.compaction.ports import RestorableState
from pyagent.log import Boundary, ClearResults, Record, UserEntry
from pyagent.messages import Block, JsonObject, TextBlock
from pyagent.view import View

MIN_GAIN_SHARE = 0.10
"""A compaction must make the context at least this much smaller, else it only costs."""

MAX_LEDGER_TOKENS = 400
"""The list of what the summary left out stays a list, not a second summary."""

_INTRODUCTION = (
    "This session continues from an earlier conversation that no longer fits into the context. "
    "What happened in it is summarised here:"
)
_PROMPTS_INTRODUCTION = (
    "What the user said in the summarised part, word for word, oldest first. It is a record, not a list of new "
    "requests; where it differs from the summary, it is right:"
)
_CONTINUE = (
    "Go on with the task from where it stands. Do not ask the user whether to continue, and do not repeat or comment "
    "on this summary; if the last task was finished, wait for the user."
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A compaction ready to be judged and committed."""

    records: tuple[NewRecord, ...]
    view: View
    """The view as it will be."""
    after_tokens: int
    facts: Compacted

    @property
    def applied(self) -> Applied:
        return Applied(self.records, self.facts)


def prepare(
    ctx: PipelineContext,
    plan: CompactionPlan,
    assembly: Assembly,
    sizer: Sizer,
    *,
    bill: Bill,
    started_s: float,
    state: RestorableState,
    instructions: str = "",
    fallback_reason: str = "",
    signed: JsonObject | None = None,
) -> Prepared:
    """The records of a compaction and the view they make. `started_s` is how long it has taken so far, seconds.

    A summary that is `signed` stands alone, with the kept messages right behind it; what else is to be said of what
    came before follows these.
    """
    new_uuid, tx = ctx.ports.new_uuid, ctx.ports.new_uuid()
    replaced = {
        uuid: NewRecord(new_uuid(), UserEntry((TextBlock(text),), display=text), tx)
        for uuid, text in assembly.replaced.items()
    }
    attachments: list[NewRecord] = []
    seen: list[NewRecord] = []
    for attachment in assembly.attachments:
        record = NewRecord(
            new_uuid(), UserEntry((TextBlock(attachment.text),), origin="attachment", label=attachment.label), tx
        )
        attachments.append(record)
        if attachment.seen is not None:
            seen.append(NewRecord(new_uuid(), replace(attachment.seen, shown_by=record.uuid), tx))
    cuts = (
        (NewRecord(new_uuid(), ClearResults(assembly.cut_results, "cut to fit behind a compaction"), tx),)
        if assembly.cut_results
        else ()
    )

    summary_uuid = new_uuid()
    kept_text = view_text(_only(plan.view, set(assembly.kept)))
    place = "stand before this" if signed is not None else "follow"
    blocks = _summary_blocks(ctx, plan, assembly, kept_place=place if assembly.kept else "")
    check = _check(plan, assembly, blocks, kept_text, attachments)
    if note := sizer.head(ledger(check.missing), MAX_LEDGER_TOKENS):
        blocks = (*blocks[:-1], TextBlock(note), blocks[-1])
    summary = NewRecord(summary_uuid, UserEntry(blocks, origin="summary"), tx)
    remarks: tuple[NewRecord, ...] = ()
    if signed is not None:
        summary = NewRecord(summary_uuid, UserEntry(blocks[:1], origin="summary", signed=signed), tx)
        remarks = (NewRecord(new_uuid(), UserEntry(blocks[1:], origin="summary"), tx),)

    kept = tuple(replaced[uuid].uuid if uuid in replaced else uuid for uuid in assembly.kept)
    entries = (summary, *(replaced[uuid] for uuid in assembly.kept if uuid in replaced), *remarks, *attachments)
    covered = plan.view.items[plan.head_end : plan.covered_end]
    boundary = Boundary(
        layout=(*assembly.head, summary_uuid, *kept, *(record.uuid for record in (*remarks, *attachments))),
        trigger=plan.trigger,
        layer=plan.layer,
        pre_tokens=plan.before_tokens,
        post_tokens=0,
        messages_summarized=sum(1 for item in covered if item.uuid not in assembly.kept),
        kept=(*assembly.head, *(uuid for uuid in assembly.kept if uuid not in replaced)),
        summary_uuid=summary_uuid,
        user_context=instructions,
        checkpoint=_checkpoint(plan, assembly, state),
    )
    view = _view_after(ctx, plan.view, entries, cuts, boundary)
    after_tokens = ctx.overhead_tokens + sizer.whole(view)
    duration_s = round(started_s, 3)
    receipt: JsonObject = {
        "cause": plan.trigger,
        "duration_s": duration_s,
        "calls": bill.calls,
        "cost_usd": bill.cost_usd,
        "cached_share": round(bill.cached_share, 4),
        "before_tokens": plan.before_tokens,
        "after_tokens": after_tokens,
        "parts": assembly.parts,
        "files_restored": [a.label.removeprefix("file:") for a in assembly.attachments if a.seen is not None],
        "referenced": list(assembly.referenced),
        "messages_kept": len(assembly.head) + len(kept),
        "prompts_kept": len(assembly.prompts),
        "prompts_elided": assembly.elided_prompts,
        "anchors": {
            "checked": check.checked,
            "missing": [anchor.text for anchor in check.missing],
            "text": check.text,
        },
        "contributors": list(assembly.contributors),
    }
    if fallback_reason:
        receipt["fallback_reason"] = fallback_reason
    boundary = replace(boundary, post_tokens=after_tokens, receipt=receipt)
    records = (*entries, *seen, *cuts, NewRecord(new_uuid(), boundary, tx))
    facts = Compacted(
        plan.trigger,
        plan.layer,
        plan.before_tokens,
        after_tokens,
        bill.calls,
        duration_s,
        bill.cost_usd,
        receipt,
        fallback_reason,
    )
    return Prepared(records, view, after_tokens, facts)


def gain_problem(ctx: PipelineContext, plan: CompactionPlan, prepared: Prepared, sizer: Sizer) -> str:
    """Why the outcome does not help, or an empty text. Both views are measured by the same local estimate."""
    before = ctx.overhead_tokens + sizer.whole(plan.view)
    if prepared.after_tokens > before * (1 - MIN_GAIN_SHARE):
        return f"it would not make the context smaller ({before:,} → {prepared.after_tokens:,} tokens)"
    trigger = ctx.thresholds.trigger
    if prepared.after_tokens >= trigger:
        return f"{prepared.after_tokens:,} tokens would still be at or above the trigger of {trigger:,}"
    return ""


def _summary_blocks(
    ctx: PipelineContext, plan: CompactionPlan, assembly: Assembly, *, kept_place: str
) -> tuple[TextBlock, ...]:
    blocks = [TextBlock(f"{_INTRODUCTION}\n\n{assembly.summary}")]
    if assembly.prompts:
        lines = [_PROMPTS_INTRODUCTION]
        first_of_newest = _gap_before(assembly, plan)
        for number, (_, text) in enumerate(assembly.prompts):
            if number == first_of_newest:
                lines.append(f"[… {assembly.elided_prompts:,} messages between are left out …]")
            lines.append(f"<user_message>\n{text}\n</user_message>")
        if first_of_newest == len(assembly.prompts):
            lines.append(f"[… {assembly.elided_prompts:,} newer messages are left out …]")
        blocks.append(TextBlock("\n".join(lines)))
    closing: list[str] = []
    if ctx.transcript_path:
        closing.append(
            "Exact code, messages and output that the summary leaves out can be searched with Recall; the whole "
            f"conversation is also in {ctx.transcript_path}."
        )
    if kept_place:
        closing.append(f"The newest messages {kept_place} word for word.")
    if plan.trigger == "auto":
        closing.append(_CONTINUE)
    blocks.append(TextBlock("\n".join(closing) or "The conversation goes on from here."))
    return tuple(blocks)


def _gap_before(assembly: Assembly, plan: CompactionPlan) -> int:
    """Index of the prompt before which others were left out; -1 if none were."""
    if not assembly.elided_prompts:
        return -1
    stays = {uuid for uuid, _ in assembly.prompts}
    count = 0
    for uuid, _ in prompt_texts(plan.view, plan.keep_from):
        if uuid not in stays and uuid not in assembly.kept and uuid not in assembly.head:
            return count
        count += uuid in stays
    return count


def _checkpoint(plan: CompactionPlan, assembly: Assembly, state: RestorableState) -> JsonObject:
    """What the next compaction, or a reader that opens the file from here, must know of what stands before."""
    boundary = None if plan.view.boundary is None else plan.view.boundary.payload
    before = boundary.checkpoint if isinstance(boundary, Boundary) else {}
    tools = sorted({*before.get("discovered_tools", []), *state.discovered_tools})
    prompts = [list(prompt) for prompt in assembly.prompts]
    return {"prompts": prompts, "discovered_tools": tools}


def _check(
    plan: CompactionPlan, assembly: Assembly, blocks: tuple[Block, ...], kept_text: str, attachments: list[NewRecord]
) -> AnchorCheck:
    texts = [kept_text, *(block.text for block in blocks if isinstance(block, TextBlock))]
    texts += [record.payload.text for record in attachments if isinstance(record.payload, UserEntry)]
    kept = set(assembly.kept)
    gone = (item for item in plan.view.items[plan.head_end : plan.covered_end] if item.uuid not in kept)
    return check_anchors(anchors_of(gone), "\n".join(texts))


def _only(view: View, uuids: set[str]) -> View:
    return View(tuple(item for item in view.items if item.uuid in uuids), view.epoch, view.boundary)


def _view_after(
    ctx: PipelineContext,
    view: View,
    entries: tuple[NewRecord, ...],
    cuts: tuple[NewRecord, ...],
    boundary: Boundary,
) -> View:
    """The view as the fold will make it once the records are written."""
    seq = max([view.epoch, *(item.record.seq for item in view.items)], default=-1) + 1
    known = {item.uuid: item.record for item in view.items}
    for record in entries:
        known[record.uuid] = Record(seq, record.uuid, ctx.now, record.payload, record.tx)
        seq += 1
    for record in cuts:
        if isinstance(record.payload, ClearResults):
            view = view.with_op(record.payload, seq)
            seq += 1
    return view.with_boundary(Record(seq, "boundary", ctx.now, boundary), known)
