"""How many tokens the context holds: one count for the gauge, the trigger, `/context` and headless output.

The newest response's usage is the truth; what was added or taken away since is estimated. Estimates are kept in two
parts: text in tokens of the local encoding, which a factor turns into the model's own, and fixed amounts (images,
the frame of each message), which no factor touches.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, Protocol, TypeAlias

from pyagent.log import AssistantEntry
from pyagent.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    image_tokens,
)
from pyagent.view import Overlay, View, ViewIndex, ViewItem

ModelFamily: TypeAlias = Literal["claude_to_4_6", "claude_from_4_7", "other"]

INITIAL_FACTORS: Mapping[ModelFamily, float] = {"claude_to_4_6": 1.25, "claude_from_4_7": 1.60, "other": 1.10}
"""The model's tokens per token of o200k before the session has shown its own ratio. Measured on code, diffs, prose
and logs: 1.0 to 1.4 for the older tokenizer, 1.2 to 1.9 for the newer one."""

MIN_FACTOR, MAX_FACTOR = 1.0, 2.2
"""No kind of text measured lies outside; a ratio that does is a miscount, not a tokenizer."""

CAUTION_FACTOR = 1.1
"""On every estimated addition: a refused request costs more than a compaction that comes a little early."""

CALIBRATION_WEIGHT = 0.3
"""Share of the newest ratio in the moving average: four responses outweigh the start value."""

MIN_CALIBRATION_TOKENS = 500
"""Smaller additions say more about message frames than about the tokenizer."""

SUSPICIOUS_RATIO = 1.5
"""Usage above this times the local estimate is taken for a miscount (a doubled report) until a second agrees."""

MESSAGE_TOKENS = 10
DOCUMENT_PAGE_TOKENS = 2_000
BYTES_PER_TOKEN = 2.3
"""Of the newer Claude tokenizer on code: used until the encoding is loaded, for the gauge only."""


class Tokenizer(Protocol):
    """The local encoding (o200k). Loaded in the background by whoever owns it."""

    @property
    def is_ready(self) -> bool:
        """Whether `count` may be called; until then sizes are guessed from bytes, and nothing is decided on them."""
        ...

    def count(self, text: str) -> int:
        """Tokens of any text: special tokens, lone surrogates and huge lines included. Never raises."""
        ...


def family_of(model_id: str) -> ModelFamily:
    """Which tokenizer a model has. An unknown Claude counts as new: a high guess is the safe one."""
    name = model_id.lower()
    if "claude" not in name:
        return "other"
    if re.search(r"claude-(?:instant|[123](?:\b|-|\.))", name):
        return "claude_to_4_6"
    version = re.search(r"(?:opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    if version is None:
        return "claude_from_4_7"
    return "claude_to_4_6" if (int(version[1]), int(version[2] or 0)) <= (4, 6) else "claude_from_4_7"


@dataclass(frozen=True, slots=True)
class Estimate:
    text: int = 0
    """Tokens of the local encoding."""
    fixed: int = 0
    """Tokens of the model: images, documents, message frames."""

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.text + other.text, self.fixed + other.fixed)

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.text - other.text, self.fixed - other.fixed)

    def tokens(self, factor: float) -> int:
        """In the model's tokens; an addition is rounded up with caution, a reduction is not exaggerated."""
        caution = CAUTION_FACTOR if self.text > 0 else 1.0
        return math.ceil(round(self.text * factor * caution, 6)) + self.fixed


@dataclass(slots=True)
class _Running:
    """Sums over the items of one epoch's views: `sums[n]` is the estimate of the first n items."""

    index: ViewIndex
    sums: list[Estimate] = field(default_factory=lambda: [Estimate()])


