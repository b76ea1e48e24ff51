"""What the status bar and the token gauge show, as numbers passed in and text worked out. No screen, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GaugeLevel(StrEnum):
    """How close the context window is to its limits; the value is the word shown."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class GaugeModel:
    """Token counts and thresholds of one conversation. A threshold of None does not apply (compaction is off)."""

    used_tokens: int
    window_tokens: int
    warning_tokens: int | None = None
    error_tokens: int | None = None
    trigger_tokens: int | None = None
    blocking_tokens: int | None = None
    is_estimated: bool = False
    percent_left: int = 0
    """Until the conversation is compacted, as the agent counts it: one figure for the bar and for `/context`."""

    @property
    def used_share(self) -> float:
        """Used part of the window, from 0 to 1."""
        if self.window_tokens <= 0:
            return 0.0
        return min(1.0, max(0.0, self.used_tokens / self.window_tokens))

    @property
    def level(self) -> GaugeLevel:
        """The most severe threshold reached."""
        if _reached(self.used_tokens, self.blocking_tokens):
            return GaugeLevel.BLOCKED
        if _reached(self.used_tokens, self.error_tokens):
            return GaugeLevel.ERROR
        if _reached(self.used_tokens, self.warning_tokens):
            return GaugeLevel.WARN
        return GaugeLevel.OK

    def ticks(self) -> tuple[tuple[int, GaugeLevel], ...]:
        """Thresholds to mark on the bar, in tokens, each with the level that begins there."""
        marks: dict[int, GaugeLevel] = {}
        for tokens, level in (
            (self.warning_tokens, GaugeLevel.WARN),
            (self.error_tokens, GaugeLevel.ERROR),
            (self.trigger_tokens, GaugeLevel.ERROR),
            (self.blocking_tokens, GaugeLevel.BLOCKED),
        ):
            if tokens is not None and 0 < tokens < self.window_tokens:
                marks[tokens] = level
        return tuple(sorted(marks.items()))

    def numbers(self) -> str:
        """`84k/200k`, with `~` before an estimate."""
        return f"{'~' if self.is_estimated else ''}{short_tokens(self.used_tokens)}/{short_tokens(self.window_tokens)}"

    def remark(self) -> str:
        """`49% to compact`, or how full the window is while compaction is off."""
        if not self.trigger_tokens:
            return f"{round(100 * self.used_share)}% used"
        return f"{self.percent_left}% to compact" if self.percent_left else "compacting next"


@dataclass(frozen=True, slots=True)
class CacheModel:
    """State of the prompt cache. `warm_s` are seconds until it expires; None while nothing is cached."""

    warm_s: float | None = None
    hit_share: float | None = None

    def words(self) -> str:
        """`cache warm 4m`: how long it lasts; `cache cold`."""
        if self.warm_s is None or self.warm_s <= 0:
            return "cache cold"
        minutes = int(self.warm_s // 60)
        left = f"{minutes}m" if minutes else f"{int(self.warm_s)}s"
        return f"cache warm {left}"

    def share(self) -> str:
        """`93%`: how much of the last prompt was read from it; empty if nothing was."""
        return f"{self.hit_share:.0%}" if self.hit_share and self.warm_s else ""


READ_ONLY = "read-only"
"""Said of a session that is only looked at, in the status bar and in plain mode's prompt."""


@dataclass(frozen=True, slots=True)
class StatusModel:
    """Everything the status bar shows. Empty strings and None are left out."""

    model: str = ""
    mode: str = ""
    cwd: str = ""
    branch: str = ""
    cost_usd: float | None = None
    cache: CacheModel | None = None
    gauge: GaugeModel | None = None
    activity: str = ""
    queued_count: int = 0
    effort: str = ""
    background_count: int = 0
    is_read_only: bool = False
    """The session is only looked at; the mode, which says what may be written, then says nothing."""


def _reached(used_tokens: int, threshold_tokens: int | None) -> bool:
    return threshold_tokens is not None and used_tokens >= threshold_tokens


def short_tokens(tokens: int) -> str:
    """`950`, `8.4k`, `167k`, `1.2M`."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}k"
    if tokens < 999_500:
        return f"{round(tokens / 1_000)}k"
    return f"{tokens / 1_000_000:.1f}M".replace(".0M", "M")


def gauge_cells(gauge: GaugeModel, width_cells: int) -> tuple[tuple[str, bool, GaugeLevel | None], ...]:
    """The bar cell by cell: its sign, whether it is filled, and the level of a tick standing there.

    Fill is `█`, `▌` for a started half, ticks stand as `│` in the empty part and as `┃` over the filled one.
    """
    filled_halves = round(gauge.used_share * width_cells * 2)
    if gauge.used_tokens > 0:
        filled_halves = max(1, filled_halves)
    tick_at: dict[int, GaugeLevel] = {}
    for tokens, level in gauge.ticks():
        tick_at[min(width_cells - 1, int(tokens / gauge.window_tokens * width_cells))] = level
    cells: list[tuple[str, bool, GaugeLevel | None]] = []
    for index in range(width_cells):
        halves = filled_halves - 2 * index
        tick = tick_at.get(index)
        if tick is not None:
            cells.append(("┃" if halves >= 1 else "│", halves >= 1, tick))
        else:
            cells.append(("█" if halves >= 2 else "▌" if halves == 1 else "─", halves >= 1, None))
    return tuple(cells)
