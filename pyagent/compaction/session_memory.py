"""Layer 2, session memory: notes kept in the background are a summary that is already there.

This module decides when the notes are brought up to date and how they serve as a summary; the fork that writes them
is the conversation's.

Source: context pipeline design, section 6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pyagent.compaction.budget import CURRENT_ROUND_SHARE
from pyagent.compaction.context import Sizer
from pyagent.compaction.outcome import Trigger
from pyagent.compaction.plan import CompactionPlan, first_since_boundary, plan_compaction
from pyagent.compaction.ports import SessionNotes
from pyagent.compaction.prompt import prompt_text
from pyagent.compaction.rounds import Round, api_rounds
from pyagent.compaction.thresholds import Thresholds
from pyagent.messages import TextBlock, ToolUseBlock
from pyagent.view import View

LAST_UPDATE_SHARE = 0.85
"""Of the trigger: where the warning line lies lower, as in small windows, the last update waits until here, else more
would have happened since the notes than may stay verbatim behind them. A draft is begun here too."""
MIN_STEP_TOKENS = 20_000
"""From an early update to the last one. In a small window an early one would stand so close before it that the last is
put off (see below) until after the trigger, and nothing it says is ever used."""

WAIT_S = 15.0
"""For an update in flight, seconds."""
DEAD_AFTER_S = 60.0

KEEP_MIN_TOKENS = 10_000
KEEP_MIN_MESSAGES = 5
KEEP_MAX_TOKENS = 40_000
KEEP_MAX_WINDOW_SHARE = 0.20
UNCOVERED_MAX_TRIGGER_SHARE = 0.40

MAX_SECTION_TOKENS = 2_000
MAX_NOTES_TOKENS = 12_000


@dataclass(frozen=True, slots=True)
class NotesProgress:
    """How far the notes of this cycle have come."""

    tokens: int = 0
    """Size of the context at the last update or attempt, or behind the last boundary: steps up to there are done."""
    covered_uuid: str = ""


def update_due(view: View, tokens: int, thresholds: Thresholds, progress: NotesProgress, *, is_cache_warm: bool) -> str:
    """Why the notes should be brought up to date now; empty if they should not."""
    if not is_cache_warm or view.open_tool_uses():
        return ""
    passed = [step for step in _steps(thresholds) if progress.tokens < step <= tokens]
    if not passed:
        return ""
    if _tool_calls_since(view, progress.covered_uuid) < thresholds.notes_min_tool_calls:
        return ""
    return f"{tokens:,} tokens have passed {passed[-1]:,}"


def _steps(thresholds: Thresholds) -> list[int]:
    last = _last_line(thresholds)
    if thresholds.is_economy:
        # Cycles are short at the cheapest point, and early updates would cost more than it saves.
        return [last]
    return [*(step for step in thresholds.early_notes if last - step >= MIN_STEP_TOKENS), last]


def _last_line(thresholds: Thresholds) -> int:
    return max(thresholds.warning, int(LAST_UPDATE_SHARE * thresholds.trigger))


def has_updates_to_come(thresholds: Thresholds, progress: NotesProgress) -> bool:
    """Whether the schedule still holds an update before the trigger: then no draft is needed beside the notes."""
    return progress.tokens < _steps(thresholds)[-1]


def draft_due(
    view: View,
    tokens: int,
    thresholds: Thresholds,
    notes: SessionNotes | None,
    sizer: Sizer,
    *,
    overhead_tokens: int,
    is_cache_warm: bool,
) -> str:
    """Why a summary should be drafted ahead now; empty if not: the notes would serve, or it is too early or late."""
    if not is_cache_warm or view.open_tool_uses() or not _last_line(thresholds) <= tokens < thresholds.trigger:
        return ""
    if notes is None:
        return "there are no notes"
    plan = plan_from_notes(
        view, notes, sizer, thresholds, trigger="auto", before_tokens=tokens, overhead_tokens=overhead_tokens
    )
    return plan if isinstance(plan, str) else ""


_NOTES = re.compile(r"<notes>\s*(.*?)\s*</notes>", re.DOTALL | re.IGNORECASE)


def parse_notes(text: str, stop_reason: str | None) -> str | None:
    """The notes in an answer, or None if it holds none: nothing to go by, or cut off in their midst."""
    found = _NOTES.findall(text)
    if not found or stop_reason in ("refusal", "tool_use"):
        return None
    notes = str(found[-1])
    return None if is_only_template(notes) else notes


def notes_template() -> str:
    return prompt_text("notes_template")


def notes_instruction(notes: str, sizer: Sizer) -> str:
    """The message that asks for an update. Names the sections that must be condensed."""
    text = prompt_text("notes_update")
    long = [title for title, body in _sections(notes) if sizer.text(body) > MAX_SECTION_TOKENS]
    if long:
        text += "\n\nCondense these sections, each to under 2,000 tokens: " + ", ".join(long) + "."
    if sizer.text(notes) > MAX_NOTES_TOKENS:
        text += "\n\nThe notes as a whole are too long: bring them under 12,000 tokens."
    return f"{text}\n\n<notes>\n{notes}\n</notes>"


def is_only_template(notes: str) -> bool:
    def squeezed(text: str) -> str:
        return "".join(text.split())

    return not notes.strip() or squeezed(notes) == squeezed(notes_template())


def notes_as_summary(notes: str, sizer: Sizer) -> str:
    """The notes with over-long sections and the whole cut at a line."""
    parts = [
        f"# {title}\n{sizer.head(body, MAX_SECTION_TOKENS, '[… cut]')}" if title else body.strip()
        for title, body in _sections(notes)
    ]
    return sizer.head("\n\n".join(part for part in parts if part.strip()), MAX_NOTES_TOKENS, "[… cut]")


def plan_from_notes(
    view: View,
    notes: SessionNotes,
    sizer: Sizer,
    thresholds: Thresholds,
    *,
    trigger: Trigger,
    before_tokens: int,
    overhead_tokens: int,
) -> CompactionPlan | str:
    """The plan that lets the notes stand for everything up to their last entry, or why they can't."""
    if is_only_template(notes.text):
        return "there are no notes yet"
    position = view.position_of(notes.covered_uuid)
    if position is None:
        return "the notes belong to an earlier stretch"
    rounds = api_rounds(view)
    # A round that is only partly covered stays whole.
    start = uncovered_from = max(
        (r.start for r in (*rounds, Round(len(view), len(view), is_complete=False)) if r.start <= position + 1),
        default=0,
    )
    if sizer.items(view, start, len(view)) > UNCOVERED_MAX_TRIGGER_SHARE * thresholds.trigger:
        return "too much has happened since the notes"
    oldest = first_since_boundary(view)
    ceiling = min(KEEP_MAX_TOKENS, int(KEEP_MAX_WINDOW_SHARE * thresholds.window))
    for a_round in reversed(rounds):
        if a_round.end > start:
            continue
        is_enough = (
            sizer.items(view, start, len(view)) >= KEEP_MIN_TOKENS
            and _messages_with_text(view, start) >= KEEP_MIN_MESSAGES
        )
        too_much = sizer.items(view, a_round.start, len(view)) > ceiling
        if is_enough or too_much or a_round.start < oldest:
            break
        start = a_round.start
    plan = plan_compaction(
        view,
        sizer,
        thresholds,
        trigger=trigger,
        layer="session_memory",
        before_tokens=before_tokens,
        overhead_tokens=overhead_tokens,
        upto=uncovered_from,
    )
    if isinstance(plan, str):
        return plan
    if sizer.items(view, plan.keep_from, len(view)) > CURRENT_ROUND_SHARE * plan.budget_tokens:
        return "too much has happened since the notes"
    return replace(plan, tail_from=min(start, plan.keep_from))


def _sections(notes: str) -> tuple[tuple[str, str], ...]:
    """(title, body) of each `# ` section; what stands before the first has an empty title."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in notes.split("\n"):
        if line.startswith("# "):
            sections.append((line[2:].strip(), []))
        else:
            sections[-1][1].append(line)
    return tuple((title, "\n".join(lines).strip("\n")) for title, lines in sections if title or any(lines))


def _tool_calls_since(view: View, uuid: str) -> int:
    position = view.position_of(uuid) if uuid else None
    start = 0 if position is None else position + 1
    return sum(isinstance(b, ToolUseBlock) for item in view.items[start:] if not item.is_user for b in item.blocks())


def _messages_with_text(view: View, start: int) -> int:
    return sum(any(isinstance(b, TextBlock) and b.text.strip() for b in item.blocks()) for item in view.items[start:])
