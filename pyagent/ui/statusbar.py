"""The bottom row: model, mode, place, cost, cache and the token gauge. One row, one `refresh()`, never a layout."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.gauge import READ_ONLY, GaugeLevel, GaugeModel, StatusModel, gauge_cells
from pyagent.ui.lines import Line, Span, inert_row, truncate
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

_BAR_CELLS = (20, 14, 10, 8)
"""Lengths of the gauge's bar, the longest that fits is taken; below 8 the ticks run together."""
_LONGEST_PLACE_CELLS = 32
"""A deep working directory is cut from the left: its last names tell the projects apart."""

_LEVEL_ROLE = {
    GaugeLevel.OK: "bar.ok",
    GaugeLevel.WARN: "bar.warn",
    GaugeLevel.ERROR: "bar.error",
    GaugeLevel.BLOCKED: "bar.blocked",
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the bar. The part with the highest `rank` is dropped first when the row is too narrow."""

    spans: tuple[Span, ...]
    rank: int
    is_joined: bool = False
    """No separator but a space stands between this part and the next."""
    is_joining: bool = False
    """Nor between the one before and this."""

    @property
    def cells(self) -> int:
        return cell_len("".join(span.text for span in self.spans))


class StatusBar(Widget):
    """Shows a `StatusModel`."""

    DEFAULT_CSS = """
    StatusBar {
        height: 1;
        width: 100%;
        background: $surface;
        color: $foreground;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._status = StatusModel()

    @property
    def status(self) -> StatusModel:
        """What is shown."""
        return self._status

    def show(self, status: StatusModel) -> None:
        """Show other facts; nothing is painted when they are the same."""
        if status != self._status:
            self._status = status
            self.refresh()

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        return line_strip(status_line(self._status, self.size.width), colours, self.size.width, self.rich_style)


def status_line(status: StatusModel, width_cells: int) -> Line:
    """The bar as one line: facts to the left, gauge to the right. When it is too narrow the gauge's bar shortens first,
    then the least needed parts go."""
    for bar_cells in _BAR_CELLS:
        left, right = _left_parts(status), _right_parts(status, bar_cells)
        if _needed_cells(left, right) <= width_cells:
            break
    while _needed_cells(left, right) > width_cells and len(left) + len(right) > 1:
        dropped = max((*left, *right), key=lambda part: part.rank)
        left = [part for part in left if part is not dropped]
        right = [part for part in right if part is not dropped]
    gap_cells = max(1, width_cells - _cells(left) - _cells(right) - 2)
    return Line((Span(" ", "bar"), *_joined(left), Span(" " * gap_cells, "bar"), *_joined(right)), fill="bar")


def _needed_cells(left: list[_Part], right: list[_Part]) -> int:
    return _cells(left) + _cells(right) + 4


def _left_parts(status: StatusModel) -> list[_Part]:
    parts: list[_Part] = []
    if status.activity:
        parts.append(_Part((Span(inert_row(status.activity), "bar.accent"),), 2))
    if status.model:
        parts.append(_Part((Span(inert_row(status.model), "bar.strong"),), 3))
    if status.effort:
        parts.append(_Part((Span(f"effort {inert_row(status.effort)}", "bar"),), 12))
    if status.is_read_only:
        parts.append(_Part((Span(READ_ONLY, "bar.warn"),), 1))
    elif status.mode:
        parts.append(_Part((Span(inert_row(status.mode), "bar.accent"),), 1))
    if status.queued_count:
        parts.append(_Part((Span(f"{status.queued_count} queued", "bar"),), 4))
    if status.background_count:
        plural = "" if status.background_count == 1 else "s"
        parts.append(_Part((Span(f"{status.background_count} task{plural}", "bar.accent"),), 6))
    if status.cwd:
        parts.append(_Part((Span(_place(status.cwd), "bar"),), 11, is_joined=bool(status.branch)))
    if status.branch:
        parts.append(_Part((Span(f"({truncate(inert_row(status.branch), 24)})", "bar"),), 9))
    return parts


def _place(cwd: str) -> str:
    shown = inert_row(cwd)
    return shown if cell_len(shown) <= _LONGEST_PLACE_CELLS else "…" + shown[-_LONGEST_PLACE_CELLS + 1 :]


def _right_parts(status: StatusModel, bar_cells: int) -> list[_Part]:
    parts: list[_Part] = []
    if status.cost_usd is not None:
        parts.append(_Part((Span(f"${status.cost_usd:.2f}", "bar"),), 7))
    if status.cache is not None:
        parts.append(_Part((Span(status.cache.words(), "bar"),), 10))
        if share := status.cache.share():
            parts.append(_Part((Span(share, "bar"),), 13, is_joining=True))
    if status.gauge is not None:
        parts += _gauge_parts(status.gauge, bar_cells)
    return parts


def _gauge_parts(gauge: GaugeModel, bar_cells: int) -> list[_Part]:
    role = _LEVEL_ROLE[gauge.level]
    return [
        _Part(gauge_bar(gauge, bar_cells), 8, is_joined=True),
        _Part((Span(gauge.numbers(), "bar.strong"), Span(" "), Span(gauge.level.value, role)), 0),
        _Part((Span(gauge.remark(), role if gauge.level is not GaugeLevel.OK else "bar"),), 5),
    ]


def gauge_bar(gauge: GaugeModel, width_cells: int) -> tuple[Span, ...]:
    """The bar with its ticks."""
    role = _LEVEL_ROLE[gauge.level]
    spans: list[Span] = []
    for sign, is_filled, tick in gauge_cells(gauge, width_cells):
        if tick is not None and not is_filled:
            spans.append(Span(sign, _LEVEL_ROLE[tick] if tick is not GaugeLevel.BLOCKED else "bar.error"))
        else:
            spans.append(
                Span(
                    sign,
                    role
                    if is_filled and gauge.level is not GaugeLevel.BLOCKED
                    else "bar.error"
                    if is_filled
                    else "bar.faint",
                )
            )
    return tuple(spans)


def _cells(parts: list[_Part]) -> int:
    return sum(part.cells for part in parts) + sum(len(_separator(*pair)) for pair in pairwise(parts))


def _separator(before: _Part, after: _Part) -> str:
    return " " if before.is_joined or after.is_joining else " · "


def _joined(parts: list[_Part]) -> list[Span]:
    spans: list[Span] = []
    for index, part in enumerate(parts):
        if index:
            spans.append(Span(_separator(parts[index - 1], part), "bar.faint"))
        spans += part.spans
    return spans
