"""The full compact's call: a model writes the summary, and an answer that is none is asked for again.

At most six calls in all. A request that is too long loses whole API rounds: the newest first while the cached prefix
is shared (they then stay verbatim behind the summary), else the oldest.

Source: context pipeline design, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyagent.compaction.context import Sizer
from pyagent.compaction.plan import CompactionPlan
from pyagent.compaction.ports import RefusedAnswer, SignedSummary, Summarizer, SummaryAnswer, SummaryRequest
from pyagent.compaction.prompt import Fault, Unusable, parse_summary, prompt_text, summary_instruction
from pyagent.compaction.rounds import Round, api_rounds
from pyagent.errors import (
    BrokenStreamError,
    CredentialsError,
    ModelUnavailableError,
    PromptTooLongError,
    RequestRefusedError,
)
from pyagent.log import Record, UserEntry
from pyagent.messages import TextBlock, ToolResultBlock, ToolUseBlock, Usage, block_to_wire, parse_block
from pyagent.view import View, ViewItem

MAX_SUMMARY_CALLS = 6
MAX_PTL_RETRIES = 3
MAX_COMPACT_STREAMING_RETRIES = 2
MAX_UNUSABLE_RETRIES = 2
"""A model that answered three times without a summary will not write one the fourth time."""
UNKNOWN_GAP_SHARE = 0.20
"""Of the rounds, dropped when the server does not say by how much the request is too long."""

TRUNCATION_MARKER = "[earlier conversation truncated for compaction retry]"


@dataclass(frozen=True, slots=True)
class Bill:
    """What the calls of one compaction cost."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0

    def plus(self, answer: SummaryAnswer | SignedSummary) -> Bill:
        return self.joined(Bill(1, answer.usage, answer.cost_usd))

    def joined(self, other: Bill) -> Bill:
        mine, theirs = self.usage, other.usage
        usage = Usage(
            input_tokens=mine.input_tokens + theirs.input_tokens,
            output_tokens=mine.output_tokens + theirs.output_tokens,
            cache_creation_input_tokens=mine.cache_creation_input_tokens + theirs.cache_creation_input_tokens,
            cache_read_input_tokens=mine.cache_read_input_tokens + theirs.cache_read_input_tokens,
        )
        known = self.cost_usd is not None and other.cost_usd is not None
        cost_usd = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return Bill(self.calls + other.calls, usage, cost_usd)

    def plus_failed_call(self) -> Bill:
        return replace(self, calls=self.calls + 1)

    @property
    def cached_share(self) -> float:
        """Of the prompt tokens sent, the share read from the cache; 0 to 1."""
        return self.usage.cache_read_input_tokens / self.usage.prompt_tokens if self.usage.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    plan: CompactionPlan
    """The plan it fits: it may cover less than was asked for."""
    bill: Bill


@dataclass(frozen=True, slots=True)
class NoSummary:
    reason: str
    bill: Bill
    may_pass: bool
    """True if it was the connection and not the answer: trying again later may help."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What the next call sends."""

    plan: CompactionPlan
    first: int
    """Items before this position were dropped."""
    shares_prefix: bool
    fault: Fault | None = None
    refused: RefusedAnswer | None = None

    def request(self, instructions: Sequence[str]) -> SummaryRequest:
        target = self.plan.summary_target_tokens // (2 if self.fault == "cut_off" else 1)
        return SummaryRequest(
            view=_part(self.plan.view, self.first, self.plan.covered_end, is_whole=self.shares_prefix),
            instruction=summary_instruction(target, instructions, None if self.refused else self.fault),
            max_output_tokens=self.plan.max_output_tokens,
            shares_prefix=self.shares_prefix,
            strip_media=not self.shares_prefix,
            refused=self.refused,
        )


