"""The texts of `/cost` and `/status`: what was spent, and what this session is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyagent.agent.wire.cache_break import CacheBreak
from pyagent.events import Report
from pyagent.messages import JsonObject
from pyagent.state import MAIN_SOURCE, ConversationState, ModelTotal

_SOURCE_WORDS = {
    MAIN_SOURCE: "conversation",
    "compact": "summaries",
    "session_memory": "session notes",
    "draft": "summaries prepared in the background",
    "btw": "side questions",
}


def source_words(source: str) -> str:
    """What calls were for, in words."""
    return _SOURCE_WORDS.get(source, source)


def cost_report(state: ConversationState, session_total_s: float, breaks: Sequence[CacheBreak] = ()) -> Report:
    """The bill so far, by model and by what it was for, and what lost prompt caches have cost since the start.

    Prices are list prices; a model without one counts as unknown, not as free.
    """
    lines: list[str] = []
    data: JsonObject = {"models": {}}
    is_exact = True
    for model, total in sorted(state.totals.items(), key=lambda pair: -pair[1].cost_usd):
        price = "price unknown" if total.has_unknown_price else f"${total.cost_usd:,.4f}"
        is_exact = is_exact and not total.has_unknown_price
        share = total.cache_read_tokens / total.prompt_tokens if total.prompt_tokens else 0.0
        lines.append(f"{model}: {price}")
        lines.append(
            f"  {_calls(total.calls)} · {total.prompt_tokens:,} tokens sent, {share:.0%} of them read from the cache · "
            f"{total.cache_write_tokens:,} written to it · {total.output_tokens:,} received"
        )
        data["models"][model] = {
            "calls": total.calls,
            "prompt_tokens": total.prompt_tokens,
            "cache_read_tokens": total.cache_read_tokens,
            "cache_write_tokens": total.cache_write_tokens,
            "output_tokens": total.output_tokens,
            "cost_usd": None if total.has_unknown_price else total.cost_usd,
        }
    if not lines:
        lines.append("Nothing was sent yet.")
    data["sources"] = {
        source: {"calls": total.calls, "cost_usd": None if total.has_unknown_price else total.cost_usd}
        for source, total in state.source_totals.items()
    }
    if set(state.source_totals) - {MAIN_SOURCE}:
        lines += ["", *(_source_line(source, total) for source, total in state.source_totals.items())]
    data["cache_breaks"] = [
        {"causes": list(found.causes), "tokens": found.lost_tokens, "extra_usd": found.extra_usd} for found in breaks
    ]
    if breaks:
        lines += ["", "Prompt cache lost unexpectedly:", *(break_line(found) for found in breaks)]
    total_text = f"${state.cost_usd:,.4f}" + ("" if is_exact else " and calls of unknown price")
    data |= {"total_usd": state.cost_usd, "is_exact": is_exact}
    head = [f"Total: {total_text}", f"Session open for {_duration(session_total_s)}", ""]
    return Report("Cost", "\n".join(head + lines), data)


def _calls(count: int) -> str:
    return f"{count:,} call" + ("" if count == 1 else "s")


def _source_line(source: str, total: ModelTotal) -> str:
    price = "price unknown" if total.has_unknown_price else f"${total.cost_usd:,.4f}"
    return f"for the {source_words(source)}: {price} in {_calls(total.calls)}"


def break_line(found: CacheBreak) -> str:
    """What a lost cache cost, in words."""
    price = "price unknown" if found.extra_usd is None else f"${found.extra_usd:,.4f} more"
    return f"  {found.lost_tokens:,} tokens sent anew, {price}: {'; '.join(found.causes)}"


def breaks_text(breaks: Sequence[CacheBreak]) -> str:
    """Words behind the cache's state for the unexpected losses so far; empty if there were none."""
    if not breaks:
        return ""
    tokens = sum(found.lost_tokens for found in breaks)
    return f"; lost unexpectedly {len(breaks)} times, {tokens:,} tokens sent anew (see /cost)"


@dataclass(frozen=True, slots=True)
class StatusFacts:
    version: str
    session_id: str
    title: str
    transcript_path: str
    model: str
    endpoint: str
    mode: str
    cwd: str
    git_branch: str
    context_files: Sequence[str]
    log_path: str


def status_report(facts: StatusFacts) -> Report:
    """What this session is and where it lives."""
    rows = [
        ("pyagent", facts.version),
        ("session", facts.session_id + (f" ({facts.title})" if facts.title else "")),
        ("transcript", facts.transcript_path or "not saved"),
        ("model", f"{facts.model} at {facts.endpoint}"),
        ("mode", facts.mode),
        ("folder", facts.cwd + (f" on {facts.git_branch}" if facts.git_branch else "")),
        ("memory files", ", ".join(facts.context_files) or "none"),
        ("log", facts.log_path),
    ]
    lines = [f"{name:<13} {value}" for name, value in rows]
    return Report("Status", "\n".join(lines), dict(rows))


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"
