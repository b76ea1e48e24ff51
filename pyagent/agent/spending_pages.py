"""The facts of `/cost` and `/compactions` for a screen."""

from __future__ import annotations

from collections.abc import Sequence

from pyagent.agent.receipts import LAYER_WORDS, receipt_lines
from pyagent.agent.reports import break_line, source_words
from pyagent.agent.wire.cache_break import CacheBreak
from pyagent.log import AssistantEntry, Boundary, Record, UserEntry
from pyagent.pages import CompactionRow, CompactionsPage, CostPage, CostRow, CostTurn
from pyagent.state import ConversationState, ModelTotal

MAX_PROMPT_CHARS = 80


def cost_page(state: ConversationState, open_for_s: float, breaks: Sequence[CacheBreak] = ()) -> CostPage:
    by_cost = sorted(state.totals.items(), key=lambda pair: -pair[1].cost_usd)
    return CostPage(
        total_usd=state.cost_usd,
        is_exact=not any(total.has_unknown_price for total in state.totals.values()),
        open_for_s=open_for_s,
        models=tuple(_row(model, total) for model, total in by_cost),
        purposes=tuple(_row(source_words(source), total) for source, total in state.source_totals.items()),
        turns=_turns(state.branch),
        lost_caches=tuple(break_line(found).strip() for found in breaks),
    )


def _row(name: str, total: ModelTotal) -> CostRow:
    return CostRow(
        name,
        total.calls,
        total.prompt_tokens,
        total.cache_read_tokens,
        total.cache_write_tokens,
        total.output_tokens,
        None if total.has_unknown_price else total.cost_usd,
    )


def _turns(branch: Sequence[Record]) -> tuple[CostTurn, ...]:
    turns: list[CostTurn] = []
    prompt, total = "", ModelTotal()

    def end() -> None:
        if total.calls:
            turns.append(CostTurn(len(turns) + 1, prompt, _row("", total)))

    for record in branch:
        match record.payload:
            case UserEntry(origin="prompt") as entry if not record.tx:
                end()
                prompt, total = " ".join((entry.display or entry.text).split())[:MAX_PROMPT_CHARS], ModelTotal()
            case AssistantEntry(usage=usage, cost_usd=usd):
                total = total.plus(usage, usd)
            case _:
                pass
    end()
    return tuple(turns)


def compactions_page(state: ConversationState) -> CompactionsPage:
    """The compactions in force, oldest first."""
    rows = []
    for number, record in enumerate(state.boundaries, start=1):
        boundary = record.payload
        assert isinstance(boundary, Boundary)
        _, *lines = receipt_lines(number, record.at, boundary)
        summary = state.entry(boundary.summary_uuid)
        text = summary.payload.text if summary is not None and isinstance(summary.payload, UserEntry) else ""
        how = "by hand" if boundary.trigger == "manual" else "automatic"
        rows.append(
            CompactionRow(
                number,
                record.at,
                f"{LAYER_WORDS.get(boundary.layer, boundary.layer)}, {how}",
                boundary.pre_tokens,
                boundary.post_tokens,
                tuple(line.strip() for line in lines),
                text,
                is_undoable=number == len(state.boundaries),
            )
        )
    return CompactionsPage(tuple(rows))