async def summarise(
    plan: CompactionPlan,
    summarizer: Summarizer,
    sizer: Sizer,
    *,
    instructions: Sequence[str],
    shares_prefix: bool,
    may_retry_streams: bool,
) -> Summary | NoSummary:
    """A model's summary of the plan's covered part, or why there is none."""
    attempt = _Attempt(plan, 0, shares_prefix)
    bill = Bill()
    too_long = broken = unusable = 0
    reason = ""
    while bill.calls < MAX_SUMMARY_CALLS:
        try:
            answer = await summarizer.summarize(attempt.request(instructions))
        except PromptTooLongError as error:
            bill, too_long, reason = bill.plus_failed_call(), too_long + 1, error.message
            if error.is_byte_limit and attempt.shares_prefix:
                # Too many bytes are images: without them the request may well fit, whole as it is.
                attempt = replace(attempt, shares_prefix=False, refused=None)
                continue
            shorter = _shortened(attempt, sizer, error.gap_tokens)
            if too_long > MAX_PTL_RETRIES or shorter is None:
                break
            attempt = shorter
            continue
        except BrokenStreamError as error:
            bill, broken, reason = bill.plus_failed_call(), broken + 1, error.message
            if not may_retry_streams or broken > MAX_COMPACT_STREAMING_RETRIES:
                return NoSummary(reason, bill, may_pass=True)
            continue
        except (CredentialsError, RequestRefusedError) as error:
            return NoSummary(error.message, bill.plus_failed_call(), may_pass=False)
        except ModelUnavailableError as error:
            return NoSummary(error.message, bill.plus_failed_call(), may_pass=True)
        bill = bill.plus(answer)
        parsed = parse_summary(answer)
        if isinstance(parsed, str):
            if sizer.text(parsed) < sizer.items(attempt.plan.view, attempt.first, attempt.plan.covered_end):
                return Summary(parsed, attempt.plan, bill)
            parsed, reason = Unusable("cut_off"), "the summary was longer than what it replaces"
        else:
            reason = parsed.text
        if parsed.fault == "refused":
            return NoSummary(reason, bill, may_pass=False)
        if parsed.fault == "overflow":
            too_long += 1
            shorter = _shortened(attempt, sizer, None)
            if too_long > MAX_PTL_RETRIES or shorter is None:
                break
            attempt = shorter
            continue
        unusable += 1
        if unusable > MAX_UNUSABLE_RETRIES:
            break
        attempt = replace(
            attempt, fault=parsed.fault, refused=_refusal_of(answer) if parsed.fault == "tool_call" else None
        )
    return NoSummary(reason, bill, may_pass=False)


def _refusal_of(answer: SummaryAnswer) -> RefusedAnswer:
    text = prompt_text("retry_tool_call")
    uses = [block for block in map(parse_block, answer.content) if isinstance(block, ToolUseBlock)]
    results = tuple(
        block_to_wire(ToolResultBlock(use.id, (TextBlock("Not run: the conversation is being summarised."),), True))
        for use in uses
    )
    return RefusedAnswer(answer.content, results, text)


def _shortened(attempt: _Attempt, sizer: Sizer, gap_tokens: int | None) -> _Attempt | None:
    """The attempt with whole rounds dropped, at least one kept; None if there is nothing left to drop."""
    plan = attempt.plan
    rounds = [r for r in api_rounds(plan.view) if attempt.first <= r.start and r.end <= plan.covered_end]
    if attempt.shares_prefix:
        end = _newest_dropped(rounds, plan.view, sizer, gap_tokens)
        if end is not None and sizer.items(plan.view, end, len(plan.view)) <= plan.uncovered_room_tokens:
            return replace(attempt, plan=plan.covering(end), refused=None)
        # What would have to stay verbatim is too much: give the cache up, and the media with it.
        attempt = replace(attempt, shares_prefix=False, refused=None)
    first = _oldest_dropped(rounds, plan.view, sizer, gap_tokens)
    return None if first is None else replace(attempt, first=first, refused=None)


def _newest_dropped(rounds: Sequence[Round], view: View, sizer: Sizer, gap_tokens: int | None) -> int | None:
    count = _count_to_drop([sizer.items(view, r.start, r.end) for r in reversed(rounds)], gap_tokens)
    return rounds[len(rounds) - count].start if count else None


def _oldest_dropped(rounds: Sequence[Round], view: View, sizer: Sizer, gap_tokens: int | None) -> int | None:
    count = _count_to_drop([sizer.items(view, r.start, r.end) for r in rounds], gap_tokens)
    return rounds[count].start if count else None


def _count_to_drop(sizes: Sequence[int], gap_tokens: int | None) -> int:
    """How many of the rounds must go, in the order given, so that the gap is covered and one stays."""
    if len(sizes) < 2:
        return 0
    if gap_tokens is None:
        return min(max(int(len(sizes) * UNKNOWN_GAP_SHARE), 1), len(sizes) - 1)
    freed = 0
    for count, size in enumerate(sizes[:-1], start=1):
        freed += size
        if freed >= gap_tokens:
            return count
    return len(sizes) - 1


def _part(view: View, first: int, end: int, *, is_whole: bool) -> View:
    """The items from `first` to before `end`, opened by a marker if they would begin with the assistant's words.

    Unless it must be the prefix as it was sent, what will be restored from its source anyway is left out.
    """
    items = view.items[first:end]
    if not is_whole:
        items = tuple(item for item in items if not _is_restored_anyway(item))
    if items == view.items:
        return view
    if first and items and not items[0].is_user:
        marker = UserEntry((TextBlock(TRUNCATION_MARKER),), origin="reminder")
        items = (ViewItem(Record(-1, "truncation-marker", datetime(1970, 1, 1, tzinfo=UTC), marker)), *items)
    return View(items, view.epoch, view.boundary)


def _is_restored_anyway(item: ViewItem) -> bool:
    entry = item.record.payload
    return isinstance(entry, UserEntry) and entry.origin == "attachment"
