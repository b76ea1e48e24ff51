"""A compaction as a plan: what is summarised, what stays word for word, and how much room there is.

Preview, the background draft and the compaction itself start from the same plan; only the last step differs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyagent.compaction.context import Sizer
from pyagent.compaction.outcome import Trigger
from pyagent.compaction.rounds import Round, api_rounds
from pyagent.compaction.thresholds import Thresholds
from pyagent.log import UserEntry
from pyagent.view import View, ViewItem

BUDGET_SHARE = 0.50
"""Of what the trigger leaves beside system and tools: what stands behind a boundary may take this much."""

SUMMARY_SHARE = 0.15
"""Of the budget: the summary's floor, and the length it is asked for."""

KEEP_TAIL_SHARE = 0.10
"""Of the window: the newest complete rounds that a full compact keeps beside its summary."""

KEEP_TAIL_OF_COVERED_SHARE = 0.25
SUMMARY_OF_COVERED_SHARE = 0.25
"""Of the part that could be summarised: in a short conversation the window's shares would keep all of it, and the
compaction would make the context larger."""

MIN_SUMMARY_TARGET_TOKENS = 300
MIN_SUMMARISABLE_TOKENS = 1_000
"""Less than this a summary cannot make smaller: asking for one would cost money and inflate the context."""

UNCOVERED_SHARE = 0.5
"""Of the budget: the most that entries no summary covers may take before a full compact is due instead."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    view: View
    trigger: Trigger
    layer: str
    covered_end: int
    """The summary tells of the items before this position."""
    keep_from: int
    """Items from here on stay in any case: the current round, a prompt that waits, what no summary covers."""
    tail_from: int
    """Items from here on stay if there is room, oldest rounds dropped first."""
    last_prompt: int | None
    """Position of the newest prompt, which always stays."""
    before_tokens: int
    budget_tokens: int
    """For everything behind the boundary."""
    hard_limit_tokens: int
    """The budget if the mandatory parts alone exceed it: the new view must be below the trigger."""
    window_tokens: int
    summary_target_tokens: int
    max_output_tokens: int
    head_end: int = 0
    """Items before this position stay word for word, in front of the summary (`/compact from N`)."""

    @property
    def uncovered_room_tokens(self) -> int:
        return int(self.budget_tokens * UNCOVERED_SHARE)

    def covering(self, end: int) -> CompactionPlan:
        """The plan for a summary that only tells of the items before `end`."""
        end = max(end, self.head_end)
        return replace(self, covered_end=end, keep_from=min(self.keep_from, end), tail_from=min(self.tail_from, end))


def plan_compaction(
    view: View,
    sizer: Sizer,
    thresholds: Thresholds,
    *,
    trigger: Trigger,
    layer: str,
    before_tokens: int,
    overhead_tokens: int,
    upto: int | None = None,
    start: int = 0,
    is_forced: bool = False,
) -> CompactionPlan | str:
    """The plan for compacting a view, or why there is nothing to compact.

    `upto` limits the summary to the items before that position (moved back to a cut between rounds), `start` to those
    from that position on (moved forward to one): what stands before stays as it is. `is_forced`
    makes a plan even if there is little to summarise: a single huge round can still be cut.
    """
    rounds = api_rounds(view)
    covered_end = covered = max((r.end for r in rounds if r.is_complete), default=0)
    if upto is not None:
        covered_end = max((r.end for r in rounds if r.end <= min(upto, covered)), default=0)
    head_end = min((r.start for r in rounds if r.start >= start), default=covered_end) if start else 0
    keep_from = min(covered_end, _current_round_start(view, rounds, covered))
    room = max(thresholds.trigger - overhead_tokens, 1)
    budget = int(room * BUDGET_SHARE)
    keep_from = max(keep_from, head_end)
    fresh = sizer.items(view, head_end, keep_from)
    tail_room = min(int(thresholds.window * KEEP_TAIL_SHARE), int(fresh * KEEP_TAIL_OF_COVERED_SHARE))
    tail_from = max(_tail_start(view, sizer, rounds, keep_from, tail_room), head_end)
    if not is_forced and (keep_from == head_end or fresh < min(MIN_SUMMARISABLE_TOKENS, budget // 2)):
        return "There is not enough conversation to compact yet."
    complete_rounds = sum(r.is_complete and head_end < r.end <= keep_from for r in rounds)
    if not is_forced and complete_rounds < 2 and fresh < budget:
        return "There is not enough conversation to compact yet."
    max_output = thresholds.summary_reserve
    target = min(int(budget * SUMMARY_SHARE), int(max_output * 0.8), int(fresh * SUMMARY_OF_COVERED_SHARE))
    target = max(target, MIN_SUMMARY_TARGET_TOKENS)
    prompts = [position for position in view.index.prompts if position < len(view)]
    return CompactionPlan(
        view=view,
        trigger=trigger,
        layer=layer,
        covered_end=covered_end,
        keep_from=keep_from,
        tail_from=tail_from,
        last_prompt=prompts[-1] if prompts else None,
        before_tokens=before_tokens,
        budget_tokens=budget,
        hard_limit_tokens=room - 1,
        window_tokens=thresholds.window,
        summary_target_tokens=target,
        max_output_tokens=max_output,
        head_end=head_end,
    )


def server_cut(plan: CompactionPlan) -> CompactionPlan | None:
    """The plan for a summary the server signs, or None if there can't be one.

    It stands first and for everything before the kept messages, which follow it unchanged; the first of them must be of
    another role than the last it stands for.
    """
    cut, view = plan.tail_from, plan.view
    if plan.head_end or cut < 1:
        return None
    kept = next((item for item in view.items[cut:] if not is_made_by_compaction(view, item)), None)
    if kept is not None and kept.is_user == view.items[cut - 1].is_user:
        return None
    # A prompt that is summarised is not moved: it stands among the user's words behind the kept messages.
    prompt = plan.last_prompt if plan.last_prompt is not None and plan.last_prompt >= cut else None
    return replace(plan, covered_end=cut, keep_from=cut, last_prompt=prompt)


def first_since_boundary(view: View) -> int:
    """Position of the first item that came after the boundary: kept tails never reach back across it."""
    if view.boundary is None:
        return 0
    seq = view.boundary.seq
    return next((n for n, item in enumerate(view.items) if item.record.seq > seq), len(view))


def is_made_by_compaction(view: View, item: ViewItem) -> bool:
    """Whether it is the summary or restored state of the boundary before: these are made anew each time."""
    entry = item.record.payload
    if view.boundary is None or item.record.seq > view.boundary.seq or not isinstance(entry, UserEntry):
        return False
    return entry.origin in ("summary", "attachment")


def _current_round_start(view: View, rounds: tuple[Round, ...], covered: int) -> int:
    """Where the round starts that the model is in the middle of; the view's length if it is waiting for a prompt."""
    last = len(view) - 1
    while last >= 0 and is_made_by_compaction(view, view.items[last]):
        last -= 1
    if last < 0:
        return len(view)
    if last >= covered:
        return covered
    if not view.items[last].is_user:
        return len(view)
    start = next((r.start for r in reversed(rounds) if r.start <= last), 0)
    while start < last and is_made_by_compaction(view, view.items[start]):
        start += 1
    return start


def _tail_start(view: View, sizer: Sizer, rounds: tuple[Round, ...], keep_from: int, max_tokens: int) -> int:
    start = keep_from
    oldest = first_since_boundary(view)
    for a_round in reversed(rounds):
        if a_round.end > start:
            continue
        if a_round.start < oldest or sizer.items(view, a_round.start, keep_from) > max_tokens:
            break
        start = a_round.start
    return start