class TokenLedger:
    """Estimates of view items, each made once. Counting one more entry costs that entry."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._was_ready = tokenizer.is_ready
        self._items: dict[tuple[str, tuple[int, ...], bool], tuple[Overlay, Estimate]] = {}
        self._running: _Running | None = None

    @property
    def is_exact(self) -> bool:
        """Whether texts are counted with the encoding and not guessed from their bytes."""
        return self._tokenizer.is_ready

    def text(self, text: str) -> int:
        if self._tokenizer.is_ready:
            return self._tokenizer.count(text)
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)

    def item(self, view: View, item: ViewItem) -> Estimate:
        """One item as it stands in this view. Thinking from before the last change of history is not sent again."""
        self._notice_encoding()
        sends_thinking = item.record.seq > view.epoch or not _has_thinking(item)
        key = (*item.key, sends_thinking)
        known = self._items.get(key)
        # A view that was only tried out may have used the sequence number another op was then written with.
        if known is not None and (known[0] is item.overlay or known[0] == item.overlay):
            return known[1]
        estimate = self._measure(item, sends_thinking=sends_thinking)
        self._items[key] = (item.overlay, estimate)
        return estimate

    def upto(self, view: View, end: int) -> Estimate:
        """The first `end` items."""
        self._notice_encoding()
        running = self._running
        if running is None or running.index is not view.index:
            running = self._running = _Running(view.index)
        sums = running.sums
        while len(sums) <= end:
            sums.append(sums[-1] + self.item(view, view.items[len(sums) - 1]))
        return sums[end]

    def whole(self, view: View) -> Estimate:
        return self.upto(view, len(view))

    def keep_only(self, view: View) -> None:
        """Forget the estimates of all items but this view's."""
        wanted = {item.key for item in view.items}
        self._items = {key: known for key, known in self._items.items() if key[:2] in wanted}

    def _notice_encoding(self) -> None:
        if self._tokenizer.is_ready != self._was_ready:
            self._was_ready = self._tokenizer.is_ready
            self._items.clear()
            self._running = None

    def _measure(self, item: ViewItem, *, sends_thinking: bool) -> Estimate:
        entry = item.record.payload
        total = Estimate(fixed=MESSAGE_TOKENS)
        hidden_thinking = False
        for block in item.blocks():
            if isinstance(block, ThinkingBlock | RedactedThinkingBlock):
                if sends_thinking and isinstance(block, ThinkingBlock) and block.thinking:
                    total += Estimate(self.text(block.thinking))
                elif sends_thinking:
                    hidden_thinking = True
                continue
            total += self._block(block)
        for answer in item.answer_blocks():
            total += self._block(answer)
        if hidden_thinking and isinstance(entry, AssistantEntry):
            total += Estimate(fixed=entry.usage.thinking_tokens)
        return total

    def _block(self, block: Block) -> Estimate:
        match block:
            case TextBlock(text=text):
                return Estimate(self.text(text))
            case ToolUseBlock(name=name, input=given):
                return Estimate(self.text(name) + self.text(_dump(given)))
            case ToolResultBlock(content=content):
                return sum((self._block(part) for part in content), Estimate(fixed=MESSAGE_TOKENS))
            case ImageBlock():
                return Estimate(fixed=image_tokens(block.width_px, block.height_px))
            case DocumentBlock(source=source, page_count=pages):
                data = source.get("data")
                if source.get("type") == "text" and isinstance(data, str):
                    return Estimate(self.text(data))
                return Estimate(fixed=DOCUMENT_PAGE_TOKENS * max(pages, 1))
            case ThinkingBlock() | RedactedThinkingBlock():
                return Estimate()
            case _:
                return Estimate(self.text(_dump(block.raw)))


def _has_thinking(item: ViewItem) -> bool:
    entry = item.record.payload
    return isinstance(entry, AssistantEntry) and any(
        raw.get("type") in ("thinking", "redacted_thinking") for raw in entry.content
    )


