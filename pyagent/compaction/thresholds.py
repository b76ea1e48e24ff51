"""Where the context window's lines are drawn: warning, error, trigger and blocking limit, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyagent.compaction.count import ContextCount
from pyagent.events import GaugeFacts
from pyagent.settings import CompactionSettings

MAX_OUTPUT_TOKENS_FOR_SUMMARY = 20_000
"""Kept free for the summary's own output, so that a compaction at the trigger still fits."""

AUTOCOMPACT_BUFFER_TOKENS = 13_000
"""Room between the trigger and the effective window, so that the round in flight can finish: parallel results were
measured to overshoot the trigger by up to 10,000 tokens."""

MANUAL_COMPACT_BUFFER_TOKENS = 3_000
"""With automatic compaction off, new prompts are refused this far below the effective window: `/compact` must fit."""

SCALE_BELOW_WINDOW_TOKENS = 60_000
"""Below this window the amounts above would leave nothing to work in, so all shrink in proportion."""

MIN_WARNING_SHARE = 0.25
"""Of the trigger: whatever buffers and percentages are set, the warning never sinks to nothing."""

MAX_OVERHEAD_SHARE = 0.60
"""Of the trigger. With more than this taken by system and tools, compacting the rest cannot help."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All in tokens. 0 < warning ≤ error ≤ trigger < blocking < window, unless a person overrode the last ones."""

    window: int
    effective_window: int
    trigger: int
    warning: int
    error: int
    blocking: int
    summary_reserve: int
    buffer: int
    is_auto_on: bool
    """Whether the conversation is compacted by itself at the trigger."""
    is_blocking_on: bool
    """Whether new prompts are refused at the blocking limit."""
    trigger_percent: float | None = None
    """The override that lowered the trigger, if one did."""
    early_notes: tuple[int, ...] = ()
    """Where the session's notes are brought up to date before their last update, ascending."""
    notes_min_tool_calls: int = 0
    is_economy: bool = False
    """Whether the trigger was lowered to where the bill per call is least."""

    def lowered_to(self, trigger: int) -> Thresholds:
        """The lines with an earlier trigger; warning and error keep their distance from it. Never a later one."""
        if trigger >= self.trigger:
            return self
        floor = max(int(trigger * MIN_WARNING_SHARE), 1)
        error = min(max(trigger - (self.trigger - self.error), floor), trigger)
        warning = min(max(trigger - (self.trigger - self.warning), floor), error)
        return replace(self, trigger=trigger, error=error, warning=warning, is_economy=True)

    @property
    def limit(self) -> int:
        """What "percent left" counts down to: the trigger, or the effective window while automatic is off."""
        return self.trigger if self.is_auto_on else self.effective_window

    def explained(self) -> str:
        """The arithmetic in one line, for `/context`."""
        text = (
            f"{self.window:,} window − {self.summary_reserve:,} for the summary = {self.effective_window:,} effective; "
            f"− {self.buffer:,} buffer = {self.effective_window - self.buffer:,}"
        )
        if self.trigger_percent is not None:
            text += f"; lowered to {self.trigger_percent:g}% of effective = {self.trigger:,}"
        if self.is_economy:
            text += f"; lowered to the cheapest point (economy) = {self.trigger:,}"
        text += f" ({100 * self.trigger / self.window:.1f}% of the window)"
        return text + ("" if self.is_auto_on else "; automatic compaction is off")


@dataclass(frozen=True, slots=True)
class TokenWarningState:
    percent_left: int
    is_above_warning: bool
    is_above_error: bool
    is_above_auto_compact: bool
    is_at_blocking: bool


def thresholds_for(window_tokens: int, max_output_tokens: int | None, settings: CompactionSettings) -> Thresholds:
    """The lines for a model's window and maximal output (None: unknown) under these settings."""
    window = window_tokens if settings.window_tokens is None else min(window_tokens, settings.window_tokens)
    scale = min(window / SCALE_BELOW_WINDOW_TOKENS, 1.0)
    reserve = int(MAX_OUTPUT_TOKENS_FOR_SUMMARY * scale)
    if max_output_tokens:
        reserve = min(reserve, max_output_tokens)
    effective = window - reserve
    buffer = int(AUTOCOMPACT_BUFFER_TOKENS * scale)
    trigger = effective - buffer
    lowered = None
    if settings.trigger_percent is not None and effective * settings.trigger_percent / 100 < trigger:
        lowered = settings.trigger_percent
        trigger = max(int(effective * lowered / 100), 1)
    is_auto_on = not (settings.is_disabled or settings.is_auto_disabled)
    base = trigger if is_auto_on else effective
    floor = max(int(base * MIN_WARNING_SHARE), 1)
    error = min(max(base - int(settings.error_buffer_tokens * scale), floor), base)
    warning = min(max(base - int(settings.warning_buffer_tokens * scale), floor), error)
    blocking = effective - max(int(MANUAL_COMPACT_BUFFER_TOKENS * scale), 1)
    if settings.blocking_tokens is not None:
        blocking = min(settings.blocking_tokens, window - 1)
    return Thresholds(
        window=window,
        effective_window=effective,
        trigger=trigger,
        warning=warning,
        error=error,
        blocking=blocking,
        summary_reserve=reserve,
        buffer=buffer,
        is_auto_on=is_auto_on,
        is_blocking_on=settings.is_auto_disabled and not settings.is_disabled,
        trigger_percent=lowered,
        early_notes=tuple(
            sorted(
                int(percent * trigger / 100)
                for percent in (settings.notes_first_percent, settings.notes_second_percent)
            )
        ),
        notes_min_tool_calls=settings.notes_min_tool_calls,
    )


def token_warning_state(tokens: int, thresholds: Thresholds) -> TokenWarningState:
    """Percent left and which lines are crossed. 0 percent is shown only at or above the limit itself."""
    limit = thresholds.limit
    percent_left = min(max(-((tokens - limit) * 100 // limit), 0), 100)
    return TokenWarningState(
        percent_left=percent_left,
        is_above_warning=tokens >= thresholds.warning,
        is_above_error=tokens >= thresholds.error,
        is_above_auto_compact=thresholds.is_auto_on and tokens >= thresholds.trigger,
        is_at_blocking=thresholds.is_blocking_on and tokens >= thresholds.blocking,
    )


def gauge(count: ContextCount, thresholds: Thresholds) -> GaugeFacts:
    """What the token gauge shows: the same count and the same lines that decide."""
    warning = token_warning_state(count.tokens, thresholds)
    return GaugeFacts(
        used_tokens=count.tokens,
        is_estimate=count.is_estimate,
        window_tokens=thresholds.window,
        effective_window_tokens=thresholds.effective_window,
        warning_tokens=thresholds.warning,
        error_tokens=thresholds.error,
        trigger_tokens=thresholds.trigger,
        blocking_tokens=thresholds.blocking,
        is_auto_compact_on=thresholds.is_auto_on,
        percent_left=warning.percent_left,
        state="blocked"
        if warning.is_at_blocking
        else "compact"
        if warning.is_above_auto_compact
        else "error"
        if warning.is_above_error
        else "warning"
        if warning.is_above_warning
        else "ok",
    )
