"""What the pipeline is given for one decision, and the ruler everything in it is measured with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from pyagent.compaction.cached_state import CachedEdits
from pyagent.compaction.count import ContextCounter, ModelFamily, family_of
from pyagent.compaction.ports import History, Ports
from pyagent.compaction.thresholds import Thresholds, thresholds_for
from pyagent.compaction.tracking import AutoCompactTracking
from pyagent.log import AssistantEntry
from pyagent.settings import CompactionSettings
from pyagent.view import View, ViewItem

MAX_CHARS_PER_TOKEN = 32
"""Only white space makes longer tokens, so more of a text need not be looked at, however long it is."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    model_id: str
    window_tokens: int
    max_output_tokens: int | None = None
    needs_whole_tool_loop: bool = False
    """Models with manual thinking only: history is never edited inside an open tool loop."""

    @property
    def family(self) -> ModelFamily:
        return family_of(self.model_id)


@dataclass(frozen=True, slots=True)
class PipelineContext:
    """Everything one pass of the pipeline may look at."""

    view: View
    history: History
    settings: CompactionSettings
    model: ModelLimits
    query_source: str
    now: datetime
    overhead_tokens: int
    """System prompt and tools, in the model's tokens."""
    tracking: AutoCompactTracking
    ports: Ports
    cached_edits: CachedEdits | None = None
    """What the server was told to drop so far; None where the provider takes no such instruction."""
    economy_trigger_tokens: int | None = None
    """Where the bill per call is least; set under the policy `economy` alone."""
    prefers_clearing: bool = False
    """Old results may be cleared although there was no pause: it is cheaper than the summary that is due."""
    transcript_path: str = ""
    """Where the whole conversation can be read; named in the summary."""

    @property
    def thresholds(self) -> Thresholds:
        lines = thresholds_for(self.model.window_tokens, self.model.max_output_tokens, self.settings)
        return lines if self.economy_trigger_tokens is None else lines.lowered_to(self.economy_trigger_tokens)


@dataclass(frozen=True, slots=True)
class Sizer:
    """Token sizes for one model family: the counter with the family filled in."""

    counter: ContextCounter = field(repr=False)
    family: ModelFamily

    def text(self, text: str) -> int:
        return self.counter.text(text, self.family)

    def item(self, view: View, item: ViewItem) -> int:
        return self.counter.item(view, item, self.family)

    def items(self, view: View, start: int, end: int) -> int:
        return self.counter.items(view, start, end, self.family)

    def whole(self, view: View) -> int:
        """The view alone, by the local estimate."""
        return self.counter.estimate(view, 0, self.family)

    def _fits(self, text: str, max_tokens: int) -> bool:
        return len(text) <= max_tokens * MAX_CHARS_PER_TOKEN and self.text(text) <= max_tokens

    def head(self, text: str, max_tokens: int, note: str = "") -> str:
        """The text, or its beginning up to whole lines with `note` under it, in at most `max_tokens`."""
        if self._fits(text, max_tokens):
            return text
        room = max_tokens - self.text(note) - 1
        kept = _shrink(text, room, self.text)
        cut = kept.rfind("\n")
        if cut > len(kept) // 2:
            kept = kept[:cut]
        return "\n".join(part for part in (kept.rstrip(), note) if part)

    def middle_out(self, text: str, max_tokens: int, note: str) -> str:
        """The text, or its head and tail around `note`, in about `max_tokens`."""
        if self._fits(text, max_tokens):
            return text
        room = max(max_tokens - self.text(note) - 2, 2)
        head = _shrink(text, room * 2 // 3, self.text)
        tail = _shrink(text[::-1], room // 3, lambda reversed_text: self.text(reversed_text[::-1]))[::-1]
        return f"{head}\n{note}\n{tail}"


def _shrink(text: str, max_tokens: int, measure: Callable[[str], int]) -> str:
    """The longest beginning of about at most `max_tokens`, found by proportion in a few steps."""
    if max_tokens <= 0:
        return ""
    kept = text[: max_tokens * MAX_CHARS_PER_TOKEN]
    while kept and (tokens := measure(kept)) > max_tokens:
        kept = kept[: min(len(kept) * max_tokens // tokens, len(kept) - 1)]
    return kept


def is_cache_warm(view: View, now: datetime) -> bool:
    """Whether the provider can still hold the last request's prefix.

    Cold: no response yet, its lifetime is over (counted from the start of its request), or it neither read from nor
    wrote to the cache.
    """
    last = view.last_assistant
    entry = None if last is None else last.record.payload
    if last is None or not isinstance(entry, AssistantEntry) or entry.cache_ttl_s <= 0:
        return False
    started_at = entry.request_started_at or last.record.at
    has_cached = entry.usage.cache_read_input_tokens + entry.usage.cache_creation_input_tokens > 0
    return has_cached and (now - started_at).total_seconds() <= entry.cache_ttl_s
