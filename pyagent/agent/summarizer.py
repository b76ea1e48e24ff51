"""The summary calls of a compaction: a fork of the main loop's request, so that its cached prefix is read."""

from __future__ import annotations

from dataclasses import replace

from pyagent.agent.journal import Clock, Journal
from pyagent.agent.profile_book import ProfileBook
from pyagent.agent.side_calls import SideCalls
from pyagent.agent.wire.body import Marks
from pyagent.agent.wire.plan import RequestPlan
from pyagent.agent.wire.profile import RequestProfile
from pyagent.agent.wire.render import Renderer
from pyagent.agent.wire.retry import CallEvent
from pyagent.compaction.ports import SummaryAnswer, SummaryRequest
from pyagent.events import CompactionProgress, EventSink, RequestStarted, RetryScheduled, StreamSilent, TextDelta
from pyagent.log import AssistantEntry, Payload, Record, UserEntry
from pyagent.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    Usage,
    parse_block,
)
from pyagent.view import View, ViewItem

SOURCE = "compact"

ADAPTIVE_THINKING_HEADROOM_TOKENS = 12_000
"""Room on top of the summary where the model decides itself how much it thinks: with less, a long thought would cut
the summary off."""

CHARS_PER_PROGRESS = 400
"""How often progress is shown: about every hundred tokens."""

CHARS_PER_TOKEN = 3.6
"""Of assistant text, measured on real sessions; for the progress line only."""


class ForkSummarizer:
    """The `Summarizer` of a real conversation."""

    def __init__(
        self,
        calls: SideCalls,
        *,
        journal: Journal,
        profiles: ProfileBook,
        renderer: Renderer,
        emit: EventSink,
        source: str = SOURCE,
        is_awaited: bool = True,
    ) -> None:
        """`source` is what its calls are billed under; `is_awaited`: the conversation does not go on meanwhile."""
        self._calls = calls
        self._journal = journal
        self._profiles = profiles
        self._renderer = renderer
        self._emit = emit
        self._source = source
        self._is_awaited = is_awaited

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        view, instruction = request.view, request.instruction
        if request.refused is not None:
            view, instruction = self._with_refusal(view, request), request.refused.instruction
        if request.strip_media:
            view = without_media(view)

        def make(view: View, profile: RequestProfile, most_tokens: int | None) -> RequestPlan:
            limit = self._profiles.model.max_output_tokens if most_tokens is None else most_tokens
            max_tokens = min(request.max_output_tokens + thinking_tokens(profile), limit)
            if request.shares_prefix:
                plan = RequestPlan.of(profile, self._renderer.render(view, profile))
                return plan.fork(instruction, max_tokens=max_tokens)
            # Nothing of this request will be asked for again, so writing it to the cache would only cost.
            plan = RequestPlan(profile, Renderer().render(view, profile), Marks())
            return replace(plan.fork(instruction, max_tokens=max_tokens), marks=Marks())

        response = await self._calls.call(
            view,
            make,
            self._source,
            ProgressMeter(self._journal.clock, self._emit),
            is_awaited=self._is_awaited,
            # The full compact counts them itself: asked for again here too, one compaction could cost thirty prompts.
            broken_stream_attempts=1,
        )
        return SummaryAnswer(response.content, response.stop_reason, response.usage, self._calls.price(response))

    def _with_refusal(self, view: View, request: SummaryRequest) -> View:
        """The view, the instruction, the call the model made instead of a summary, and its refusal."""
        assert request.refused is not None
        results = tuple(parse_block(raw) for raw in request.refused.results)
        answer = AssistantEntry("", self._profiles.model.id, request.refused.content, "tool_use", Usage(), "", "")
        for payload in (
            UserEntry((TextBlock(request.instruction),), origin="continuation"),
            answer,
            UserEntry(results, origin="tool_results"),
        ):
            view = View((*view.items, self._passing(payload)), view.epoch, view.boundary)
        return view

    def _passing(self, payload: Payload) -> ViewItem:
        """An item that is in no log."""
        return ViewItem(Record(self._journal.state.next_seq, self._journal.new_uuid(), self._journal.clock(), payload))


class ProgressMeter:
    """Turns the summary's stream into progress; nothing of its text is shown before the boundary stands."""

    def __init__(self, clock: Clock, emit: EventSink) -> None:
        self._clock = clock
        self._emit = emit
        self._started_at = clock()
        self._chars = self._shown_chars = 0

    def __call__(self, event: CallEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._chars += len(text)
                if self._chars - self._shown_chars >= CHARS_PER_PROGRESS:
                    self._tell()
            case RequestStarted():
                # The wait for this attempt is over, and nothing is left of those before it.
                self._chars = 0
                self._tell()
            case RetryScheduled() | StreamSilent():
                self._emit(event)
            case _:
                pass

    def _tell(self) -> None:
        self._shown_chars = self._chars
        elapsed_s = (self._clock() - self._started_at).total_seconds()
        self._emit(CompactionProgress(int(self._chars / CHARS_PER_TOKEN), elapsed_s))


def thinking_tokens(profile: RequestProfile) -> int:
    """Room for the thinking that comes before a fork's answer."""
    thinking = profile.thinking or {}
    match thinking.get("type"):
        case "enabled":
            return int(thinking.get("budget_tokens") or 0)
        case "adaptive" | "between_tools":
            return ADAPTIVE_THINKING_HEADROOM_TOKENS
        case _:
            return 0


def without_media(view: View) -> View:
    """The view with a short text in place of every image and document."""
    items = []
    for item in view.items:
        entry = item.record.payload
        if isinstance(entry, UserEntry) and any(_has_media(block) for block in entry.content):
            content = tuple(_without_media(block) for block in entry.content)
            item = ViewItem(replace(item.record, payload=replace(entry, content=content)), item.overlay)
        items.append(item)
    return View(tuple(items), view.epoch, view.boundary)


def _has_media(block: Block) -> bool:
    if isinstance(block, ToolResultBlock):
        return any(isinstance(part, ImageBlock | DocumentBlock) for part in block.content)
    return isinstance(block, ImageBlock | DocumentBlock)


def _without_media(block: Block) -> Block:
    match block:
        case ImageBlock():
            return TextBlock("[image]")
        case DocumentBlock():
            return TextBlock("[document]")
        case ToolResultBlock():
            parts = tuple(
                TextBlock("[image]" if isinstance(part, ImageBlock) else "[document]")
                if isinstance(part, ImageBlock | DocumentBlock)
                else part
                for part in block.content
            )
            return replace(block, content=parts)
        case _:
            return block
