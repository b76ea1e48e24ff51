"""Says once that the context has crossed a line; again only after a compaction has brought it back below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyagent.events import GaugeFacts
from pyagent.log import Boundary, NoticeShown, Record

_BEGINNINGS: Mapping[str, str] = {
    "warning": "The context is filling up: ",
    "error": "The context is nearly full: ",
    "blocked": "The context is full: ",
}
"""State of the gauge → how its line begins. With automatic compaction on, the last line is crossed by compacting."""
_ORDER = ("ok", "warning", "error", "blocked")

TOLD_FROM_PERCENT_LEFT = 25
"""Until automatic compaction. In a small window the lines lie further below the trigger than words can call near."""


class ThresholdNotices:
    """Remembers the worst state that was told since the last compaction."""

    def __init__(self, records: Sequence[Record]) -> None:
        """`records` are those of a resumed session: what was told there is not told again."""
        self._told = "ok"
        for record in reversed(records):
            if isinstance(record.payload, Boundary):
                break
            if isinstance(record.payload, NoticeShown):
                told = next((s for s, words in _BEGINNINGS.items() if record.payload.text.startswith(words)), "ok")
                self._told = max(self._told, told, key=_ORDER.index)

    def compacted(self) -> None:
        """A compaction stands in the log: lines that are crossed from now on are told again."""
        self._told = "ok"

    def line(self, gauge: GaugeFacts) -> NoticeShown | None:
        """What to say now, if anything."""
        state = gauge.state
        if state not in _ORDER or _ORDER.index(state) <= _ORDER.index(self._told):
            return None
        if gauge.is_auto_compact_on and gauge.percent_left > TOLD_FROM_PERCENT_LEFT:
            return None
        self._told = state
        words = f"{gauge.used_tokens:,} tokens"
        if gauge.is_auto_compact_on:
            words += f", {gauge.percent_left}% left before it is compacted at {gauge.trigger_tokens:,}."
            words += " /compact does it now."
        elif state == "blocked":
            words += f" of {gauge.window_tokens:,}. No further prompt is sent until /compact or /clear makes room."
        else:
            words += f" of {gauge.window_tokens:,}. Prompts are refused from {gauge.blocking_tokens:,} on; "
            words += "/compact makes room."
        if state == "blocked":
            return NoticeShown(_BEGINNINGS[state] + words, "error")
        # Where it is compacted by itself there is nothing to mend, so a run without a person says nothing of it.
        return NoticeShown(_BEGINNINGS[state] + words, "info" if gauge.is_auto_compact_on else "warning")
