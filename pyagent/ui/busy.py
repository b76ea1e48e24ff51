"""The row above the prompt: what is under way, for how long, and how to stop it. One row, never a layout."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from pyagent.ui.block_view import seconds
from pyagent.ui.gauge import short_tokens
from pyagent.ui.lines import Line, Span, inert, inert_row, truncate
from pyagent.ui.strips import line_strip
from pyagent.ui.theme import palette

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_FRAME_S = 0.1
"""Slower looks stuck, faster only costs paints."""


STILL_SIGN = "*"
STILL_TICK_S = 1.0
"""Without motion only the seconds are counted on."""


def busy_line(
    activity: str, elapsed_s: float, streamed_tokens: int, width_cells: int, *, is_still: bool = False
) -> Line:
    """`⠹ Answering · 12 s · ~1.2k tokens · esc to interrupt`. The way to stop it stays when space is short."""
    frame = STILL_SIGN if is_still else SPINNER[int(elapsed_s / SPINNER_FRAME_S) % len(SPINNER)]
    facts = f" · {seconds(float(int(elapsed_s)))}" if elapsed_s >= 1 else ""
    if streamed_tokens:
        facts += f" · ~{short_tokens(streamed_tokens)} tokens"
    end = " · esc to interrupt"
    room_cells = width_cells - 5 - len(end)
    facts = facts if len(facts) + 8 <= room_cells else ""
    words = truncate(inert_row(activity), max(4, room_cells - len(facts)))
    return Line((Span("  "), Span(f"{frame} ", "accent"), Span(words, "text"), Span(facts + end, "muted")))


class BusyLine(Widget):
    """Shows a busy line, else a hint, else nothing; it keeps its row in any case."""

    DEFAULT_CSS = """
    BusyLine { height: 1; width: 100%; background: $background; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._activity = ""
        self._elapsed_s = 0.0
        self._streamed_tokens = 0
        self._hint = ""
        self.is_still = False
        """No spinner turns."""

    @property
    def shown(self) -> str:
        """The words on the row."""
        return self._line().text.strip()

    def show(self, activity: str, *, elapsed_s: float, streamed_tokens: int) -> None:
        """Tell what is under way; an empty activity ends it."""
        self._activity, self._elapsed_s, self._streamed_tokens = activity, elapsed_s, streamed_tokens
        self.refresh()

    def hint(self, text: str) -> None:
        """Show a short remark in place of anything else; empty takes it away."""
        if text != self._hint:
            self._hint = text
            self.refresh()

    def _line(self) -> Line:
        width_cells = max(20, self.size.width)
        if self._hint:
            return Line((Span("  "), Span(truncate(inert_row(self._hint), width_cells - 3), "warning")))
        if self._activity:
            return busy_line(
                self._activity, self._elapsed_s, self._streamed_tokens, width_cells, is_still=self.is_still
            )
        return Line()

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        return line_strip(self._line(), colours, self.size.width, self.rich_style)


class QueuePanel(Widget):
    """Prompts that wait for the turn to end. Takes no row while there is none."""

    MAX_ROWS = 3
    """More prompts are counted, not listed: the panel must not push the conversation off a small screen."""

    DEFAULT_CSS = """
    QueuePanel { height: auto; width: 100%; display: none; background: $background; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._prompts: tuple[str, ...] = ()
        self._remark = ""

    @property
    def prompts(self) -> tuple[str, ...]:
        return self._prompts

    def show(self, queued: tuple[str, ...], sent: tuple[str, ...] = (), *, is_open: bool = True) -> None:
        """List the prompts the agent has queued, then those sent of which it has not told yet, each oldest first."""
        prompts, remark = (*queued, *sent), ""
        if len(prompts) > self.MAX_ROWS:
            remark = f" · and {len(prompts) - self.MAX_ROWS} more"
        if not is_open:
            remark = remark or " · sent once the session is open"
        elif queued:
            remark += " · ↑ takes it back" if len(prompts) == 1 else " · ↑ takes the newest back"
        if (prompts, remark) == (self._prompts, self._remark):
            return
        self._prompts, self._remark = prompts, remark
        self.styles.height = min(len(prompts), self.MAX_ROWS)
        self.display = bool(prompts)
        self.refresh(layout=True)

    def render_line(self, y: int) -> Strip:
        colours = palette(self.app.theme, is_dark=self.app.current_theme.dark)
        line = Line()
        if y < len(self._prompts):
            remark = self._remark if y == min(len(self._prompts), self.MAX_ROWS) - 1 else ""
            room_cells = max(4, self.size.width - 16 - len(remark))
            words = truncate(" ".join(inert(self._prompts[y][:4_000]).split()), room_cells)
            line = Line((Span("  "), Span("◌ queued  ", "muted"), Span(words, "text"), Span(remark, "muted")))
        return line_strip(line, colours, self.size.width, self.rich_style)