def _dump(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The session's own ratio of the model's tokens to the local encoding's, by model family."""

    factors: Mapping[str, float] = field(default_factory=dict)

    def factor(self, family: ModelFamily) -> float:
        return self.factors.get(family, INITIAL_FACTORS[family])

    def observed(self, family: ModelFamily, *, real_tokens: int, text_tokens: int) -> Calibration:
        """With one more measured addition in the average."""
        ratio = min(max(real_tokens / text_tokens, MIN_FACTOR), MAX_FACTOR)
        factor = self.factor(family) * (1 - CALIBRATION_WEIGHT) + ratio * CALIBRATION_WEIGHT
        return replace(self, factors={**self.factors, family: factor})

    def to_json(self) -> JsonObject:
        return {"factors": dict(self.factors)}

    @classmethod
    def from_json(cls, raw: object) -> Calibration:
        """What is missing or out of range reads as never measured."""
        if not isinstance(raw, dict):
            return cls()
        factors = raw.get("factors")
        usable = {
            name: float(value)
            for name, value in (factors.items() if isinstance(factors, dict) else ())
            if name in INITIAL_FACTORS and isinstance(value, int | float) and MIN_FACTOR <= value <= MAX_FACTOR
        }
        return cls(usable)


@dataclass(frozen=True, slots=True)
class ContextCount:
    tokens: int
    is_estimate: bool
    """True when no response's usage stands behind the number: it is shown with a `~`."""
    is_suspicious: bool = False
    """True while the newest usage looks impossible and is left out of account."""
    is_exact_encoding: bool = True
    """False until the encoding is loaded: good enough for the gauge, not for a decision."""


@dataclass(frozen=True, slots=True)
class _Response:
    """One response in a view, whole, however many entries it was split over."""

    first: int
    members: tuple[int, ...]
    seq: int
    model: str
    usage: Usage
    measured: Estimate | None
    """Of the view it ended, where that was noted down."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """What the server counted for a view, and the estimate of that view."""

    epoch: int
    length: int
    family: ModelFamily
    tokens: int
    estimate: Estimate


class ContextCounter:
    """Counts views of one conversation. A count depends on the log alone, never on what was counted before: what was
    measured of a response stands in its entry, and the calibration moves at one moment only, when a response is in."""

    def __init__(self, tokenizer: Tokenizer, calibration: Calibration | None = None) -> None:
        self.ledger = TokenLedger(tokenizer)
        self.calibration = calibration or Calibration()
        self._measured: _Measured | None = None

    def measured(self, view: View, model_family: ModelFamily, tokens: int) -> None:
        """The server counted this view: it stands in for a response's usage until there is one."""
        if self.ledger.is_exact:
            estimate = self.ledger.whole(view)
            self._measured = _Measured(view.epoch, len(view), model_family, tokens, estimate)

    def _from_measured(self, view: View, family: ModelFamily) -> int | None:
        known = self._measured
        if known is None or not self.ledger.is_exact:
            return None
        if (known.epoch, known.family) != (view.epoch, family) or len(view) < known.length:
            return None
        return known.tokens + (self.ledger.whole(view) - known.estimate).tokens(self._factor(family))

    def count(
        self, view: View, overhead_tokens: int, model_family: ModelFamily, *, window_tokens: int | None = None
    ) -> ContextCount:
        """Tokens of the whole context: `overhead_tokens` (system and tools, estimated) and the view.

        Usage above `window_tokens`, or far above the local estimate, is not believed until a second response agrees.
        """
        is_exact = self.ledger.is_exact
        newest_is_suspicious = False
        previous_was_suspicious: _Response | None = None
        for response in _responses(view):
            anchor = self._estimate_at(view, response)
            if family_of(response.model) != model_family or anchor is None:
                break
            if self._is_suspicious(response, anchor, overhead_tokens, model_family, window_tokens):
                if previous_was_suspicious is not None:
                    # Two in a row agree, so the estimate was wrong: the newest counts after all.
                    agreed = previous_was_suspicious
                    return ContextCount(self._from(view, agreed, model_family), False, False, is_exact)
                newest_is_suspicious, previous_was_suspicious = True, response
                continue
            tokens = self._from(view, response, model_family)
            return ContextCount(tokens, False, newest_is_suspicious, is_exact)
        measured = self._from_measured(view, model_family)
        if measured is not None:
            return ContextCount(measured, False, newest_is_suspicious, is_exact)
        tokens = self.estimate(view, overhead_tokens, model_family)
        return ContextCount(tokens, True, newest_is_suspicious, is_exact)

    def estimate(self, view: View, overhead_tokens: int, model_family: ModelFamily) -> int:
        """The context by the local estimate alone: comparable between two views, whatever responses they hold."""
        return overhead_tokens + self.ledger.whole(view).tokens(self._factor(model_family))

    def items(self, view: View, start: int, end: int, model_family: ModelFamily) -> int:
        """Tokens of the items from `start` to before `end`."""
        if end <= start:
            return 0
        span = self.ledger.upto(view, end) - self.ledger.upto(view, start)
        return span.tokens(self._factor(model_family))

    def item(self, view: View, item: ViewItem, model_family: ModelFamily) -> int:
        return self.ledger.item(view, item).tokens(self._factor(model_family))

    def text(self, text: str, model_family: ModelFamily) -> int:
        """Tokens of a text that is not in a view yet, without a message's frame."""
        return Estimate(self.ledger.text(text)).tokens(self._factor(model_family))

    def growth_per_call(self, view: View) -> float | None:
        """Tokens the context grew by from one response to the next since the last change of history, on average."""
        sizes = [r.usage.context_tokens for r in islice(_responses(view), MAX_GROWTH_SAMPLES) if r.seq > view.epoch]
        return (sizes[0] - sizes[-1]) / (len(sizes) - 1) if len(sizes) > 1 and sizes[0] > sizes[-1] else None

    def ended_by(self, view: View, item: ViewItem) -> AssistantEntry:
        """The entry of a response that is about to be appended to `view`, with the estimate of what it ends."""
        entry = item.record.payload
        assert isinstance(entry, AssistantEntry)
        if not self.ledger.is_exact:
            return entry
        estimate = self.ledger.whole(view) + self.ledger.item(view, item)
        return replace(entry, context_text_tokens=estimate.text, context_fixed_tokens=estimate.fixed)

    def _factor(self, family: ModelFamily) -> float:
        return self.calibration.factor(family) if self.ledger.is_exact else 1.0 / CAUTION_FACTOR

    def _from(self, view: View, response: _Response, family: ModelFamily) -> int:
        anchor = self._estimate_at(view, response)
        assert anchor is not None
        change = self.ledger.whole(view) - anchor
        return max(response.usage.context_tokens + change.tokens(self._factor(family)), 0)

    def _estimate_at(self, view: View, response: _Response) -> Estimate | None:
        """The estimate of the view that `response` ended: what its usage measured. None if that can't be known."""
        if response.measured is not None and self.ledger.is_exact:
            return response.measured
        if response.seq <= view.epoch:
            return None
        estimate = self.ledger.upto(view, response.first)
        for position in response.members:
            estimate += self.ledger.item(view, view.items[position])
        return estimate

    def _is_suspicious(
        self, response: _Response, anchor: Estimate, overhead: int, family: ModelFamily, window_tokens: int | None
    ) -> bool:
        tokens = response.usage.context_tokens
        if window_tokens is not None and tokens > window_tokens:
            return True
        return tokens > SUSPICIOUS_RATIO * (overhead + anchor.tokens(self._factor(family)))

    def calibrate(self, view: View, family: ModelFamily, window_tokens: int | None) -> None:
        """Take the newest response of the view into the calibration: to be called once, when it has come in."""
        if not self.ledger.is_exact:
            return
        newest = list(islice(_responses(view), 2))
        if len(newest) < 2 or any(r.seq <= view.epoch or family_of(r.model) != family for r in newest):
            return
        later, earlier = newest
        before, after = self._estimate_at(view, earlier), self._estimate_at(view, later)
        assert before is not None
        assert after is not None
        added = after - before
        real_tokens = later.usage.context_tokens - earlier.usage.context_tokens - added.fixed
        is_possible = window_tokens is None or later.usage.context_tokens <= window_tokens
        if added.text >= MIN_CALIBRATION_TOKENS and 0 < real_tokens < 2 * MAX_FACTOR * added.text and is_possible:
            self.calibration = self.calibration.observed(family, real_tokens=real_tokens, text_tokens=added.text)


MAX_GROWTH_SAMPLES = 50
"""Newest responses looked at for the growth per call: what is being done now, not what was done yesterday."""

MAX_UNREPORTED = 50
"""Responses without a usage to walk past: with more in a row the server reports none, and all is estimated."""


def _responses(view: View) -> Iterator[_Response]:
    """The responses with a usage that came since the view's boundary, newest first, each once."""
    since = -1 if view.boundary is None else view.boundary.seq
    assistants = view.index.assistants
    cursor = _count_below(assistants, len(view)) - 1
    unreported = 0
    while cursor >= 0 and unreported < MAX_UNREPORTED:
        item = view.items[assistants[cursor]]
        entry = item.record.payload
        assert isinstance(entry, AssistantEntry)
        if item.record.seq <= since:
            return
        members = [assistants[cursor]]
        cursor -= 1
        while cursor >= 0 and entry.message_id and _message_id(view.items[assistants[cursor]]) == entry.message_id:
            members.append(assistants[cursor])
            cursor -= 1
        unreported += 1
        if entry.usage.is_reported:
            unreported = 0
            first = members[-1]
            measured = Estimate(entry.context_text_tokens, entry.context_fixed_tokens)
            yield _Response(
                first,
                tuple(reversed(members)),
                item.record.seq,
                entry.model,
                entry.usage,
                measured if measured.text >= 0 else None,
            )


def _count_below(positions: list[int], end: int) -> int:
    """How many of the ascending positions stand before `end`; nearly always all of them."""
    count = len(positions)
    while count and positions[count - 1] >= end:
        count -= 1
    return count


def _message_id(item: ViewItem) -> str:
    entry = item.record.payload
    return entry.message_id if isinstance(entry, AssistantEntry) else ""
