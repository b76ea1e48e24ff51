"""The bottom row: model, mode, place, cost, cache and the token gauge. One row, one `refresh()`, never a layout."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.gauge import GaugeLevel, GaugeModel, StatusModel, gauge_cells
from pyagent.ui.lines import Line, Span, inert, truncate
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

_BAR_CELLS = 20
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
    """The bar as one line: facts to the left, gauge to the right, the least needed dropped until it fits."""
    left, right = _left_parts(status), _right_parts(status)
    while _cells(left) + _cells(right) + 3 > width_cells and len(left) + len(right) > 1:
        dropped = max((*left, *right), key=lambda part: part.rank)
        left = [part for part in left if part is not dropped]
        right = [part for part in right if part is not dropped]
    left_spans, right_spans = _joined(left), _joined(right)
    gap_cells = max(1, width_cells - _cells(left) - _cells(right) - 2)
    return Line((Span(" ", "bar"), *left_spans, Span(" " * gap_cells, "bar"), *right_spans), fill="bar")


def _left_parts(status: StatusModel) -> list[_Part]:
    parts: list[_Part] = []
    if status.activity:
        parts.append(_Part((Span(inert(status.activity), "bar.accent"),), 2))
    if status.model:
        parts.append(_Part((Span(inert(status.model), "bar.strong"),), 3))
    if status.mode:
        parts.append(_Part((Span(inert(status.mode), "bar.accent"),), 1))
    if status.queued_count:
        parts.append(_Part((Span(f"{status.queued_count} queued", "bar"),), 4))
    place = _place(status.cwd, status.branch)
    if place:
        parts.append(_Part((Span(place, "bar"),), 8))
    return parts


def _place(cwd: str, branch: str) -> str:
    shown = inert(cwd)
    if cell_len(shown) > _LONGEST_PLACE_CELLS:
        shown = "…" + shown[-_LONGEST_PLACE_CELLS + 1 :]
    return f"{shown} ({truncate(inert(branch), 24)})" if branch else shown


def _right_parts(status: StatusModel) -> list[_Part]:
    parts: list[_Part] = []
    if status.cost_usd is not None:
        parts.append(_Part((Span(f"${status.cost_usd:.2f}", "bar"),), 5))
    if status.cache is not None:
        parts.append(_Part((Span(status.cache.words(), "bar"),), 7))
    if status.gauge is not None:
        parts += _gauge_parts(status.gauge)
    return parts


def _gauge_parts(gauge: GaugeModel) -> list[_Part]:
    role = _LEVEL_ROLE[gauge.level]
    return [
        _Part(gauge_bar(gauge, _BAR_CELLS), 6),
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
    return sum(part.cells for part in parts) + 3 * max(0, len(parts) - 1)


def _joined(parts: list[_Part]) -> list[Span]:
    spans: list[Span] = []
    for index, part in enumerate(parts):
        if index:
            spans.append(Span(" · ", "bar.faint"))
        spans += part.spans
    return spans
